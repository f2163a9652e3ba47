"""Every address of the portal, and `bare`: the least that a Django view can do and still write one row."""

from django.http import HttpRequest, JsonResponse
from django.urls import path
from django.views.decorators.csrf import csrf_exempt

from portal.config.urls import handler400, handler500
from portal.config.urls import urlpatterns as of_the_portal
from portal.core.models import AuditEvent

__all__ = ["handler400", "handler500", "urlpatterns"]


@csrf_exempt
def bare(request: HttpRequest) -> JsonResponse:
    AuditEvent.objects.create(action="bare", subject_type="benchmark", subject_id="1", subject=request.body[:100])
    return JsonResponse({"saved": True})


urlpatterns = [path("bare", bare), *of_the_portal]
