"""Reports of errors to Sentry, where the operator names one (PORTAL_SENTRY_DSN).

A report says where the program failed and how: types of exceptions, places in the code, release, machine, and the ids
of request and job under which the portal's own log has the rest. It is made anew from the few fields that can hold
nothing else: messages, values of variables, requests and people are left out, as any of them may hold speech, names,
addresses or tokens. Every error reaches the log, so the log is all that Sentry's library listens to.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, register

from common.packages import missing_packages
from portal.core.logs import job_id, request_id
from portal.core.version import code_version

KEPT = ("event_id", "timestamp", "level", "platform", "logger", "release", "environment", "server_name", "sdk")
KEPT_OF_FRAME = (
    "function",
    "module",
    "lineno",
    "in_app",
    "pre_context",
    "context_line",
    "post_context",
)
MOST_BREADCRUMBS = 20
FLUSH_S = 2.0
log = logging.getLogger(__name__)


@register()
def check_package(app_configs: Any, **_: Any) -> list[CheckMessage]:  # noqa: ARG001 - Django names it
    """Refuse commands where errors are to be sent and the package that sends them is missing."""
    missing = missing_packages("PORTAL_SENTRY_DSN", "sentry_sdk") if settings.SENTRY_DSN else ""
    return [Error(missing, id="portal.E001")] if missing else []


def start_reports() -> None:
    """Send what this process logs as an error, from now on; without PORTAL_SENTRY_DSN nothing happens."""
    if not settings.SENTRY_DSN:
        return
    if missing := missing_packages("PORTAL_SENTRY_DSN", "sentry_sdk"):
        log.error("%s", missing)  # a process that was started without the checks of Django
        return
    import sentry_sdk
    from sentry_sdk.integrations.atexit import AtexitIntegration
    from sentry_sdk.integrations.dedupe import DedupeIntegration
    from sentry_sdk.integrations.excepthook import ExcepthookIntegration
    from sentry_sdk.integrations.logging import LoggingIntegration, ignore_logger
    from sentry_sdk.integrations.threading import ThreadingIntegration

    sentry_sdk.init(
        dsn=settings.SENTRY_DSN,
        release=code_version(),
        # That no personal data are sent is the library's default (`send_default_pii`). What its other integrations
        # read is left out as well: requests, queries, messages of the queue and command lines.
        default_integrations=False,
        auto_enabling_integrations=False,
        integrations=[
            AtexitIntegration(callback=lambda *_: None),
            DedupeIntegration(),
            ExcepthookIntegration(),
            LoggingIntegration(),
            ThreadingIntegration(propagate_scope=False),
        ],
        include_local_variables=False,
        max_request_body_size="never",
        before_send=strip_event,
        before_send_transaction=lambda *_: None,
        before_breadcrumb=strip_breadcrumb,
        max_breadcrumbs=MOST_BREADCRUMBS,
        auto_session_tracking=False,
        send_client_reports=False,
        trace_propagation_targets=[],
        spotlight=False,
        shutdown_timeout=FLUSH_S,
    )
    ignore_logger("django.security.*")  # anybody can cause these, as often as they like


def flush_reports() -> None:
    """Send what waits to be sent, before this process ends without its exit handlers."""
    if settings.SENTRY_DSN and not missing_packages("", "sentry_sdk"):
        import sentry_sdk

        sentry_sdk.flush(FLUSH_S)


def strip_event(event: Any, hint: dict[str, Any]) -> Any:
    """Return the report that is sent in place of what the library collected: Sentry's `before_send`."""
    stripped = {key: event[key] for key in KEPT if key in event}
    if "log_record" in hint:
        stripped["message"] = _tell_place(hint["log_record"])
    if "exception" in event:
        stripped["exception"] = {"values": [_strip_exception(one) for one in event["exception"]["values"]]}
    if "breadcrumbs" in event:
        stripped["breadcrumbs"] = event["breadcrumbs"]
    stripped["tags"] = _name_work()
    return stripped


def strip_breadcrumb(crumb: Any, hint: dict[str, Any]) -> Any:
    """Return what came before an error: places in the code that wrote to the log. Sentry's `before_breadcrumb`."""
    if "log_record" not in hint:
        return None
    kept = {key: crumb[key] for key in ("type", "level", "category", "timestamp") if key in crumb}
    return kept | {"message": _tell_place(hint["log_record"]), "data": _name_work()}


def _tell_place(record: logging.LogRecord) -> str:
    return f"{record.name}, {record.funcName}, line {record.lineno}"


def _name_work() -> dict[str, str]:
    found = {"request": request_id.get(), "job": job_id.get()}
    return {key: value for key, value in found.items() if value}


def _strip_exception(one: dict[str, Any]) -> dict[str, Any]:
    stripped: dict[str, Any] = {key: one[key] for key in ("type", "module") if key in one}
    stripped["mechanism"] = {key: (one.get("mechanism") or {}).get(key) for key in ("type", "handled")}
    if trace := one.get("stacktrace"):
        stripped["stacktrace"] = {"frames": [_strip_frame(frame) for frame in trace["frames"]]}
    return stripped


def _strip_frame(frame: dict[str, Any]) -> dict[str, Any]:
    name = Path(frame.get("filename") or "")
    kept = {key: frame[key] for key in KEPT_OF_FRAME if key in frame}
    return kept | {"filename": name.name if name.is_absolute() else str(name)}
