from django.urls import include, path

from portal.documentation import views

docs = (
    [
        path("", views.manual_file, name="index"),
        path("recipes/<slug:name>.toml", views.recipe, name="recipe"),
        path("<slug:name>/", views.manual_file, name="page"),
        path("<path:path>", views.manual_file, name="file"),
    ],
    "docs",
)

downloads = (
    [path("", views.downloads, name="page"), path("<str:name>", views.program_file, name="file")],
    "downloads",
)

urlpatterns = [path("docs/", include(docs)), path("downloads/", include(downloads))]
