"""Show the portal at work: import a small corpus, anonymise it with B2, measure the result, and open the pages.

On the demo corpus a challenge of three simulated teams follows: uploads, checks, numbers, a leaderboard; then
a listening test on their systems, open to whoever follows its link, and closed ones whose listeners are simulated, with
their results beside the leaderboard.

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
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import connection
from django.urls import reverse
from django.utils.text import slugify

from listening.app.models import Study
from portal.accounts.models import User
from portal.challenges.models import Corpus, Edition
from portal.challenges.services import start_import
from portal.core.addresses import own_address
from portal.core.processes import Supervisor, hold, portal_processes, prepare, require_free
from portal.demo.challenge import TEAMS, find_submission, run_demo_challenge
from portal.demo.studies import begin_simulated_studies, evaluator_link, finish_simulated_studies, run_demo_study
from portal.demo.terminal import QuietMail, answer_to_network, finish_jobs, network_address, wait_for_mails
from portal.jobs.models import Job, State
from portal.manage.services import DEMO_CORPUS
from portal.submissions.models import System
from portal.systems.services import start_baseline

METHOD, SEED = "mcadams-2022", 2022
RECIPE = settings.BASE_DIR / "demo" / "edition.toml"
DOMAIN = "demo.example"
ROLES = {"organizer": {"is_organizer": True}, "operator": {"is_staff": True, "is_superuser": True}}
DUTIES = {"organizer": "runs the challenge and sees everything of it", "operator": "looks after the portal"}


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--speech", type=Path, help="a folder of real speech with a manifest instead of the demo")
        parser.add_argument("--and-exit", action="store_true", help="end when the job is done, with 0 if it succeeded")

    def handle(self, **options: Any) -> None:
        folder: Path = (options["speech"] or DEMO_CORPUS).absolute()
        if not folder.is_dir():
            raise CommandError(f"There is no folder {folder}. Name one with make demo SPEECH=<folder with a manifest>.")
        tell = QuietMail(self._say, DOMAIN)
        guide = _Guide(folder, synthetic=options["speech"] is None, and_exit=options["and_exit"], tell=tell)
        with hold(settings.DATA_DIR, settings.ADDRESS):
            require_free(settings.ADDRESS)
            self._run(guide)
        if guide.failure:
            raise CommandError(guide.failure)

    def _run(self, guide: _Guide) -> None:
        self._say("Preparing the database and the static files")
        prepare()
        open_for_imports(DEMO_CORPUS, guide.folder)
        answer_to_network(settings.ADDRESS)
        threading.Thread(target=guide.run, name="guide", daemon=True).start()
        processes = portal_processes(
            settings.ADDRESS, web_threads=settings.WEB_THREADS, worker_processes=settings.WORKER_PROCESSES
        )
        Supervisor(processes, guide.tell).run()

    def _say(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()


class _Guide:
    """Does, beside the running portal, what an organizer would do."""

    def __init__(self, folder: Path, *, synthetic: bool, and_exit: bool, tell: QuietMail) -> None:
        self.folder = folder
        self.synthetic = synthetic
        self.and_exit = and_exit
        self.tell = tell
        self.say = tell.say
        self.failure = ""
        self.name = "demo" if synthetic else slugify(folder.name)[:57] or "speech"

    def run(self) -> None:
        try:
            people = self._accounts()
            organizer = people["organizer"]
            corpus = self._import(organizer)
            system = self._anonymize(corpus, organizer)
            edition = self._challenge(corpus, people) if self.synthetic else None
            study, heard = self._listen(edition, organizer) if edition else (None, [])
            wait_for_mails()
            self.tell.over = True
            self._point_at(system, edition, study, heard)
        except CommandError as error:
            self.failure = str(error)
        except Exception as error:
            self.failure = f"The demo failed: {type(error).__name__}: {error}"
        finally:
            connection.close()
        if self.and_exit or self.failure:
            os.kill(os.getpid(), signal.SIGTERM)

    def _accounts(self) -> dict[str, User]:
        """The accounts of the demo by the first part of their log-in name."""
        rights: dict[str, dict[str, bool]] = ROLES | ({key: {} for key in TEAMS} if self.synthetic else {})
        accounts = {}
        for key, given in rights.items():
            name = f"Demo {key}" + ("" if given else " (simulated)")
            user, _ = User.objects.get_or_create(email=f"{key}@{DOMAIN}", defaults={"name": name, **given})
            user.set_password(demo_password(user.email))
            user.save()
            accounts[key] = user
        return accounts

    def _import(self, organizer: User) -> Corpus:
        known = Corpus.objects.filter(name=self.name).first()
        if known:
            self.say(f"The corpus {self.name} is there already.")
            return known
        if self.synthetic:
            self.say("Running a small challenge from its corpus to its leaderboard; this takes a minute or two")
        job = _newest("import-corpus", self.name) or start_import(
            folder=str(self.folder), name=self.name, is_synthetic=self.synthetic, is_shared=True, by=organizer
        )
        finish_jobs([job], self.say)
        return Corpus.objects.get(name=self.name)

    def _anonymize(self, corpus: Corpus, organizer: User) -> System:
        name = f"b2-{corpus.name}"
        system = System.objects.filter(name=name).first()
        if system is None:
            self.say(f"Anonymising the corpus {corpus.name} with B2, then measuring the result")
            system = start_baseline(
                name=name, corpus=corpus, data_sets=corpus.data_sets.all(), method=METHOD, seed=SEED, by=organizer
            )
        jobs = Job.objects.filter(anonymization_run__submission__system=system)
        jobs |= Job.objects.filter(evaluation_run__submission__system=system)
        finish_jobs(jobs.order_by("created_at"), self.say)
        return system

    def _challenge(self, corpus: Corpus, people: dict[str, User]) -> Edition:
        text = RECIPE.read_text(encoding="utf-8")
        return run_demo_challenge(corpus=corpus, folder=self.folder, recipe_text=text, people=people, say=self.say)

    def _listen(self, edition: Edition, organizer: User) -> tuple[Study, list[Study]]:
        """The open listening test, and the closed ones; their recordings are made at the same time."""
        heard = begin_simulated_studies(edition=edition, organizer=organizer, say=self.say)
        study = run_demo_study(edition=edition, organizer=organizer, say=self.say)
        finish_simulated_studies(heard, organizer=organizer, say=self.say)
        return study, heard

    def _point_at(self, system: System, edition: Edition | None, study: Study | None, heard: list[Study]) -> None:
        base = f"http://{own_address(settings.ADDRESS)}"
        _wait_until_open(f"{base}/health/live")
        pages = {"result": (system.get_absolute_url(), "the corpus by B2, to hear as organizer")}
        accounts = DUTIES
        if heard:
            address = reverse("studies:results", args=[heard[0].name])
            pages = {"heard": (address, "what listeners said, simulated, for everybody")} | pages
        if study is not None:
            pages = _pages_of_study(study) | pages
        if edition is not None:
            pages = _list_pages(edition) | pages
            accounts = accounts | {key: f"owns the team {name}" for key, (name, *_) in TEAMS.items()}
        lines = ["", f"The portal is open at {base}/"]
        lines += list_addresses(base, pages)
        if study is not None:
            lines += _words_for_a_phone(evaluator_link(study))
        lines += ["Log in with one of these names and its password to see more"]
        emails = {f"{key}@{DOMAIN}": words for key, words in accounts.items()}
        lines += [f"  {email:<24}{demo_password(email)}  {words}" for email, words in emails.items()]
        for line in [*lines, f"Ctrl-C ends it; the data stays in {settings.DATA_DIR}"]:
            self.say(line)


def list_addresses(base: str, pages: Mapping[str, tuple[str, str]]) -> list[str]:
    """A line for each page, in columns: its name, its address, what it shows."""
    name_width = max(map(len, pages))
    width = max(len(base + address) for address, _ in pages.values())
    return [f"  {name:<{name_width}}  {base + address:<{width}}  {words}" for name, (address, words) in pages.items()]


def _list_pages(edition: Edition) -> dict[str, tuple[str, str]]:
    """What is worth seeing in the challenge of the demo: address and words by name."""
    pages = {"leaderboard": (reverse("leaderboard:detail", args=[edition.name]), "the ranking, for everybody")}
    if refused := find_submission(edition, "spoiled"):
        pages["report"] = (refused.get_absolute_url(), "problems of an archive, for hasty and organizer")
    if overstated := find_submission(edition, "overstated"):
        address = overstated.system.get_absolute_url()
        pages["reported"] = (address, "reported and recomputed numbers, for low and organizer")
    return pages


def _pages_of_study(study: Study) -> dict[str, tuple[str, str]]:
    return {
        "listen": (evaluator_link(study), "the listening test, as an evaluator meets it"),
        "monitor": (reverse("studies:monitor", args=[study.name]), "who listens just now, for organizer"),
    }


def _words_for_a_phone(link: str) -> list[str]:
    """The same link for other machines, or how to get one."""
    if place := network_address(settings.ADDRESS):
        return [f"On a phone in the same network, listen at http://{place}{link}"]
    return ["To listen on a phone in the same network, start with make demo ADDRESS=0.0.0.0:8000"]


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
