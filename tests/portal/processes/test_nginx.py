"""The example of nginx before a portal: TLS, files that nginx sends after the portal's check, nothing else opened."""

import time

import pytest
import requests
from django.conf import settings
from django.test import Client, override_settings

from portal.core.media import ACCEL_LOCATION, signed_address
from portal.core.storage import store_bytes
from tests.portal.factories import make_user
from tests.portal.processes.proxying import HOST, proxy, require_nginx
from tests.portal.processes.uploading import WebServer

CONTENT = bytes(range(256)) * 400


@pytest.fixture
def files(tmp_path):
    """The folder of files, which this process has in common with the web server."""
    folder = tmp_path / "files"
    place = {"BACKEND": "portal.core.storage.AtomicFileSystemStorage", "OPTIONS": {"location": folder}}
    with override_settings(STORAGES=settings.STORAGES | {"default": place}):
        yield folder


@pytest.fixture
def proxied(alone, files, tmp_path):
    """The web server behind nginx: what it sends, and the address at which it is reached."""
    require_nginx()
    web = WebServer(
        alone,
        PORTAL_FILES_URL=files.as_uri(),
        PORTAL_X_ACCEL="true",
        PORTAL_BEHIND_PROXY="true",
        PORTAL_HTTPS="true",
        PORTAL_ALLOWED_HOSTS=f"{HOST},127.0.0.1",
        PORTAL_SECRET_KEY=settings.SECRET_KEY,
        PORTAL_METRICS_TOKEN="token-of-the-test-that-nobody-needs",
    )
    folder = tmp_path / "proxy"
    with proxy(folder, files, web.port) as (plain, port):
        yield web, plain, port, folder


def ask(port, path, *, method="get", cookies=None, **headers):
    """An answer of nginx, by the name of the portal."""
    address = f"https://127.0.0.1:{port}{path}"
    kept = {"headers": {"Host": HOST, **headers}, "cookies": cookies, "timeout": 30, "allow_redirects": False}
    return requests.request(method, address, verify=False, **kept)


def session_of(user):
    client = Client()
    client.force_login(user)
    return client.session


@pytest.mark.filterwarnings("ignore:Unverified HTTPS request")
def test_nginx_sends_files_to_the_session_that_may_have_them_and_to_nobody_else(proxied):
    web, plain, port, folder = proxied
    session, other = session_of(make_user()), session_of(make_user())
    key = store_bytes(CONTENT, ".flac")
    address = signed_address(type("Request", (), {"session": session})(), key)
    own, foreign = ({"sessionid": one.session_key} for one in (session, other))

    whole = ask(port, address, cookies=own)
    assert (whole.status_code, whole.content) == (200, CONTENT)
    assert whole.headers["Content-Type"] == "audio/flac"
    assert whole.headers["Cache-Control"].startswith("private")
    assert whole.headers["X-Content-Type-Options"] == "nosniff"
    assert whole.headers["Content-Security-Policy"].startswith("default-src 'none'")
    assert "X-Accel-Redirect" not in whole.headers
    assert key.rpartition("/")[2].partition(".")[0] not in str(whole.headers)
    part = ask(port, address, cookies=own, Range="bytes=100-199")
    assert (part.status_code, part.content) == (206, CONTENT[100:200])
    assert part.headers["Content-Range"] == f"bytes 100-199/{len(CONTENT)}"
    assert ask(port, address, cookies=own, Range=f"bytes={len(CONTENT)}-").status_code == 416
    # The portal itself sent no byte of it.
    direct = requests.get(f"{web.address}{address}", cookies=own, headers={"X-Forwarded-Proto": "https"}, timeout=30)
    assert (direct.content, direct.headers["X-Accel-Redirect"]) == (b"", f"{ACCEL_LOCATION}{key}")

    for cookies in (foreign, None):
        assert ask(port, address, cookies=cookies).status_code == 404
    assert ask(port, f"{ACCEL_LOCATION}{key}", cookies=own).status_code == 404
    assert ask(port, f"{ACCEL_LOCATION}../portal.env", cookies=own).status_code in (400, 404)
    assert ask(port, "/metrics", Authorization="Bearer token-of-the-test-that-nobody-needs").status_code == 403

    moved = requests.get(
        f"http://127.0.0.1:{plain}/editions/", headers={"Host": HOST}, timeout=30, allow_redirects=False
    )
    assert (moved.status_code, moved.headers["Location"]) == (301, f"https://{HOST}/editions/")
    page = ask(port, "/editions/")
    assert page.status_code == 200
    assert page.headers["Strict-Transport-Security"].startswith("max-age=31536000")
    time.sleep(0.2)  # nginx writes a line after its answer
    seen = (folder / "portal.log").read_text()
    assert "/media/..." in seen
    assert address.rpartition("/")[2] not in seen
