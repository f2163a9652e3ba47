"""The program ``vp`` as this portal hands it out: its file, and the line that installs it."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from django.urls import reverse

from portal.client import RELEASE
from portal.client.wheel import PYTHON, REQUIRES, build_wheel


def describe_program(request: HttpRequest) -> dict[str, Any]:
    """Return what ``components/install_vp.html`` shows, and the page of the program."""
    wheel = build_wheel()
    address = request.build_absolute_uri(reverse("downloads:file", args=[wheel.name]))
    return {
        "line": f"python3 -m venv vp && . vp/bin/activate && pip install {address}",
        "log_in": f"vp login --server {request.build_absolute_uri('/').rstrip('/')}",
        "pipx": f"pipx install {address}",
        "uv": f"uv tool install {address}",
        "file": wheel.name,
        "address": address,
        "sha256": wheel.sha256,
        "bytes": len(wheel.content),
        "version": RELEASE,
        "python": PYTHON,
        "packages": ", ".join(REQUIRES),
    }
