from django.urls import include, path

from portal.submissions import views

submissions = (
    [
        path("editions/<slug:edition>/submissions/", views.submission_list, name="list"),
        path("editions/<slug:edition>/submit/", views.new_submission, name="new"),
        path("corpora/upload/", views.upload_corpus, name="upload-corpus"),
        path("uploads/<uuid:pk>/submit/", views.submit_upload_again, name="submit-upload"),
        path("uploads/<uuid:pk>/discard/", views.discard_upload, name="discard-upload"),
        path("submissions/<int:pk>/", views.submission_detail, name="detail"),
        path("submissions/<int:pk>/progress", views.submission_progress, name="progress"),
        path("submissions/<int:pk>/report.csv", views.report_csv, name="report-csv"),
        path("submissions/<int:pk>/report.json", views.report_json, name="report-json"),
        path("submissions/<int:pk>/diff/<int:other>/", views.submission_diff, name="diff"),
        path("submissions/<int:pk>/diff/<int:other>/files.csv", views.diff_csv, name="diff-csv"),
        path("submissions/<int:pk>/withdraw/", views.withdraw, name="withdraw"),
        path("submissions/<int:pk>/check/", views.check_again, name="check"),
        path("submissions/<int:pk>/release/", views.release, name="release"),
        path("submissions/<int:pk>/evaluate/", views.evaluate_again, name="evaluate"),
        path("submissions/<int:pk>/documents/<int:document>/", views.document, name="document"),
    ],
    "submissions",
)

urlpatterns = [path("", include(submissions))]
