"""The examples of `deploy/` name only what exists: commands, settings, queues, addresses, files."""

import configparser
import re
import shlex

import pytest
import yaml
from django.conf import settings
from django.core.management import get_commands, load_command_class
from django.urls import resolve

from portal.config.environment import VARIABLES, read_environment
from portal.core.logs import _OPENS
from portal.core.signed_urls import ACCEL_LOCATION

DEPLOY = settings.BASE_DIR / "deploy"
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
INSTRUCTIONS = {"ARG", "FROM", "RUN", "ENV", "WORKDIR", "COPY", "USER", "VOLUME", "EXPOSE", "ENTRYPOINT", "CMD"}
KNOWN = {f"PORTAL_{one.name}" for one in VARIABLES}


def read_env_file(text=None):
    lines = (text or (DEPLOY / "portal.env").read_text()).splitlines()
    pairs = (line.split("=", 1) for line in lines if line and line[0] != "#")
    return {name: "".join(shlex.split(value)) for name, value in pairs}


def require_command(words):
    """A command of the portal that takes these words."""
    name, *rest = words
    name = name.replace("-", "_")
    assert name in get_commands(), words
    parser = load_command_class(get_commands()[name], name).create_parser("voiceprivacy", name)
    parser.parse_args(rest)


@pytest.fixture(scope="module")
def compose():
    return yaml.safe_load((DEPLOY / "compose.yaml").read_text())


def test_settings_of_the_example_are_read():
    found = read_environment(read_env_file())
    assert (found["HTTPS"], found["BEHIND_PROXY"], found["LOG_FORMAT"]) == (True, True, "json")


def test_every_setting_named_exists():
    for file in (path for path in DEPLOY.rglob("*") if path.is_file()):
        named = set(re.findall(r"PORTAL_[A-Z_]+", file.read_text()))
        assert named <= KNOWN, file


def test_compose_starts_commands_that_exist(compose):
    services = compose["services"]
    ours = {name: one for name, one in services.items() if str(one["image"]).startswith("voiceprivacy-portal")}
    assert {one["command"][0] for one in ours.values()} == {"migrate", "web", "scheduler", "worker"}
    for one in ours.values():
        require_command(one["command"])
        assert set(one["depends_on"]) <= services.keys()
        assert (DEPLOY / one["env_file"]).is_file()
        assert (DEPLOY / one["build"]["context"] / one["build"]["dockerfile"]).is_file()
        assert {volume.split(":")[0] for volume in one["volumes"]} <= compose["volumes"].keys()
    [address] = re.findall(r"http://[\w:]+(/[\w/]+)", services["web"]["healthcheck"]["test"][-1])
    assert resolve(address).url_name == "live"
    assert (DEPLOY / services["proxy"]["volumes"][0].split(":")[0]).is_file()
    for words in re.findall(r"\bs\|([^|]+)\|", services["proxy"]["command"][-1]):
        assert words in (DEPLOY / "nginx.conf").read_text()


def test_workers_on_demand_are_started_by_commands_that_exist_and_a_metric_that_is_told():
    script = (DEPLOY / "slurm" / "worker-gpu.sbatch").read_text()
    [line] = re.findall(r"^exec /opt/voiceprivacy/bin/voiceprivacy (.+)$", script, re.MULTILINE)
    require_command(shlex.split(line))
    scaled = yaml.safe_load((DEPLOY / "kubernetes" / "worker-gpu.yaml").read_text())["spec"]
    [container] = scaled["jobTargetRef"]["template"]["spec"]["containers"]
    require_command(container["args"])
    [trigger] = scaled["triggers"]
    [metric] = re.findall(r"voiceprivacy_(\w+)", trigger["metadata"]["query"])
    assert f'"{metric}"' in (settings.BASE_DIR / "portal" / "operations" / "metrics.py").read_text()


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_unit_starts_a_command_that_exists(unit):
    parser = configparser.ConfigParser(interpolation=None)
    parser.optionxform = str
    parser.read(unit)
    assert parser.sections() == ["Unit", "Service", "Install"]
    program, *words = shlex.split(parser["Service"]["ExecStart"].replace("%i", "cpu"))
    assert program == "/opt/voiceprivacy/bin/voiceprivacy"
    require_command(words)
    state = f"/var/lib/{parser['Service']['StateDirectory']}"
    assert state == parser["Service"]["WorkingDirectory"] == read_env_file()["PORTAL_DATA_DIR"]
    assert (parser["Service"]["StateDirectoryMode"], parser["Service"]["UMask"]) == ("0750", "0027")


