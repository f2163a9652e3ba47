"""The example of nginx before a portal: TLS, files that nginx sends after the portal's check, nothing else opened."""

import socket
import ssl
import struct
import subprocess
import threading
import time
from contextlib import ExitStack, closing, contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from uuid import uuid4

import pytest
import requests
import yaml
from django.conf import settings
from django.test import override_settings

from portal.core.signed_urls import ACCEL_LOCATION, signed_address
from portal.core.storage import store_bytes
from tests.portal.factories import client_of, make_user
from tests.portal.processes.programs import free_port, wait_until
from tests.portal.processes.proxying import HOST, make_certificate, proxy, require_nginx, run_nginx, write_configuration
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


@pytest.mark.filterwarnings("ignore:Unverified HTTPS request")
def test_nginx_sends_files_to_the_session_that_may_have_them_and_to_nobody_else(proxied):
    web, plain, port, folder = proxied
    session, other = client_of(make_user()).session, client_of(make_user()).session
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


@pytest.mark.filterwarnings("ignore:Unverified HTTPS request")
def test_strangers_who_never_finish_what_they_send_keep_nobody_waiting(proxied):
    _, _, port, _ = proxied
    head = f"PATCH /api/uploads/{uuid4()} HTTP/1.1\r\nHost: {HOST}\r\nContent-Length: {1 << 20}\r\n\r\nx".encode()
    encrypted = ssl._create_unverified_context()
    with ExitStack() as connections:
        for _ in range(60):
            line = connections.enter_context(closing(socket.create_connection(("127.0.0.1", port))))
            connections.enter_context(encrypted.wrap_socket(line)).sendall(head)
        for _ in range(5):
            assert ask(port, "/health/live").status_code == 200


class Names:
    """A server of names that knows `web` alone, at an address that changes as with a container that is made anew."""

    def __init__(self, address):
        self.address = address
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        threading.Thread(target=self._answer, daemon=True).start()

    def _answer(self):
        with suppress(OSError):
            while True:
                asked, client = self.socket.recvfrom(512)
                if not asked:
                    return
                question = asked[12 : asked.index(b"\0", 12) + 5]
                is_known = question == b"\x03web\0\0\x01\0\x01" and self.address
                flags = 0x8180 if is_known else 0x8183
                answer = asked[:2] + struct.pack(">5H", flags, 1, 1 if is_known else 0, 0, 0) + question
                if is_known:
                    answer += b"\xc0\x0c" + struct.pack(">HHIH", 1, 1, 600, 4) + socket.inet_aton(self.address)
                self.socket.sendto(answer, client)

    def close(self):
        with suppress(OSError):  # it has no other end, and what waits for it goes on all the same
            self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()


@contextmanager
def web_container(address, port):
    """A web server that says its address, and the path and the scheme that it was asked for."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            said = f"{address} {self.path} {self.headers['X-Forwarded-Proto']} {self.headers['Host']}".encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer((address, port), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()


def write_as_container(folder):
    """What the proxy of compose.yaml makes of the example by its own command."""
    command = yaml.safe_load((settings.BASE_DIR / "deploy" / "compose.yaml").read_text())["services"]["proxy"][
        "command"
    ]
    assert command[:2] == ["sh", "-c"]
    made = folder / "default.conf"
    text = command[2].replace("$$", "$").replace("exec nginx", "echo nginx")
    for there, here in (
        (" /nginx.conf", f" {settings.BASE_DIR}/deploy/nginx.conf"),
        ("/etc/nginx/conf.d/default.conf", made),
    ):
        assert text.count(there) == 1
        text = text.replace(there, str(here))
    subprocess.run(["sh", "-c", text], check=True)
    return made.read_text()


@pytest.mark.filterwarnings("ignore:Unverified HTTPS request")
def test_proxy_of_containers_finds_a_web_server_that_was_made_anew(tmp_path):
    require_nginx()
    folder, web_port, plain, port = tmp_path / "proxy", free_port(), free_port(), free_port()
    make_certificate(folder, HOST)
    names = Names("")
    places = {"127.0.0.11": f"127.0.0.1:{names.port}", "$portal:8000": f"$portal:{web_port}"}
    places |= {"/dev/stdout": f"{folder}/portal.log", "/dev/stderr": f"{folder}/error.log"}
    text = write_as_container(folder)
    configuration = write_configuration(folder, tmp_path, HOST, plain, port, text, places)
    with closing(names), run_nginx(folder, configuration, HOST, port):
        missing = ask(port, "/")  # it starts before the web server has a name
        assert (missing.status_code, missing.headers["Retry-After"]) == (503, "60")
        for address in ("127.0.0.1", "127.0.0.2"):
            names.address = address
            with web_container(address, web_port):
                wait_until(lambda: ask(port, "/").status_code == 200, f"the web server at {address}", seconds=20)
                for path in ("/editions/?page=2&by=a%20b", "/api/uploads/7/parts"):
                    assert ask(port, path).text == f"{address} {path} https {HOST}"
            assert ask(port, "/").status_code == 503
