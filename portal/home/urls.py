from django.urls import path

from portal.home import views

urlpatterns = [path("", views.home, name="home")]
