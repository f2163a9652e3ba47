"""Faults during a challenge on two hosts: every job ends, and the numbers are those of a challenge without faults.

PostgreSQL, Redis and the bucket are the test's own. The web host has web server, scheduler and a worker for short jobs,
the other one a worker that computes. Two teams send systems by `vp submit`, and the portal makes a baseline.
"""

import json
import os
import shutil
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest
import redis
import requests
from django.db import connection

from tests.buckets import KEYS, Store
from tests.portal.processes.programs import Portal, free_port, wait_until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(connection.vendor != "sqlite", reason="it has servers of its own and is tried once"),
]
PATIENCE_S = 900
DRIVER = ("-m", "tests.portal.processes.two_hosts")
PROGRAMS = {
    "web": ("web", ("manage.py", "web")),
    "scheduler": ("web", ("manage.py", "scheduler")),
    "light": ("web", ("manage.py", "worker", "--queues", "mail,intake,light", "--processes", "1")),
    "cpu": ("other", ("manage.py", "worker", "--queues", "cpu", "--processes", "1")),
}


class Postgres:
    """A PostgreSQL that the test may stop; it runs as the user `postgres` where the test is root."""

    def __init__(self, folder):
        self.folder, self.port = folder, free_port()
        folder.mkdir()
        self.user = ("runuser", "-u", "postgres", "--") if os.getuid() == 0 else ()
        if self.user:
            shutil.chown(folder, "postgres")
        self.run("initdb", "-U", "postgres", "--auth", "trust")
        self.start()

    def run(self, program, *words):
        command = [*self.user, program, "-D", str(self.folder), *words]
        subprocess.run(command, check=True, cwd="/", stdout=subprocess.DEVNULL)

    def start(self):
        options = f"-p {self.port} -k {self.folder} -c listen_addresses=127.0.0.1"
        self.run("pg_ctl", "-w", "-l", str(self.folder / "log"), "-o", options, "start")

    def stop(self):
        """Stop at once, as after a power cut."""
        self.run("pg_ctl", "-m", "immediate", "stop")

    def make_database(self, name):
        with psycopg.connect(f"postgresql://postgres@127.0.0.1:{self.port}/postgres", autocommit=True) as server:
            server.execute(f'CREATE DATABASE "{name}"')
        return f"postgresql://postgres@127.0.0.1:{self.port}/{name}"


@pytest.fixture
def servers(tmp_path):
    """PostgreSQL, the address of a Redis, and a bucket."""
    for program in ("initdb", "pg_ctl", "redis-server"):
        if shutil.which(program) is None:
            pytest.skip(f"{program}, which this test needs, is not installed")
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)  # the user postgres has to get through
    postgres, store, port = Postgres(folder / "postgres"), Store(), free_port()
    command = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(tmp_path)]
    broker = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    yield postgres, f"redis://127.0.0.1:{port}/0", store
    broker.kill()
    broker.wait()
    store.stop()
    postgres.stop()
    shutil.rmtree(folder)


class Trial:
    """One challenge on a database of its own, with the programs of both hosts."""

    def __init__(self, folder, servers):
        self.postgres, self.broker_url, self.store = servers
        self.folder, self.port = folder, free_port()
        folder.mkdir()
        self.portal, self.programs = Portal(folder), {}
        self.common = {
            "PORTAL_DATABASE_URL": self.postgres.make_database(folder.name),
            "PORTAL_BROKER_URL": self.broker_url,
            "PORTAL_FILES_URL": self.store.url,
            "PORTAL_SECRET_KEY": "a key of fifty characters that both hosts have alike, long enough",
            "PORTAL_ADDRESS": f"127.0.0.1:{self.port}",
            **KEYS,
            "PORTAL_JOB_HEARTBEAT_S": "2",
            "PORTAL_JOB_LOST_AFTER_S": "10",
            "PORTAL_SWEEP_EVERY_S": "2",
            "TEST_FIGURES": "svg",
        }

    def start(self, name):
        host, command = PROGRAMS[name]
        environment = self.common | {"PORTAL_DATA_DIR": str(self.folder / host)}
        self.programs[name] = self.portal.start(name, *command, **environment)

    def kill(self, name):
        """Kill a program with all that it started, and start it again, as systemd does."""
        self.programs[name].kill()
        time.sleep(3)
        self.start(name)

    def ask(self, *words):
        """Return what a command of the driver prints; one that fails, because a server is away, is tried again."""
        end = time.monotonic() + PATIENCE_S
        while True:
            environment = self.common | {"PORTAL_DATA_DIR": str(self.folder / "driver")}
            driver = self.portal.start("driver", *DRIVER, *words, **environment)
            if driver.wait(PATIENCE_S) == 0:
                return json.loads(driver.output().splitlines()[-1])
            assert time.monotonic() < end, driver.output()
            time.sleep(2)

    def send(self, sent):
        """Start `vp submit`, which goes on where it was when it is called again."""
        environment = {"VP_SERVER": f"http://127.0.0.1:{self.port}", "VP_TOKEN": sent["token"]}
        environment |= {"XDG_CONFIG_HOME": str(self.folder / sent["archive"] / "config")}
        archive = str(self.folder / "archives" / sent["archive"])
        words = ("-m", "portal.client", "submit", archive, "--edition", sent["edition"], "--title", sent["archive"])
        return self.portal.start("vp", *words, **environment)

    def is_ready(self):
        with suppress(requests.RequestException):
            return requests.get(f"http://127.0.0.1:{self.port}/health/ready", timeout=10).ok
        return False

    def run(self, strike):
        """Hold the challenge, with faults; return what there is at its end."""
        (self.folder / "archives").mkdir()
        migrated = self.portal.start("migrate", "manage.py", "migrate", "--skip-checks", **self.common)
        assert migrated.wait() == 0, migrated.output()
        sent = self.ask("prepare", str(self.folder / "archives"))
        for name in PROGRAMS:
            self.start(name)
        wait_until(self.is_ready, "a portal that is ready")
        self.ask("start")
        clients = [self.send(one) for one in sent]
        strike(self)
        wait_until(self.is_ready, "a portal that is ready after the faults")
        for place, client in enumerate(clients):
            for _ in range(10):
                if client.wait(PATIENCE_S) == 0 or "The check failed" in client.output():
                    break
                client = self.send(sent[place])
            assert client.is_running is False, client.output()
        wait_until(lambda: self.ask("settle") == 0, "the end of all jobs", seconds=PATIENCE_S)
        return self.ask("count")


def strike_all(trial):
    """Kill each program, empty the broker, restart the database, and take the store away for a minute."""
    time.sleep(8)  # jobs run
    for name in PROGRAMS:
        trial.kill(name)
    for _ in range(5):
        redis.Redis.from_url(trial.broker_url).flushdb()
        time.sleep(2)
    trial.postgres.stop()
    time.sleep(5)
    trial.postgres.start()
    time.sleep(10)
    trial.store.stop()
    time.sleep(60)
    trial.store.start()
    for name in PROGRAMS:
        trial.kill(name)


def test_numbers_are_the_same_whatever_dies(servers, tmp_path):
    _, _, store = servers
    found = []
    for name, strike in (("without", lambda _: None), ("with", strike_all)):
        store.empty()
        trial = Trial(tmp_path / name, servers)
        try:
            found.append(trial.run(strike))
        finally:
            trial.portal.kill_all()
    without, faulty = found
    assert faulty["same"] == without["same"]
    assert without["same"]["numbers"][0] > 100
    assert set(without["same"]["submissions"].values()) == {1}
    assert faulty["lost attempts"] > 0  # the faults met jobs at work
