from django.urls import include, path

from portal.results import views

systems = (
    [
        path("", views.system_list, name="list"),
        path("new/<slug:corpus>/", views.new_baseline, name="new"),
        path("<slug:name>/", views.system_detail, name="detail"),
        path("<slug:name>/progress", views.system_progress, name="progress"),
        path("<slug:name>/values.csv", views.values_csv, name="values-csv"),
        path("<slug:name>/sets/<slug:data_set>/", views.measure_list, name="data-set"),
        path("<slug:name>/sets/<slug:data_set>/measures.csv", views.measures_csv, name="measures-csv"),
        path("<slug:name>/files/<int:pk>/", views.compare, name="compare"),
        path("<slug:name>/files/<int:pk>/f0.json", views.f0_contours, name="f0"),
    ],
    "systems",
)

urlpatterns = [
    path("", views.home, name="home"),
    path("operations/", views.operations, name="operations"),
    path("systems/", include(systems)),
]
