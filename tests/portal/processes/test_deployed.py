"""The commands of the files in deploy/, run as they stand there with the settings of portal.env, on SQLite."""

import configparser
import json
import os
import re
import shlex
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest
import yaml
from django.conf import settings

from tests.portal.config.test_deploy import DEPLOY, UNITS, read_env_file
from tests.portal.processes.programs import PATIENCE_S, free_port, wait_until
from tests.portal.processes.test_installed import install_wheel

PROGRAM = "/opt/voiceprivacy/bin/voiceprivacy"
QUEUE = "cpu"  # of the unit of workers


def commands_of_units():
    """Of each unit the words after the program."""
    for unit in UNITS:
        parser = configparser.ConfigParser(interpolation=None)
        parser.read(unit)
        line = parser["Service"]["ExecStart"]
        program, *words = shlex.split(line.replace("%i", QUEUE))
        assert program == PROGRAM
        yield tuple(words)


def commands_of_containers():
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"].values()
    found = [tuple(one["command"]) for one in services if str(one["image"]).startswith("voiceprivacy-portal")]
    return [*found, tuple(json.loads(re.search(r"^CMD (.+)$", (DEPLOY / "Dockerfile").read_text(), re.MULTILINE)[1]))]


class Machine:
    """A machine without anything but the installed program, and what was started on it."""

    def __init__(self, folder):
        self.folder, self.started = folder, {}
        words, place = install_wheel(folder)
        self.program = folder / "voiceprivacy"
        self.program.write_text(f'#!/bin/sh\nexec {sys.executable} {shlex.join(words)} "$@"\n')
        self.program.chmod(0o755)
        self.address = f"127.0.0.1:{free_port()}"
        known = read_env_file() | {"PORTAL_DATA_DIR": str(folder / "var"), "PORTAL_ADDRESS": self.address}
        for server in ("PORTAL_DATABASE_URL", "PORTAL_BROKER_URL"):
            del known[server]
        self.settings = folder / "portal.env"
        self.settings.write_text("".join(f"{name}={shlex.quote(value)}\n" for name, value in known.items()))
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("PORTAL_", "DJANGO_"))}
        self.environment = clean | place | known

    def run(self, *words):
        answer = subprocess.run(
            words,
            env=self.environment,
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert answer.returncode == 0, answer.stdout + answer.stderr
        return answer.stdout

    def start(self, name, *words):
        with (self.folder / f"{len(self.started)}.log").open("wb") as log:
            self.started[name] = subprocess.Popen(
                words, env=self.environment, cwd=self.folder, stdout=log, stderr=log, start_new_session=True
            )

    def signs(self):
        """What workers and scheduler left in the database: kind, or else name; queues."""
        [file] = (self.folder / "var").glob("*.sqlite3")
        with closing(sqlite3.connect(file, timeout=30)) as database:
            rows = database.execute("select coalesce(nullif(kind, ''), name), details from core_heartbeat").fetchall()
        return {(kind, ",".join(sorted(json.loads(details or "{}").get("queues", [])))) for kind, details in rows}

    def is_up(self, name):
        """Whether it left its sign, or the check of the containers finds the web server; it must not have ended."""
        ended = self.started[name].poll()
        assert ended is None, (name, ended, [log.read_text() for log in self.folder.glob("*.log")])
        if name[0] == "worker":
            return ("worker", ",".join(sorted(name[2].split(",")))) in self.signs()
        return name[0] == "web" or ("scheduler", "") in self.signs()

    def end(self):
        for process in self.started.values():
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@pytest.fixture
def machine(tmp_path):
    machine = Machine(tmp_path)
    yield machine
    machine.end()


def on_demand(machine):
    """The script of Slurm and the container of KEDA, which here have nothing to do for a second, not for minutes."""
    script = (DEPLOY / "slurm" / "worker-gpu.sbatch").read_text()
    for written, here in (("/etc/voiceprivacy/portal.env", str(machine.settings)), (PROGRAM, str(machine.program))):
        assert script.count(f"{written}\n") + script.count(f"{written} ") == 1
        script = script.replace(written, here)
    (machine.folder / "worker.sbatch").write_text(re.sub(r"--until-idle \d+", "--until-idle 1", script))
    yield "slurm", "sh", str(machine.folder / "worker.sbatch")
    scaled = yaml.safe_load((DEPLOY / "kubernetes" / "worker-gpu.yaml").read_text())["spec"]["jobTargetRef"]
    [container] = scaled["template"]["spec"]["containers"]
    assert container["args"][-2] == "--until-idle"
    yield "keda", str(machine.program), *container["args"][:-1], "1"


@pytest.mark.slow  # an installed portal of eight programs
def test_every_command_of_the_deployment_files_runs(machine):
    program, commands = str(machine.program), {*commands_of_units(), *commands_of_containers()}
    migrate = ("migrate", "--verbosity", "0")
    assert {words[0] for words in commands} == {"migrate", "web", "scheduler", "worker"}
    machine.run(program, *migrate)
    lasting = sorted(commands - {migrate})
    for words in lasting:
        machine.start(words, program, *words)
    for name, *words in on_demand(machine):
        machine.start(name, *words)
    for words in lasting:
        wait_until(lambda words=words: machine.is_up(words), f"{words} is up")
    health = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]["web"]["healthcheck"]["test"]
    check = health[-1].replace("localhost:8000", machine.address)
    assert (health[:3], machine.address in check) == (["CMD", "python", "-c"], True)
    wait_until(lambda: not subprocess.run([sys.executable, "-c", check], stderr=subprocess.DEVNULL).returncode, "web")
    for name in ("slurm", "keda"):
        assert machine.started[name].wait(PATIENCE_S) == 0, name
    assert "/first-account/" in machine.run(program, "first-account")
    for words in lasting:
        machine.started[words].send_signal(signal.SIGTERM)
    for words in lasting:  # systemd takes the end by its own signal as an orderly one
        assert machine.started[words].wait(PATIENCE_S) in (0, -signal.SIGTERM), words


def test_version_of_torch_in_the_image_with_a_card_is_the_pinned_one():
    text = (DEPLOY / "Dockerfile").read_text().replace("\\\n", " ")
    lines = re.findall(r"^RUN (.+)$", text, re.MULTILINE)
    for line in lines:
        subprocess.run(["sh", "-n", "-c", line], check=True)
    [command] = [found for line in lines for found in re.findall(r"\$\((sed [^)]+\)[^)]*)\)", line)]
    version = subprocess.run(["sh", "-c", command], cwd=settings.BASE_DIR, capture_output=True, text=True, check=True)
    assert re.fullmatch(r"\d+\.\d+\.\d+\n", version.stdout)
