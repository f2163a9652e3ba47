from django.urls import path

from portal.teams import views

app_name = "teams"
urlpatterns = [
    path("<int:pk>/", views.team_detail, name="detail"),
    path("<int:pk>/edit/", views.edit_team, name="edit"),
    path("<int:pk>/decide/", views.decide, name="decide"),
    path("<int:pk>/withdraw/", views.withdraw, name="withdraw"),
    path("<int:pk>/ask-again/", views.ask_again, name="ask-again"),
    path("<int:pk>/release/", views.release, name="release"),
    path("<int:pk>/invite/", views.invite, name="invite"),
    path("<int:pk>/invitations/<int:invitation>/revoke/", views.revoke_invitation, name="revoke-invitation"),
    path("<int:pk>/invitations/<int:invitation>/again/", views.resend_invitation, name="resend-invitation"),
    path("<int:pk>/members/<int:membership>/remove/", views.remove_member, name="remove"),
    path("<int:pk>/members/<int:membership>/transfer/", views.transfer, name="transfer"),
    path("<int:pk>/leave/", views.leave, name="leave"),
    path("invitations/<str:secret>/", views.invitation, name="invitation"),
]
