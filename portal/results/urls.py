from django.urls import include, path

from portal.results import anonymization_views, attack_views, manual_views, training_urls, views

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
        path("<slug:name>/attacks/", attack_views.attacks, name="attacks"),
        path("<slug:name>/attacks/new/", attack_views.new_attack, name="new-attack"),
        path("<slug:name>/attacks/progress", attack_views.attack_progress, name="attack-progress"),
        path("<slug:name>/attacks/numbers.csv", attack_views.attacks_csv, name="attacks-csv"),
        path("<slug:name>/attacks/numbers.json", attack_views.attacks_json, name="attacks-json"),
        path("<slug:name>/attacks/<int:run>/scores/<int:score_set>/", attack_views.attack_scores, name="attack-scores"),
        path("<slug:name>/attacks/<int:run>/results.zip", attack_views.attack_archive, name="attack-archive"),
        path("<slug:name>/recognition/", attack_views.recognition, name="recognition"),
        path("<slug:name>/recognition/new/", attack_views.new_recognition, name="new-recognition"),
        path("<slug:name>/recognition/progress", attack_views.recognition_progress, name="recognition-progress"),
        path("<slug:name>/recognition/rates.csv", attack_views.recognition_csv, name="recognition-csv"),
        path(
            "<slug:name>/recognition/utterances.csv",
            attack_views.recognised_utterances_csv,
            name="recognised-utterances-csv",
        ),
        path("<slug:name>/engine-runs/<int:run>/cancel", attack_views.cancel, name="cancel-run"),
        path("<slug:name>/engine-runs/<int:run>/continue", attack_views.go_on, name="continue-run"),
        *training_urls.patterns,
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
