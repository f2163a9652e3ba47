"""The documentation for everybody, the recipes that come with the portal, and the program ``vp`` to download."""

from __future__ import annotations

import base64
from hashlib import sha256
from pathlib import PurePosixPath
from typing import cast

from csp.constants import UNSAFE_INLINE
from django.http import FileResponse, Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe
from django.views.static import serve

from portal.accounts.access import open_read
from portal.client.wheel import build_wheel
from portal.core.downloads import as_download
from portal.core.program import describe_program
from portal.documentation.manual import build_manual, recipe_file


@open_read
def manual_file(request: HttpRequest, name: str = "", path: str = "") -> HttpResponse:
    """Serve a page of the built manual by its name, or another file; the CSP allows the scripts in a page by hash."""
    path = path or str(PurePosixPath(name, "index.html"))
    response = serve(request, path, document_root=str(build_manual()))
    if path.endswith(".html") and isinstance(response, FileResponse):
        text = response.getvalue().decode()
        page = HttpResponse(text)
        scripts = (part.partition("</script>")[0] for part in text.split("<script>")[1:])
        hashes = (base64.b64encode(sha256(script.encode()).digest()).decode() for script in scripts)
        # The styles and icons of its search are in its script.
        policy = {"style-src": [UNSAFE_INLINE], "img-src": ["data:"]}
        policy["script-src"] = [f"'sha256-{one}'" for one in hashes]
        page._csp_update = policy  # type: ignore[attr-defined]
        return page
    return cast("HttpResponse", response)


@open_read
def recipe(request: HttpRequest, name: str) -> HttpResponse:  # noqa: ARG001
    """Return a shipped recipe as a TOML file."""
    try:
        content = recipe_file(name)
    except LookupError as error:
        raise Http404 from error
    return as_download(HttpResponse(content, content_type="application/toml; charset=utf-8"), f"{name}.toml")


@open_read
def downloads(request: HttpRequest) -> HttpResponse:
    """Show how to install the program ``vp``."""
    return render(request, "documentation/downloads.html", {"program": describe_program(request)})


@require_safe
def program_file(request: HttpRequest, name: str) -> HttpResponse:  # noqa: ARG001
    """Return the wheel of ``vp``; what asks for another one is a program, which no page to log in would help."""
    wheel = build_wheel()
    if name != wheel.name:
        raise Http404
    response = as_download(HttpResponse(wheel.content, content_type="application/octet-stream"), wheel.name)
    response["Cache-Control"] = "no-store"
    return response
