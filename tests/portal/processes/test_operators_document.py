"""docs/operator.md followed on two hosts: the wheel, PostgreSQL, Redis, a bucket, nginx; speech in, a leaderboard out.

The commands are those of its table under *Production*, the settings those of deploy/portal.env, and the proxy is
deploy/nginx.conf. Each host has a data folder of its own, and nothing lies in both.
"""

import re
import socket
from types import SimpleNamespace

import pytest
import requests
from django.conf import settings
from django.db import connection

from portal.jobs.models import Job, JobState
from tests.browsing import PATIENCE_S
from tests.mails import Mails
from tests.portal.browser import test_from_zero as journey
from tests.portal.browser.journey import PATIENT, copy_speech
from tests.portal.processes.programs import free_port, wait_until
from tests.portal.processes.proxying import proxy, require_nginx
from tests.portal.processes.test_installed import install_into_empty_environment, install_wheel

pytestmark = pytest.mark.slow  # two hosts set up as the operator's manual says

NAME = "localhost"  # in place of portal.example.org
ENDED = (JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED)
# Which host runs each command of the document.
WEB_HOST = {"migrate", "web", "worker --queues mail,intake,light", "scheduler", "first-account"}
OTHER_HOST = {"worker --queues cpu", "worker --queues gpu"}


def read_commands():
    """The commands of the table under *Production*."""
    text = (settings.BASE_DIR / "docs" / "operator.md").read_text()
    section = text.partition("\n## Production\n")[2].partition("\n## ")[0]
    return re.findall(r"^\| `voiceprivacy ([^`]+)` \|", section, re.MULTILINE)


def read_settings(**changed):
    """Those of deploy/portal.env, with what stands there in a comment; what has to be changed there is given."""
    text = (settings.BASE_DIR / "deploy" / "portal.env").read_text()
    known = dict(re.findall(r"^#?([A-Z_]+)=(.*)$", text, re.MULTILINE))
    del known["PORTAL_X_ACCEL"]  # “not with files in a bucket”
    assert changed.keys() <= known.keys(), changed.keys() - known.keys()
    known |= changed
    assert not [line for line in known.items() if "CHANGE-ME" in line[1] or "example.org" in line[1]]
    return known


@pytest.fixture
def mails():
    with Mails() as server:
        yield server
        server.shutdown()


@pytest.fixture
def database(alone, new_database):
    """Address of a new, empty database, which this process reads, too."""
    if not settings.CELERY_BROKER_URL.startswith("redis"):
        pytest.skip("two hosts need PostgreSQL and Redis: python -m tests.services -- pytest …")
    url = new_database()
    known = connection.settings_dict["NAME"]
    connection.close()
    connection.settings_dict["NAME"] = url.rpartition("/")[2]
    yield url
    alone.kill_all()
    connection.close()
    connection.settings_dict["NAME"] = known


class Hosts:
    """The two hosts: each with a folder of its own, and the settings that both have in common."""

    def __init__(self, alone, folder, common, *, is_empty):
        self.alone, self.folder, self.common = alone, folder, common
        folder.mkdir()
        if is_empty:
            python, self.program = install_into_empty_environment(folder)
            self.place = {"python": python}
        else:
            self.program, self.place = install_wheel(folder)

    def start(self, words):
        """Run a command of the document on its host."""
        host = "web" if words in WEB_HOST else "other"
        environment = self.common | self.place | PATIENT | {"PORTAL_DATA_DIR": str(self.folder / host)}
        environment |= {"DJANGO_SETTINGS_MODULE": "portal.config.settings"}
        name, *options = words.split()
        return self.alone.start(name, *self.program, name, *options, place=self.folder, **environment)

    def run(self, words):
        """What a command says; it ends well."""
        program = self.start(words)
        assert program.wait() == 0, program.output()
        return program.output()


