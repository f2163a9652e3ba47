"""nginx with the example of deploy/, in front of a web server of a test."""

import shutil
import subprocess
import sys
from contextlib import contextmanager

import pytest
import requests
from django.conf import settings

from tests.portal.processes.programs import free_port, wait_until

# Where the system has it, and where `make` unpacks it for the tests.
PLACES = f"/usr/sbin:/usr/local/sbin:{sys.prefix}/nginx/usr/sbin"
NGINX = shutil.which("nginx") or shutil.which("nginx", path=PLACES)
HOST = "portal.example.org"


def require_nginx():
    """Skip the test with a sentence where it cannot run."""
    if NGINX is None or shutil.which("openssl") is None:
        pytest.skip("nginx or openssl is not installed here")


def read_example():
    return (settings.BASE_DIR / "deploy" / "nginx.conf").read_text()


def make_configuration(folder, files, name, web_port, plain_port, port):
    """deploy/nginx.conf with other places and ports."""
    places = {"127.0.0.1:8000": f"127.0.0.1:{web_port}", "/var/log/nginx": str(folder)}
    return write_configuration(folder, files, name, plain_port, port, read_example(), places)


def write_configuration(folder, files, name, plain_port, port, text, places):
    """A form of the example with other places and ports, and the little that stands around it on a machine."""
    for written, here in (
        *places.items(),
        ("listen 80;", f"listen 127.0.0.1:{plain_port};"),
        ("listen 443 ssl http2;", f"listen 127.0.0.1:{port} ssl http2;"),
        ("/etc/nginx/certificates", str(folder)),
        ("/var/lib/voiceprivacy/files", str(files)),
        (HOST, name),
    ):
        assert written in text, written
        text = text.replace(written, here)
    for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"):
        text = f"{name}_temp_path {folder}/{name};\n{text}"
    (folder / "portal.conf").write_text(text)
    path = folder / "nginx.conf"
    # As root its workers would be nobody, who cannot read the folder of a test.
    path.write_text(
        f"daemon off;\nuser root;\nworker_processes 1;\npid {folder}/pid;\nerror_log {folder}/start.log;\n"
        f"events {{}}\nhttp {{\ninclude {folder}/portal.conf;\n}}\n"
    )
    return path


@contextmanager
def proxy(folder, files, web_port, *, name=HOST):
    """nginx before the web server at this port; its own two ports, without and with TLS.

    The folder gets its logs, and a certificate in `fullchain.pem` for a name.
    """
    make_certificate(folder, name)
    plain, port = free_port(), free_port()
    configuration = make_configuration(folder, files, name, web_port, plain, port)
    with run_nginx(folder, configuration, name, port):
        yield plain, port


def make_certificate(folder, name):
    folder.mkdir()
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", f"/CN={name}"),
            *("-addext", f"subjectAltName=DNS:{name}"),
            *("-keyout", folder / "privkey.pem", "-out", folder / "fullchain.pem"),
        ],
        check=True,
        capture_output=True,
    )


@contextmanager
def run_nginx(folder, configuration, name, port):
    """nginx with this configuration, once `nginx -t` accepts it, until the test has ended."""
    checked = subprocess.run([NGINX, "-t", "-p", folder, "-c", configuration], capture_output=True, check=False)
    assert checked.returncode == 0, checked.stderr.decode()
    nginx = subprocess.Popen([NGINX, "-p", folder, "-c", configuration], stderr=subprocess.PIPE)
    try:
        wait_until(lambda: nginx.poll() is not None or _answers(name, port), "nginx")
        assert nginx.poll() is None, nginx.stderr.read().decode()
        yield
    finally:
        nginx.terminate()
        nginx.wait()
        nginx.stderr.close()


def _answers(name, port):
    """Whether nginx answers, be it that the web server does not."""
    try:
        requests.get(f"https://127.0.0.1:{port}/", headers={"Host": name}, verify=False, timeout=30)
    except requests.RequestException:
        return False
    return True