def test_dockerfile_copies_and_starts_what_exists():
    text = (DEPLOY / "Dockerfile").read_text().replace("\\\n", " ")
    lines = [line.split() for line in text.splitlines() if line and line[0] != "#"]
    assert {line[0] for line in lines} <= INSTRUCTIONS
    for line in lines:
        if line[0] == "COPY" and not line[1].startswith("--from"):
            assert all((settings.BASE_DIR / source).exists() for source in line[1:-1]), line
    for file in re.findall(r"requirements/?[\w$]*\.txt", text):
        for part in ("whisper", "moonshine", "kokoro", "sentry"):
            assert (settings.BASE_DIR / file.replace("$part", part)).is_file()
    require_command(yaml.safe_load(re.search(r"^CMD (.+)$", text, re.MULTILINE)[1]))
    # Its user may write there, and it outlasts the container.
    [volume] = re.findall(r"^VOLUME (.+)$", text, re.MULTILINE)
    [models] = re.findall(r"PORTAL_MODELS_DIR=(\S+)", text)
    assert models.startswith(f"{volume}/")


TOKEN = re.compile(r"""#[^\n]*|(?P<sign>[{};])|"(?P<double>[^"]*)"|'(?P<single>[^']*)'|(?P<word>[^\s{};"'#]+)|\s+""")


def directives(text):
    """The directives of nginx, each with the blocks around it; braces, quotes and semicolons have to be in order."""
    path, words, found, end = [], [], [], 0
    while end < len(text):
        token = TOKEN.match(text, end)
        assert token is not None, text[end : end + 40]
        end = token.end()
        if token["sign"] == ";":
            found.append((tuple(path), tuple(words)))
        elif token["sign"] == "{":
            path.append(" ".join(words))
        elif token["sign"] == "}":
            assert words == []
            path.pop()
        elif token.lastgroup:
            words.append(token[token.lastgroup])
        if token["sign"]:
            words = []
    assert (path, words) == ([], [])
    return found


def test_proxy_forwards_addresses_takes_uploads_and_hides_secrets():
    text = (DEPLOY / "nginx.conf").read_text()
    found = directives(text)
    server = [(path[1:], words) for path, words in found if path and path[0] == "server"]
    headers = {words[1]: words[2] for path, words in server if words[0] == "proxy_set_header" and path == ()}
    assert headers["X-Forwarded-For"] == "$proxy_add_x_forwarded_for"
    assert headers["X-Forwarded-Proto"] == "$scheme"
    assert headers["Host"] == "$http_host"
    uploads = {words for path, words in server if path == ("location /api/uploads/",)}
    assert {("proxy_request_buffering", "off"), ("client_max_body_size", "0")} <= uploads
    ours = {"location /", "location @maintenance", f"location {ACCEL_LOCATION}"}
    assert ("internal",) in [words for path, words in server if path == (f"location {ACCEL_LOCATION}",)]
    for path in {path[0] for path, _ in server if path} - ours:
        assert resolve(path.split()[-1])
    assert any(words[0] == "error_page" and words[-1] == "@maintenance" for _, words in server)
    assert [words for path, words in server if path == ("location = /metrics",)] == [("deny", "all")]
    secrets = _OPENS.replace("(?:/|%2F)", "/")
    assert f"({secrets})" in text
    assert any(words[:2] == ("access_log", "/var/log/nginx/portal.log") and words[2] == "seen" for _, words in server)


def read_manual():
    return (settings.BASE_DIR / "docs" / "operator.md").read_text()


def test_commands_of_the_manual_exist():
    """Whatever stands as `voiceprivacy …` is taken by the command line; names in capitals stand for any words."""
    found = set(re.findall(r"`voiceprivacy ([^`]+)`", read_manual()))
    assert {words.split()[0] for words in found} >= {"verify", "erase", "migrate", "worker", "web"}
    for words in found:
        require_command(shlex.split(words))
