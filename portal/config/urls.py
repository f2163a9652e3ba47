"""Every address of the portal."""

from django.contrib import admin
from django.urls import include, path

from portal.accounts.access import admin_log_in
from portal.core import health, signed_urls
from portal.demo import views as demo_views
from portal.home import views as home_views
from portal.operations import views as operations_views

# One door for everybody, with its throttle and its second factor.
admin.site.login = admin_log_in  # type: ignore[method-assign]

handler400 = "portal.api.problems.bad_request"
handler403 = "portal.core.errors.not_allowed"
handler404 = "portal.core.errors.not_found"
handler429 = "portal.core.errors.too_many_attempts"  # read by allauth
handler500 = "portal.api.problems.server_error"

urlpatterns = [
    path("", home_views.home, name="home"),
    path("tour/", demo_views.tour, name="tour"),
    path("", include("listening.app.urls")),
    path("operations/", operations_views.operations, name="operations"),
    path("metrics", operations_views.metrics, name="metrics"),
    path("", include("portal.documentation.urls")),
    path("systems/", include("portal.systems.urls")),
    path("anonymizers/trainings/", include("portal.systems.network_training.urls")),
    path("", include("portal.leaderboard.urls")),
    path("editions/", include("portal.editions.urls")),
    path("teams/", include("portal.teams.urls")),
    path("", include("portal.submissions.urls")),
    path("", include("portal.accounts.urls")),
    path("api/uploads/", include("portal.api.tus")),
    path("api/", include("portal.api.urls")),
    path("corpora/", include("portal.corpora.urls")),
    path("jobs/", include("portal.challenges.job_pages.urls")),
    path("manage/", include("portal.deletion.urls")),
    path("media/<str:token>", signed_urls.serve_media, name="media"),
    path("health/live", health.live, name="live"),
    path("health/ready", health.ready, name="ready"),
    path("admin/", admin.site.urls),
]