@pytest.mark.filterwarnings("ignore:Unverified HTTPS request")
@pytest.mark.parametrize("installed", ["beside what the tests have", "into an empty environment"])
def test_document_leads_from_installation_on_two_hosts_to_a_leaderboard(
    installed, alone, database, bucket_store, bucket_files, mails, browser, tmp_path, monkeypatch
):
    require_nginx()
    commands = read_commands()
    assert set(commands) == WEB_HOST | OTHER_HOST
    port = free_port()
    common = read_settings(
        PORTAL_DATA_DIR="",
        PORTAL_ADDRESS=f"127.0.0.1:{port}",
        PORTAL_DATABASE_URL=database,
        PORTAL_BROKER_URL=settings.CELERY_BROKER_URL,
        PORTAL_FILES_URL=bucket_store.url,
        AWS_ACCESS_KEY_ID="test",
        AWS_SECRET_ACCESS_KEY="test",
        PORTAL_SECRET_KEY="a key of fifty characters that both hosts have alike, long enough",
        PORTAL_ALLOWED_HOSTS=f"{NAME},localhost,127.0.0.1",
        PORTAL_MAIL_URL=f"smtp://127.0.0.1:{mails.server_address[1]}",
        PORTAL_MAIL_FROM=f"Portal <portal@{NAME}>",
        PORTAL_METRICS_TOKEN="a token of the test that is long enough",
    )
    with proxy(tmp_path / "proxy", tmp_path / "nothing", port, name=NAME) as (_, tls_port):
        url = f"https://{NAME}:{tls_port}"
        is_empty = installed == "into an empty environment"
        hosts = Hosts(alone, tmp_path / "hosts", common | {"PORTAL_SITE_URL": url}, is_empty=is_empty)
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "proxy" / "fullchain.pem"))
        copy_speech(tmp_path / "hosts" / "web" / "import" / "voices", speakers_of_a_gender=2, seconds=1)

        # Nothing starts before the database is made, and says so.
        assert hosts.start("web").wait() == 1
        hosts.run("migrate")
        started = {words: hosts.start(words) for words in commands if words not in ("migrate", "first-account")}
        first_address = hosts.run("first-account")
        wait_until(lambda: ask_ready(url), "a portal that is ready")

        portal = SimpleNamespace(url=url, link_to=lambda *asked: find_link(mails, url, *asked))
        portal.program = SimpleNamespace(output=lambda: first_address)
        pages = [browser.new_context(base_url=url, ignore_https_errors=True).new_page() for _ in range(3)]
        for page in pages:
            page.context.set_default_timeout(1000 * PATIENCE_S)
        organizer, team, visitor = pages
        try:
            journey.make_first_account(organizer, portal)
            journey.import_speech(organizer, tmp_path / "hosts" / "web" / "import")
            journey.make_challenge(organizer, look)
            journey.start_baseline(organizer, look)
            journey.register(team, portal)
            journey.approve(organizer)
            journey.take_part(team, look, portal, tmp_path)
            journey.publish(organizer)
            journey.read(visitor)
        finally:
            for page in pages:
                page.context.close()

        wait_until(lambda: not Job.objects.exclude(state__in=ENDED).exists(), "the end of all jobs")
        assert [job.title for job in Job.objects.exclude(state=JobState.SUCCEEDED)] == []
        other = started["worker --queues cpu"]
        assert {job.worker for job in Job.objects.filter(kind="anonymize")} == {f"{socket.gethostname()} {other.pid}"}
        assert ": 0 differences." in hosts.run("verify")
        left = [
            path for host in ("web", "other") for name in ("files", "uploads") for path in find_left(hosts, host, name)
        ]
        assert left == []
        assert not any(name.startswith("portal/uploads/") for name in bucket_store.names())
        for words, program in started.items():
            assert program.is_running, f"{words}: {program.output()}"


def look(page, name):
    """The pages of the journey are looked at by its own test."""


def ask_ready(url):
    """The checks of /health/ready once all are fine."""
    try:
        answer = requests.get(f"{url}/health/ready", verify=False, timeout=30)
    except requests.RequestException:
        return None
    return answer.json()["checks"] if answer.ok else None


def find_link(mails, url, address, words, path):
    """Address in the newest mail to somebody with these words, without the host."""
    text = wait_until(lambda: mails.find(address, words), f"a mail to {address}: “{words}”")
    return re.findall(rf"{re.escape(url)}({path}\S*)", text)[0]


def find_left(hosts, host, name):
    """What lies in a folder of a host's data folder."""
    return [path for path in (hosts.folder / host / name).glob("**/*") if path.is_file()]
