from django.urls import path

from portal.editions import views
from portal.editions.new_challenge import views as new_challenge_views

app_name = "editions"
urlpatterns = [
    path("", views.edition_list, name="list"),
    path("new/", new_challenge_views.new_edition, name="new"),
    path("<slug:edition>/", views.edition_detail, name="detail"),
    path("<slug:edition>/edit/", views.edit_edition, name="edit"),
    path("<slug:edition>/copy/", views.copy_edition, name="copy"),
    path("<slug:edition>/recipe/", views.recipe, name="recipe"),
    path("<slug:edition>/data/", views.data, name="data"),
    path("<slug:edition>/data/accept/", views.accept_data, name="accept-data"),
    path("<slug:edition>/data/prepare/", views.prepare_data, name="prepare-data"),
    path("<slug:edition>/data/files/<str:file>", views.data_file, name="data-file"),
    path("<slug:edition>/teams/", views.team_list, name="teams"),
    path("<slug:edition>/teams/new-link/", views.replace_link, name="replace-link"),
    path("<slug:edition>/register/", views.register, name="register"),
    path("<slug:edition>/audit/", views.audit, name="audit"),
    path("<slug:edition>/audit.csv", views.audit_csv, name="audit-csv"),
]
