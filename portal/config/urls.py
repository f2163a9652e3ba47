"""Every address of the portal."""

from django.contrib import admin
from django.contrib.auth.views import LoginView, LogoutView
from django.urls import include, path

from portal.accounts.forms import LogInForm
from portal.core import health, media

urlpatterns = [
    path("", include("portal.results.urls")),
    path("corpora/", include("portal.challenges.urls")),
    path("jobs/", include("portal.jobs.urls")),
    path("log-in/", LoginView.as_view(authentication_form=LogInForm, redirect_authenticated_user=True), name="login"),
    path("log-out/", LogoutView.as_view(), name="logout"),
    path("media/<str:token>", media.serve_media, name="media"),
    path("health/live", health.live, name="live"),
    path("health/ready", health.ready, name="ready"),
    path("admin/", admin.site.urls),
]
