from django.urls import include, path

from portal.documentation import views

docs = (
    [
        path("", views.manual_index, name="index"),
        path("recipe-fields/", views.recipe_fields, name="recipe-fields"),
        path("<slug:name>/", views.manual_page, name="page"),
        path("recipes/<slug:name>.toml", views.recipe, name="recipe"),
    ],
    "docs",
)

downloads = (
    [path("", views.downloads, name="page"), path("<str:name>", views.program_file, name="file")],
    "downloads",
)

urlpatterns = [path("docs/", include(docs)), path("downloads/", include(downloads))]
