from django.urls import path

from portal.challenges.job_pages import views

app_name = "jobs"
urlpatterns = [
    path("", views.job_list, name="list"),
    path("table", views.job_table, name="table"),
    path("<uuid:pk>/", views.job_detail, name="detail"),
    path("<uuid:pk>/status", views.job_status, name="status"),
    path("<uuid:pk>/problems.csv", views.problems_csv, name="problems-csv"),
    path("<uuid:pk>/cancel", views.cancel_job, name="cancel"),
    path("<uuid:pk>/again", views.run_job_again, name="again"),
]
