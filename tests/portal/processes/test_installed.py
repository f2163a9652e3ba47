"""The portal as pip installs it: the wheel is complete, and a page of it opens where no checkout is."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

import pytest
from django.conf import settings

from tests.portal.processes.programs import PATIENCE_S, free_port, wait_until

pytest.importorskip("setuptools", reason="setuptools, which builds the wheel, is not installed")
ROOT = Path(settings.BASE_DIR)
OURS = ("common", "speech", "portal", "listening", "evaluation", "anonymization")
LIST = """
import json
from setuptools import Distribution
distribution = Distribution({"script_name": "setup.py"})
distribution.parse_config_files()
build = distribution.get_command_obj("build_py")
build.ensure_finalized()
print(json.dumps(sorted(build.get_output_mapping().values())))
"""


def test_wheel_holds_every_file_of_the_packages_and_of_the_pages():
    listed = subprocess.run([sys.executable, "-c", LIST], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    files = (path for name in OURS for path in (ROOT / name).rglob("*"))
    expected = {
        path.relative_to(ROOT).as_posix() for path in files if path.is_file() and "__pycache__" not in path.parts
    }
    for shown, folder in {
        "templates": "templates",
        "static": "static",
        "docs": "docs",
        "deploy": "deploy",
        "demo": "demo/corpus",
    }.items():
        inside = (path.relative_to(ROOT / folder) for path in (ROOT / folder).rglob("*") if path.is_file())
        expected |= {f"portal/files/{shown}/{path.as_posix()}" for path in inside}
    expected.add("portal/files/demo_t04.zip")
    assert set(json.loads(listed)) ^ expected == set()


def install_wheel(folder):
    """Build the wheel and install it into a folder, without what it needs; the program, and what finds its code."""
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    subprocess.run(
        [*pip, "wheel", "--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", folder, ROOT], check=True
    )
    [wheel] = folder.glob("voiceprivacy_portal-*.whl")
    subprocess.run([*pip, "install", "--no-deps", "--no-index", "--target", folder / "lib", wheel], check=True)
    return ["-P", str(folder / "lib" / "bin" / "voiceprivacy")], {"PYTHONPATH": str(folder / "lib")}


def install_into_empty_environment(folder):
    """Build the wheel and install it as an operator does, with all that it needs; the interpreter and its program."""
    install_wheel(folder)
    subprocess.run([sys.executable, "-m", "venv", folder / "environment"], check=True)
    python = folder / "environment" / "bin" / "python"
    pip = [python, "-m", "pip", "--quiet", "--disable-pip-version-check", "install"]
    [wheel] = folder.glob("voiceprivacy_portal-*.whl")
    subprocess.run([*pip, "--require-hashes", "--requirement", ROOT / "requirements.txt"], check=True)
    subprocess.run([*pip, wheel], check=True)
    return str(python), [str(folder / "environment" / "bin" / "voiceprivacy")]


@pytest.mark.slow  # a wheel is built and installed
def test_installed_portal_migrates_and_serves_a_page_with_its_style(tmp_path):
    program, place = install_wheel(tmp_path)
    program = [sys.executable, *program]
    address = f"127.0.0.1:{free_port()}"
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PORTAL_", "DJANGO_", "TEST"))}
    clean |= place | {"PORTAL_ADDRESS": address, "PORTAL_DATA_DIR": str(tmp_path / "var")}

    def run(*words):
        answer = subprocess.run(
            [*program, *words], cwd=tmp_path, env=clean, capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )
        return answer.returncode, (answer.stdout + answer.stderr).strip()

    code, said = run("web")
    assert re.fullmatch(r"CommandError: \d+ migrations are not applied\. Run voiceprivacy migrate\.", said)
    assert code == 1
    assert run("migrate", "--verbosity", "0") == (0, "")
    assert f"http://{address}/first-account/" in run("first-account")[1]
    server = subprocess.Popen([*program, "web"], cwd=tmp_path, env=clean)
    try:

        def page():
            try:
                with urlopen(f"http://{address}/", timeout=10) as answer:
                    return answer.read().decode()
            except OSError:
                assert server.poll() is None
                return ""

        style = re.search(r'href="(/static/portal/[^"]+\.css)"', wait_until(page, "the first page"))[1]
        with urlopen(f"http://{address}{style}", timeout=10) as answer:
            assert answer.headers["Content-Type"].startswith("text/css")
    finally:
        server.terminate()
        server.wait(PATIENCE_S)
