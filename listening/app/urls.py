"""Addresses of studies for organizers, and of the listening test for evaluators."""

from django.urls import include, path

from listening.app.monitor import views as monitor_views
from listening.app.questions import views as question_views
from listening.app.recordings import views as recording_views
from listening.app.recordings.forms import RepeatedTestForm
from listening.app.results import views as result_views
from listening.app.sessions import views as session_views
from listening.app.studies import views as study_views
from listening.app.texts import views as text_views
from listening.app.withdrawal import views as withdrawal_views

studies = (
    [
        path("", study_views.study_list, name="list"),
        path("new/", study_views.new_study, name="new"),
        path("new/recordings/", recording_views.new_own_test, name="own"),
        path("new/file/", recording_views.new_own_test, {"form_class": RepeatedTestForm}, name="repeat"),
        path("import/", result_views.import_ratings, name="import"),
        path("<slug:study>/", study_views.study_detail, name="detail"),
        path("<slug:study>/edit/", study_views.edit_study, name="edit"),
        path("<slug:study>/questions/", question_views.questions, name="questions"),
        path("<slug:study>/questions/<slug:language>/", question_views.question_preview, name="question-preview"),
        path("<slug:study>/texts/", text_views.texts, name="texts"),
        path("<slug:study>/words/<slug:language>/", text_views.words, name="words"),
        path("<slug:study>/test.toml", recording_views.test_file, name="test-file"),
        path("<slug:study>/planner", study_views.planner, name="planner"),
        path("<slug:study>/design/", study_views.design, name="design"),
        path("<slug:study>/certificate.json", study_views.certificate, name="certificate"),
        path("<slug:study>/prepare/", study_views.prepare, name="prepare"),
        path("<slug:study>/preview/", study_views.preview, name="preview"),
        path("<slug:study>/launch/", study_views.launch, name="launch"),
        path("<slug:study>/pause/", study_views.pause, name="pause"),
        path("<slug:study>/resume/", study_views.resume, name="resume"),
        path("<slug:study>/close/", result_views.close, name="close"),
        path("<slug:study>/forget/", withdrawal_views.forget, name="forget"),
        path("<slug:study>/extend/", study_views.extend, name="extend"),
        path(
            "<slug:study>/monitor/",
            monitor_views.monitor,
            {"template": "listening/monitor/monitor.html"},
            name="monitor",
        ),
        path(
            "<slug:study>/monitor/live",
            monitor_views.monitor,
            {"template": "listening/monitor/_live.html"},
            name="live",
        ),
        path("<slug:study>/sessions/<int:session>/", monitor_views.session_detail, name="session"),
        path("<slug:study>/exclusions/", monitor_views.exclusion_list, name="exclusions"),
        path("<slug:study>/exclusions/<int:rule>/revoke/", monitor_views.revoke, name="revoke"),
        path("<slug:study>/export/", monitor_views.export, name="export"),
        path("<slug:study>/export/<slug:table>.csv", monitor_views.export_csv, name="export-csv"),
        path("<slug:study>/export.json", monitor_views.export_all, {"extension": "json"}, name="export-json"),
        path("<slug:study>/export.zip", monitor_views.export_all, {"extension": "zip"}, name="export-zip"),
        path("<slug:study>/analyse/", result_views.analyse, name="analyse"),
        path("<slug:study>/results/", result_views.results, name="results"),
        path("<slug:study>/results/listeners/", result_views.listeners, name="results-listeners"),
        path("<slug:study>/results/publish/", result_views.publish, name="publish-results"),
        path("<slug:study>/results/unpublish/", result_views.unpublish, name="unpublish-results"),
        path("<slug:study>/results/screen/", result_views.screen, name="results-screen"),
        path("<slug:study>/results/systems/<path:system>/", result_views.system_results, name="results-system"),
        path("<slug:study>/results/tables/<slug:scores>/<slug:table>.csv", result_views.table_csv, name="results-csv"),
        path(
            "<slug:study>/results/figures/<slug:scores>/<slug:figure>.<slug:extension>",
            result_views.figure,
            name="results-figure",
        ),
        path("<slug:study>/results.json", result_views.results_json, name="results-json"),
        path("<slug:study>/results.tex", result_views.results_latex, name="results-latex"),
        path("<slug:study>/results/bundle.zip", result_views.bundle, name="results-bundle"),
    ],
    "studies",
)

listen = (
    [
        path("join/<slug:key>/", session_views.join, name="join"),
        path("withdraw/", withdrawal_views.withdraw_by_code, name="withdraw-by-code"),
        path("<slug:token>/", session_views.session_page, name="session"),
        path("<slug:token>/language/", session_views.language, name="language"),
        path("<slug:token>/step/<slug:step>/", session_views.step, name="step"),
        path("<slug:token>/withdraw/", withdrawal_views.withdraw, name="withdraw"),
        path("<slug:token>/sounds/<slug:sound>", session_views.sound, name="sound"),
        path("<slug:token>/offline.js", session_views.offline, name="offline"),
        path("<slug:token>/state", session_views.state, name="state"),
        path("<slug:token>/clips/<str:clip>", session_views.clip, name="clip"),
        path("<slug:token>/answers", session_views.save, name="answers"),
        path("<slug:token>/alive", session_views.alive, name="alive"),
        path("<slug:token>/take-over", session_views.take_over, name="take-over"),
        path("<slug:token>/report", session_views.report, name="report"),
    ],
    "listen",
)

urlpatterns = [
    path("studies/", include(studies)),
    path("listen/", include(listen)),
]
