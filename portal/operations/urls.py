from django.urls import path

from portal.operations import views

urlpatterns = [path("operations/", views.operations, name="operations"), path("metrics", views.metrics, name="metrics")]
