"""The operator's page: queues, workers and health; and the same for Prometheus."""

from __future__ import annotations

import shutil
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.crypto import constant_time_compare
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from listening.app.monitor.selectors import count_activity, count_answers_since
from portal.accounts.access import operator_page
from portal.core.clock import read_clock
from portal.core.version import code_version
from portal.jobs.checks import check_all_beside
from portal.jobs.pages import group_ended, list_workers
from portal.jobs.selectors import count_ended, queue_states
from portal.operations.metrics import CONTENT_TYPE, write_metrics


@require_safe
@operator_page
def operations(request: HttpRequest) -> HttpResponse:
    """Show the queues with the age of their oldest waiting job, and the health of each part."""
    queues = queue_states()
    context: dict[str, Any] = {"queues": queues, "checks": check_all_beside(queues), "version": code_version()}
    context |= {"workers": list_workers(queues), "ended": group_ended(count_ended()), "activity": _describe_activity()}
    return render(request, "operations/operations.html", context)


def _describe_activity() -> dict[str, Any]:
    """Return evaluators, answers and disk, as Prometheus reads them."""
    now = read_clock()
    evaluators, answers = count_activity(now)
    of_last_minute = count_answers_since(now - timedelta(minutes=1))
    disk = shutil.disk_usage(settings.DATA_DIR)
    return {"evaluators": evaluators, "answers": answers, "of_last_minute": of_last_minute, "disk": disk}


@require_safe
@never_cache
def metrics(request: HttpRequest) -> HttpResponse:
    """Return what Prometheus collects; the address exists where it has a token, and opens for nobody without it."""
    if not settings.METRICS_TOKEN:
        raise Http404
    if not constant_time_compare(request.headers.get("Authorization", ""), f"Bearer {settings.METRICS_TOKEN}"):
        return HttpResponse("A token is needed.\n", "text/plain", 401, headers={"WWW-Authenticate": "Bearer"})
    return HttpResponse(write_metrics(), CONTENT_TYPE)
