"""The examples of `deploy/` name only what exists: commands, settings, queues, addresses, files."""

import configparser
import re
import shlex
import subprocess

import pytest
import yaml
from django.conf import settings
from django.core.management import get_commands, load_command_class
from django.urls import resolve

from evaluation.cli.main import _parser as command_line
from portal.config.environment import VARIABLES, read_environment
from portal.core.logs import _OPENS
from portal.core.signed_urls import ACCEL_LOCATION
from portal.documentation.manual import manual_page

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


def test_shell_reads_the_settings_as_systemd_does(tmp_path):
    """The example of Slurm sources them, with whatever stands there in a comment."""
    text = re.sub(r"^#(?=[A-Z_]+=)", "", (DEPLOY / "portal.env").read_text(), flags=re.MULTILINE)
    (tmp_path / "portal.env").write_text(text)
    command = f"set -a; . {tmp_path}/portal.env; set +a; env -0"
    clean = {"PATH": "/usr/bin:/bin"}
    said = subprocess.run(["sh", "-c", command], env=clean, capture_output=True, text=True, check=True).stdout
    seen = dict(line.split("=", 1) for line in said.split("\0") if line)
    known = read_env_file(text)
    assert "region=" in known["PORTAL_FILES_URL"]
    assert {name: seen.get(name) for name in known} == known


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


def fill_in(text, **given):
    """As docker compose puts variables in: ${NAME:-default}, where the default may hold another, and ${NAME:?words}."""
    pattern = re.compile(r"\$\{(\w+)(?::([-?])((?:[^${}]|\$\{[^{}]*\})*))?\}")

    def value(found):
        name, kind, rest = found.groups()
        return given.get(name) or (fill_in(rest, **given) if kind == "-" else pytest.fail(f"{name} is not given"))

    return pattern.sub(value, text)


@pytest.mark.parametrize(
    ("given", "bucket", "endpoint", "secret"),
    [
        ({}, "portal-files", "http://storage:9000", "letters8"),
        ({"FILES_URL": "s3://other/vpc", "FILES_KEY": "k", "FILES_SECRET": "s"}, "other", "", "s"),
        ({"FILES_URL": "file:///var/lib/voiceprivacy/files"}, "", "", "letters8"),
    ],
)
def test_containers_keep_files_in_their_own_bucket_or_where_they_are_told(compose, given, bucket, endpoint, secret):
    passwords = {"POSTGRES_PASSWORD": "secret", "STORAGE_PASSWORD": "letters8"}
    services = compose["services"]
    found = {name: fill_in(text, **passwords, **given) for name, text in services["web"]["environment"].items()}
    place = read_environment(read_env_file() | found)["FILES_URL"]
    assert (place.bucket, place.endpoint) == (bucket, endpoint)
    assert found["AWS_SECRET_ACCESS_KEY"] == secret
    made = services["bucket"]["entrypoint"][-1]
    assert "here/portal-files" in made
    assert "http://storage:9000" in made
    assert services["migrate"]["depends_on"]["bucket"]["condition"] == "service_completed_successfully"
    assert services["storage"]["volumes"][0].split(":")[0] in compose["volumes"]


def test_examples_give_short_jobs_a_worker_of_their_own(compose):
    """As `serve` does, so that no check of an archive waits for a computation."""
    started = [one["command"][2] for one in compose["services"].values() if one.get("command", [""])[0] == "worker"]
    texts = (DEPLOY / "Dockerfile").read_text() + (settings.FILES_DIR / "docs" / "operator.md").read_text()
    started += re.findall(r"worker --queues ([a-z]+(?:,[a-z]+)*)", texts)
    served = [set(queues.split(",")) for queues in started]
    assert set().union(*served) == {"mail", "intake", "light", "cpu", "gpu"}
    assert [queues for queues in served if queues & {"cpu", "gpu"} and queues & {"mail", "intake", "light"}] == []


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


def test_models_are_fetched_by_a_command_that_exists():
    examples = (DEPLOY / "compose.yaml").read_text() + read_manual()
    found = set(re.findall(r"-m evaluation (models fetch [^`\n]+)", examples))
    assert found == {"models fetch --all"}
    for words in found:
        options = command_line().parse_args(words.split())
        assert (options.action, options.all) == ("fetch", True)


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


def test_manual_shows_the_files_themselves():
    page = "".join(text for *_, text in manual_page("operator").sections)
    for part in ("proxy_request_buffering off", "ExecStart=", "ENTRYPOINT", "service_completed_successfully"):
        assert part in page


def test_manual_runs_commands_that_exist():
    text = (settings.FILES_DIR / "docs" / "operator.md").read_text()
    commands = re.findall(r"/opt/voiceprivacy/bin/voiceprivacy (.+)", text)
    assert commands
    for words in commands:
        require_command(shlex.split(words))


def read_manual():
    return (settings.BASE_DIR / "docs" / "operator.md").read_text()


def test_commands_of_the_manual_exist():
    """Whatever stands as `voiceprivacy …` is taken by the command line; names in capitals stand for any words."""
    found = set(re.findall(r"`voiceprivacy ([^`]+)`", read_manual()))
    assert {words.split()[0] for words in found} >= {"verify", "erase", "migrate", "worker", "web"}
    for words in found:
        require_command(shlex.split(words))
