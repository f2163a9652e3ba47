"""Show the portal at work: import a small corpus, anonymise it with B2, measure the result, and open the pages.

Everything runs as it would for an organizer: the web server, the worker and the scheduler are started, the jobs go
through the queue, and their progress is printed here. A second run keeps what the first one made.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import connection
from django.utils.text import slugify

from portal.accounts.models import User
from portal.challenges.importing import start_import
from portal.challenges.models import Corpus
from portal.core.processes import Supervisor, portal_processes
from portal.core.starting import hold, prepare, require_free
from portal.jobs.models import Job, State
from portal.jobs.terminal import failure_report, follow
from portal.results.services import start_baseline
from portal.submissions.models import System

DEMO_CORPUS = settings.BASE_DIR / "demo" / "corpus"
METHOD, SEED = "mcadams-2022", 2022
ROLES = {"organizer": {"is_organizer": True}, "operator": {"is_staff": True, "is_superuser": True}}


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--speech",
            type=Path,
            help="a folder of real speech with a manifest instead of the demo",
        )
        parser.add_argument(
            "--and-exit",
            action="store_true",
            help="end when the job is done, with 0 if it succeeded",
        )

    def handle(self, **options: Any) -> None:
        folder: Path = (options["speech"] or DEMO_CORPUS).absolute()
        if not folder.is_dir():
            raise CommandError(f"There is no folder {folder}. Name one with make demo SPEECH=<folder with a manifest>.")
        guide = _Guide(folder, synthetic=options["speech"] is None, and_exit=options["and_exit"], say=self._say)
        with hold(settings.DATA_DIR, settings.ADDRESS):
            require_free(settings.ADDRESS)
            self._run(guide)
        if guide.failure:
            raise CommandError(guide.failure)

    def _run(self, guide: _Guide) -> None:
        self._say("Preparing the database and the static files")
        prepare()
        open_for_imports(DEMO_CORPUS, guide.folder)
        threading.Thread(target=guide.run, name="guide", daemon=True).start()
        processes = portal_processes(
            settings.ADDRESS,
            web_threads=settings.WEB_THREADS,
            worker_processes=settings.WORKER_PROCESSES,
        )
        Supervisor(processes, self._say).run()

    def _say(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()


class _Guide:
    """Does, beside the running portal, what an organizer would do."""

    def __init__(self, folder: Path, *, synthetic: bool, and_exit: bool, say: Any) -> None:
        self.folder = folder
        self.synthetic = synthetic
        self.and_exit = and_exit
        self.say = say
        self.failure = ""
        self.name = "demo" if synthetic else slugify(folder.name)[:57] or "speech"

    def run(self) -> None:
        try:
            organizer = self._accounts()["organizer"]
            corpus = self._import(organizer)
            system = self._anonymize(corpus, organizer)
            self._point_at(system)
        except CommandError as error:
            self.failure = str(error)
        except Exception as error:
            self.failure = f"The demo met a fault of its own: {type(error).__name__}: {error}"
        finally:
            connection.close()
        if self.failure:
            self.say(self.failure)
        if self.and_exit or self.failure:
            os.kill(os.getpid(), signal.SIGTERM)

    def _accounts(self) -> dict[str, User]:
        accounts = {}
        for role, rights in ROLES.items():
            email = f"{role}@demo.example"
            user, _ = User.objects.get_or_create(email=email, defaults={"name": f"Demo {role}", **rights})
            user.set_password(demo_password(email))
            user.save()
            accounts[role] = user
        return accounts

    def _import(self, organizer: User) -> Corpus:
        known = Corpus.objects.filter(name=self.name).first()
        if known:
            self.say(f"The corpus {self.name} is there already.")
            return known
        job = _newest("import-corpus", self.name) or start_import(
            folder=str(self.folder), name=self.name, is_synthetic=self.synthetic, by=organizer
        )
        self._finish([job])
        return Corpus.objects.get(name=self.name)

    def _anonymize(self, corpus: Corpus, organizer: User) -> System:
        name = f"b2-{corpus.name}"
        system = System.objects.filter(name=name).first()
        if system is None:
            self.say(f"Anonymising the corpus {corpus.name} with B2, then measuring the result")
            system = start_baseline(
                name=name,
                corpus=corpus,
                data_sets=corpus.data_sets.all(),
                method=METHOD,
                seed=SEED,
                by=organizer,
            )
        jobs = Job.objects.filter(anonymization_run__submission__system=system)
        jobs |= Job.objects.filter(evaluation_run__submission__system=system)
        self._finish(list(jobs.order_by("created_at")))
        return system

    def _finish(self, jobs: list[Job]) -> None:
        for job in follow(jobs, self.say):
            if job.state != State.SUCCEEDED:
                raise CommandError(failure_report(job))

    def _point_at(self, system: System) -> None:
        base = f"http://{settings.ADDRESS}"
        _wait_until_open(f"{base}/health/live")
        self.say("")
        self.say(f"The portal is open at {base}/")
        self.say(f"  result  {base}{system.get_absolute_url()}")
        for role in ROLES:
            email = f"{role}@demo.example"
            self.say(f"  log in  {email}  with the password  {demo_password(email)}")
        self.say("Ctrl-C ends it; the data stays in " + str(settings.DATA_DIR))


def open_for_imports(*folders: Path) -> None:
    """Let organizers import from these folders on a page of the web server that is started after this."""
    known = [str(root) for root in settings.ENVIRONMENT["IMPORT_ROOTS"]]
    # The setting has commas between its folders, so one with a comma in its name cannot be opened.
    new = [str(folder) for folder in folders if folder.is_dir() and "," not in str(folder)]
    os.environ["PORTAL_IMPORT_ROOTS"] = ",".join(dict.fromkeys([*known, *new]))


def demo_password(email: str) -> str:
    """Password of a demo account: stable for this installation, known to nobody else."""
    digest = hmac.new(settings.SECRET_KEY.encode(), f"demo {email}".encode(), hashlib.sha256).digest()
    return base64.b32encode(digest).decode().lower()[:12]


def _newest(kind: str, name: str) -> Job | None:
    """An import of this corpus that is still under way, from a run that was interrupted."""
    jobs = Job.objects.filter(kind=kind, state__in=[State.WAITING, State.RUNNING])
    return next((job for job in jobs if job.parameters["name"] == name), None)


def _wait_until_open(address: str) -> None:
    for _ in range(120):
        try:
            with urlopen(address, timeout=2):  # noqa: S310 - our own address
                return
        except (URLError, OSError):
            time.sleep(0.5)
    raise CommandError(f"The web server did not open {address} within a minute; its lines above tell why.")
