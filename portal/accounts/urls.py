"""The addresses of accounts: our own, and those of the log-in library that this portal uses, under its names."""

from allauth.account import views as account
from allauth.mfa.base import views as second_factor
from allauth.mfa.recovery_codes import views as recovery_codes
from allauth.mfa.totp import views as app_codes
from django.urls import include, path, re_path
from django.views.decorators.cache import never_cache

from portal.accounts import views
from portal.accounts.access import member_page

accounts = (
    [
        path("", views.profile, name="profile"),
        path("tokens/", views.token_list, name="tokens"),
        path("tokens/<int:pk>/revoke/", views.revoke_token, name="revoke-token"),
        path("notifications/", views.notifications, name="notifications"),
        path("second-factor/app/code.svg", views.second_factor_picture, name="second-factor-picture"),
    ],
    "accounts",
)

people = (
    [
        path("", views.people_list, name="list"),
        path("invite/", views.invite_person, name="invite"),
        path("<int:pk>/", views.person, name="person"),
        path("<int:pk>/invite/", views.invite_again, name="invite-again"),
        path("<int:pk>/confirm/", views.confirm_address, name="confirm"),
        path("<int:pk>/password/", views.password_link, name="password-link"),
        path("<int:pk>/no-link/", views.no_link, name="no-link"),
        path("<int:pk>/deactivate/", views.deactivate, name="deactivate"),
        path("<int:pk>/reactivate/", views.reactivate, name="reactivate"),
    ],
    "people",
)

doors = [
    path("first-account/<str:secret>/", never_cache(views.first_account), name="first-account"),
    path("log-in/", never_cache(account.login), name="account_login"),
    path("log-in/closed/", never_cache(account.account_inactive), name="account_inactive"),
    path("log-in/second-factor/", never_cache(second_factor.authenticate), name="mfa_authenticate"),
    path("log-out/", never_cache(account.logout), name="account_logout"),
    path("sign-up/", never_cache(account.signup), name="account_signup"),
    path("sign-up/mailed/", never_cache(account.email_verification_sent), name="account_email_verification_sent"),
    re_path(r"^sign-up/confirm/(?P<key>[-:\w]+)/$", never_cache(account.confirm_email), name="account_confirm_email"),
    path("password/", never_cache(account.password_reset), name="account_reset_password"),
    path("password/mailed/", never_cache(account.password_reset_done), name="account_reset_password_done"),
    path(
        "password/changed/",
        never_cache(account.password_reset_from_key_done),
        name="account_reset_password_from_key_done",
    ),
    re_path(
        r"^password/(?P<uidb36>[0-9A-Za-z]+)-(?P<key>.+)/$",
        never_cache(account.password_reset_from_key),
        name="account_reset_password_from_key",
    ),
]

own = [
    path(address, member_page(view), name=name)
    for address, view, name in (
        ("e-mail/", account.email, "account_email"),
        ("password/", account.password_change, "account_change_password"),
        ("password/set/", account.password_set, "account_set_password"),
        ("confirm/", account.reauthenticate, "account_reauthenticate"),
        ("confirm/code/", second_factor.reauthenticate, "mfa_reauthenticate"),
        ("second-factor/", second_factor.index, "mfa_index"),
        ("second-factor/app/", app_codes.activate_totp, "mfa_activate_totp"),
        ("second-factor/app/off/", app_codes.deactivate_totp, "mfa_deactivate_totp"),
        ("second-factor/codes/", recovery_codes.view_recovery_codes, "mfa_view_recovery_codes"),
        ("second-factor/codes/new/", recovery_codes.generate_recovery_codes, "mfa_generate_recovery_codes"),
        (
            "second-factor/codes/recovery-codes.txt",
            recovery_codes.download_recovery_codes,
            "mfa_download_recovery_codes",
        ),
    )
]

urlpatterns = [
    *doors,
    path("account/", include(accounts)),
    path("account/", include(own)),
    path("people/", include(people)),
]
