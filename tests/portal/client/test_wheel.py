"""The file that is ``vp``: what it holds, what it needs, and that it runs where nothing else of ours is."""

import hashlib
import io
import os
import re
import subprocess
import sys
import zipfile

import pytest
from django.urls import reverse

from common.memory import format_size
from portal.client.wheel import PACKAGE, PYTHON, build_wheel


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A folder into which pip put the served file and nothing else."""
    folder = tmp_path_factory.mktemp("installed")
    wheel = build_wheel()
    (folder / wheel.name).write_bytes(wheel.content)
    command = [sys.executable, "-m", "pip", "install", "--no-deps", "--no-index", "--no-compile", "--quiet"]
    subprocess.run([*command, "--target", str(folder / "lib"), str(folder / wheel.name)], check=True, timeout=60)
    return folder


@pytest.fixture
def vp(installed, tmp_path):
    """Runs the installed program; the packages that it needs are those of this environment."""

    def run(*words):
        environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHONPATH": str(installed / "lib")}
        command = [sys.executable, "-P", installed / "lib" / "bin" / "vp", *map(str, words)]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=tmp_path, env=environment)

    return run


def test_wheel_holds_nothing_of_the_portal_itself():
    names = zipfile.ZipFile(io.BytesIO(build_wheel().content)).namelist()
    assert not [name for name in names if "/app/" in name or "django" in name]
    parts = {name.split("/")[3] for name in names if name.startswith(f"{PACKAGE}/lib/portal/")}
    assert parts == {"__init__.py", "client", "intake"}


def test_installed_file_is_the_program(vp):
    answer = vp("--help")
    assert (answer.returncode, "verify" in answer.stdout) == (0, True), answer.stderr
    answer = vp("status")
    assert (answer.returncode, answer.stderr[:13]) == (2, "Which portal?")


EVERY_HELP = """
import sys, voiceprivacy_vp
from portal.client.commands import COMMANDS
from portal.client.main import main
print(sys.modules["portal"].__path__)
sys.exit(any(main([*name.split(), "--help"]) for part in COMMANDS.values() for name in part))
"""


def test_installed_file_holds_every_command(installed, tmp_path):
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(installed / "lib")}
    command = [sys.executable, "-P", "-c", EVERY_HELP]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=tmp_path, env=environment)
    assert (answer.returncode, answer.stderr) == (0, "")
    assert str(installed) in answer.stdout.splitlines()[0]


@pytest.mark.django_db
def test_portal_serves_the_file_with_its_hash_to_everybody(client):
    page = client.get(reverse("downloads:page")).content.decode()
    assert 'href="/downloads/"' not in page
    wheel = build_wheel()
    assert wheel.sha256 in page
    assert f"Needs Python {PYTHON} or newer" in page
    assert f"The file has {format_size(len(wheel.content))};" in page.replace("\u00a0", " ")
    address = re.search(r"pip install http://testserver(\S+\.whl)", page)[1]
    answer = client.get(address)
    assert hashlib.sha256(answer.content).hexdigest() == wheel.sha256
    assert client.get(address.replace("0.1.0", "0.0.9")).status_code == 404
