"""The environment is read strictly, and its documentation says what the code does."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from portal.config.environment import PREFIX, VARIABLES, FilesPlace, MailServer, read_environment, settings_table

ROOT = Path(__file__).resolve().parents[3]


def manage(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith((PREFIX, "DJANGO_"))}
    return subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=ROOT,
        env=clean | {"DJANGO_SETTINGS_MODULE": "portal.config.settings"} | environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def print_settings(what: str, **environment: str) -> list[str]:
    """The words that a fresh process prints of its settings; no app is loaded."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith((PREFIX, "DJANGO_"))}
    done = subprocess.run(
        [sys.executable, "-c", f"from django.conf import settings as s; print({what})"],
        cwd=ROOT,
        env=clean | {"DJANGO_SETTINGS_MODULE": "portal.config.settings"} | environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("DEBUG", "maybe", "PORTAL_DEBUG: expected true or false, found 'maybe'."),
        ("WEB_THREADS", "0", "PORTAL_WEB_THREADS: expected a whole number of at least 1, found '0'."),
        (
            "ANONYMIZERS_DIR",
            "/nonexistent",
            "PORTAL_ANONYMIZERS_DIR: expected the absolute path of an existing folder, found '/nonexistent'.",
        ),
        ("JOB_HARD_LIMIT_S", "60", "PORTAL_JOB_SOFT_LIMIT_S: expected less than PORTAL_JOB_HARD_LIMIT_S."),
        ("JOB_LOST_AFTER_S", "10", "PORTAL_JOB_LOST_AFTER_S: expected more than twice PORTAL_JOB_HEARTBEAT_S."),
    ],
)
def test_value_that_does_not_parse_is_named(name, text, sentence):
    with pytest.raises(ImproperlyConfigured) as raised:
        read_environment({PREFIX + name: text})
    assert str(raised.value) == f"The environment cannot be used:\n{sentence}"


@pytest.mark.parametrize(
    ("text", "host", "port", "user", "password", "starttls", "tls"),
    [
        ("smtp://me:p%40ss%2Fword@mail.example.org:587/?tls", "mail.example.org", 587, "me", "p@ss/word", True, False),
        ("smtps://me:word@mail.example.org", "mail.example.org", 465, "me", "word", False, True),
    ],
)
def test_mail_server_is_read_from_its_url(text, host, port, user, password, starttls, tls):
    found = read_environment({"PORTAL_MAIL_URL": text})["MAIL_URL"]
    assert found == MailServer(host, port, user, password, starttls=starttls, tls=tls)


@pytest.mark.parametrize("text", ["http://mail.example.org", "smtps://mail.example.org/?tls", "smtp://[::1"])
def test_mail_server_that_does_not_parse_is_refused_without_its_password(text):
    with pytest.raises(ImproperlyConfigured) as raised:
        read_environment({"PORTAL_MAIL_URL": text.replace("//", "//me:secret@")})
    assert "PORTAL_MAIL_URL: expected smtp://USER:PASSWORD@HOST:PORT" in str(raised.value)
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize("part", ["speech", "/nonexistent"])
def test_import_root_must_be_an_existing_folder_by_its_absolute_path(part, tmp_path):
    with pytest.raises(ImproperlyConfigured) as raised:
        read_environment({"PORTAL_IMPORT_ROOTS": f"{tmp_path}, {part}"})
    assert str(raised.value).splitlines()[1:] == [
        f"PORTAL_IMPORT_ROOTS: expected absolute paths of existing folders with commas between them ({part} is not), "
        f"found '{tmp_path}, {part}'."
    ]


def test_import_roots_have_commas_between_them_and_may_lie_at_home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("one", "two : three"):
        (tmp_path / name).mkdir()
    found = read_environment({"PORTAL_IMPORT_ROOTS": f"{tmp_path}/one, ~/two : three,"})["IMPORT_ROOTS"]
    assert found == [tmp_path / "one", tmp_path / "two : three"]


def test_name_that_is_near_no_setting_is_refused():
    with pytest.raises(ImproperlyConfigured) as raised:
        read_environment({"PORTAL_FOO": "x"})
    assert "PORTAL_FOO: there is no such setting. docs/settings.md lists all." in str(raised.value)


def test_documentation_holds_the_table_of_the_code():
    assert settings_table() in (ROOT / "docs" / "settings.md").read_text()


def test_wrong_setting_stops_the_portal_with_a_sentence_and_no_traceback(tmp_path):
    answer = manage("check", PORTAL_DATA_DIR=str(tmp_path), PORTAL_DEBUGG="true")
    assert answer.returncode == 1
    assert "PORTAL_DEBUGG: there is no such setting. Did you mean PORTAL_DEBUG?" in answer.stderr
    assert "Traceback" not in answer.stderr


def test_secret_key_is_made_once_and_readable_by_its_owner_only(tmp_path):
    first, again = (print_settings("s.SECRET_KEY", PORTAL_DATA_DIR=str(tmp_path)) for _ in range(2))
    secret = tmp_path / "secret_key"
    assert first == again == [secret.read_text()]
    assert (secret.stat().st_mode & 0o777, len(secret.read_text())) == (0o600, 64)


def test_every_setting_that_code_or_documentation_names_exists() -> None:
    known = {PREFIX + one.name for one in VARIABLES}
    folders = ("common", "speech", "evaluation", "anonymization", "listening", "portal", "docs")
    files = [path for name in folders for kind in ("*.py", "*.md") for path in (ROOT / name).rglob(kind)]
    quoted = re.compile(r"""["'`](PORTAL_[A-Z_]+)["'`=]""")
    named = {word: path for path in files for word in quoted.findall(path.read_text())}
    assert "PORTAL_MODELS_DIR" in named
    assert {word: path for word, path in named.items() if word not in known} == {}


@pytest.mark.parametrize(
    ("target", "environment", "given", "address"),
    [
        ("run", {"PORTAL_ADDRESS": "127.0.0.1:9000"}, [], "127.0.0.1:9000"),
        ("run", {"PORTAL_ADDRESS": "127.0.0.1:9000"}, ["ADDRESS=127.0.0.1:9001"], "127.0.0.1:9001"),
        ("demo", {}, [], "0.0.0.0:8000"),
    ],
)
def test_make_starts_the_portal_at_the_address_of_the_environment(target, environment, given, address):
    inherited = (PREFIX, "MAKE", "ADDRESS")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(inherited)}
    root = Path(__file__).parents[3]
    said = subprocess.run(
        ["make", "-n", target, *given], cwd=root, env=clean | environment, capture_output=True, text=True, check=True
    ).stdout
    assert f'PORTAL_ADDRESS="{address}" ' in said


def test_place_of_files_is_read_strictly():
    read = lambda text: read_environment({"PORTAL_FILES_URL": text})["FILES_URL"]  # noqa: E731
    assert read("") == FilesPlace()
    assert read("file:///srv/portal%20files") == FilesPlace(folder=Path("/srv/portal files"))
    assert read("s3://K:a%2Fb@portal-files/vpc/2024?endpoint=https://s3.example.org:9000&region=eu") == FilesPlace(
        None, "portal-files", "vpc/2024", "https://s3.example.org:9000", "eu", "K", "a/b"
    )
    for text, said in (
        ("files", "expected file:///FOLDER or s3://BUCKET"),
        ("s3://K@portal-files", "both keys"),
        ("s3://portal-files/../b", "a prefix of letters"),
        ("s3://portal-files?endpoint=s3.example.org", "http://HOST or https://HOST"),
    ):
        with pytest.raises(ImproperlyConfigured, match=said) as raised:
            read(text)
        assert "portal-files" not in str(raised.value)
