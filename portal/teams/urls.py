from django.urls import include, path

from portal.teams import edition_views, views

editions = (
    [
        path("", edition_views.edition_list, name="list"),
        path("new/", edition_views.new_edition, name="new"),
        path("<slug:edition>/", edition_views.edition_detail, name="detail"),
        path("<slug:edition>/edit/", edition_views.edit_edition, name="edit"),
        path("<slug:edition>/copy/", edition_views.copy_edition, name="copy"),
        path("<slug:edition>/recipe/", edition_views.recipe, name="recipe"),
        path("<slug:edition>/teams/", edition_views.team_list, name="teams"),
        path("<slug:edition>/register/", edition_views.register, name="register"),
        path("<slug:edition>/audit/", edition_views.audit, name="audit"),
        path("<slug:edition>/audit.csv", edition_views.audit_csv, name="audit-csv"),
    ],
    "editions",
)
teams = (
    [
        path("<int:pk>/", views.team_detail, name="detail"),
        path("<int:pk>/edit/", views.edit_team, name="edit"),
        path("<int:pk>/decide/", views.decide, name="decide"),
        path("<int:pk>/withdraw/", views.withdraw, name="withdraw"),
        path("<int:pk>/release/", views.release, name="release"),
        path("<int:pk>/invite/", views.invite, name="invite"),
        path("<int:pk>/invitations/<int:invitation>/revoke/", views.revoke_invitation, name="revoke-invitation"),
        path("<int:pk>/invitations/<int:invitation>/again/", views.resend_invitation, name="resend-invitation"),
        path("<int:pk>/members/<int:membership>/remove/", views.remove_member, name="remove"),
        path("<int:pk>/members/<int:membership>/transfer/", views.transfer, name="transfer"),
        path("<int:pk>/leave/", views.leave, name="leave"),
        path("invitations/<str:secret>/", views.invitation, name="invitation"),
    ],
    "teams",
)

urlpatterns = [path("editions/", include(editions)), path("teams/", include(teams))]
