from django.urls import include, path

from portal.results import anonymization_views, manual_views, views

systems = (
    [
        path("", views.system_list, name="list"),
        path("new/<slug:corpus>/", views.new_baseline, name="new"),
        path("<slug:name>/", views.system_detail, name="detail"),
        path("<slug:name>/progress", views.system_progress, name="progress"),
        path("<slug:name>/values.csv", views.values_csv, name="values-csv"),
        path("<slug:name>/objective.csv", views.objective_csv, name="objective-csv"),
        path("<slug:name>/objective.json", views.objective_json, name="objective-json"),
        path("<slug:name>/objective.tex", views.objective_latex, name="objective-latex"),
        path("<slug:name>/sets/<slug:data_set>/", views.measure_list, name="data-set"),
        path("<slug:name>/sets/<slug:data_set>/measures.csv", views.measures_csv, name="measures-csv"),
        path("<slug:name>/files/<int:pk>/", views.compare, name="compare"),
        path("<slug:name>/files/<int:pk>/f0.json", views.f0_contours, name="f0"),
        path("<slug:name>/files/<int:pk>/explanation.svg", anonymization_views.explanation, name="explanation"),
        path("<slug:name>/runs/<slug:data_set>/", anonymization_views.run_detail, name="run"),
        path("<slug:name>/runs/<slug:data_set>/voices.csv", anonymization_views.voices_csv, name="voices-csv"),
    ],
    "systems",
)

docs = (
    [
        path("<slug:name>/", manual_views.page, name="page"),
        path("recipes/<slug:name>.toml", manual_views.recipe, name="recipe"),
    ],
    "docs",
)

urlpatterns = [
    path("", views.home, name="home"),
    path("operations/", views.operations, name="operations"),
    path("systems/", include(systems)),
    path("docs/", include(docs)),
]
