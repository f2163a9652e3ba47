"""Show the portal at work: a challenge that the portal evaluates, from a corpus to its leaderboard and listening tests.

The portal runs two baselines and evaluates them and the systems of three simulated teams: it attacks, recognises,
measures and ranks. Then a listening test is open to anyone who follows its link; it leaves out one system, of which
everybody can hear samples. Closed listening tests with simulated listeners have their results beside the leaderboard.

Everything runs as it would for an organizer: the web server, the workers and the scheduler are started, the jobs go
through the queue, and their progress is printed here. A second run keeps what the first one made.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import logging
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

from portal.accounts.models import User
from portal.challenges.models import Corpus, Edition
from portal.core.network_addresses import own_address
from portal.core.processes import Supervisor, hold, portal_processes, prepare, require_free
from portal.corpora.services import DEMO_CORPUS, start_import
from portal.demo.challenge import (
    TEAMS,
    find_obstacle,
    finish_demo_challenge,
    make_demo_edition,
    send_demo_systems,
    start_demo_baselines,
)
from portal.demo.studies import (
    begin_simulated_studies,
    finish_simulated_studies,
    release_samples,
    run_demo_study,
)
from portal.demo.terminal import (
    QuietMail,
    TerminalScreen,
    answer_to_network,
    finish_jobs,
    network_address,
    wait_for_mails,
)
from portal.demo.tour import DOMAIN, Pages, list_ways
from portal.jobs.models import ACTIVE_STATES, Job
from portal.submissions.models import System
from portal.systems.services import start_baseline

METHOD, SEED = "mcadams-2022", 2022
ROLES = {"organizer": {"is_organizer": True}, "operator": {"is_staff": True, "is_superuser": True}}


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--speech", type=Path, help="folder of real speech with a manifest, to use instead")
        parser.add_argument(
            "--without-models", action="store_true", help="use no models: an untrained attacker, no recogniser"
        )
        parser.add_argument("--and-exit", action="store_true", help="end when the job is done, with 0 if it succeeded")

    def handle(self, **options: Any) -> None:
        folder: Path = (options["speech"] or DEMO_CORPUS).absolute()
        if not folder.is_dir():
            raise CommandError(f"There is no folder {folder}. Name one with make demo SPEECH=<folder with a manifest>.")
        screen = TerminalScreen(self._print, moves=self.stdout.isatty())
        guide = _Guide(folder, screen, options, synthetic=options["speech"] is None)
        with hold(settings.DATA_DIR, settings.ADDRESS):
            require_free(settings.ADDRESS)
            thread = self._run(guide)
        if guide.failure:
            raise CommandError(guide.failure)
        if thread.is_alive():
            # It was interrupted. Python ends a thread where it is, and a network that computes in it would then abort
            # the whole process with a message of its own.
            logging.shutdown()
            self.stdout.flush()
            os._exit(0)

    def _run(self, guide: _Guide) -> threading.Thread:
        """Show the portal until it is interrupted; returns the thread of the guide, which may be at work still."""
        guide.say("Preparing the database and the static files")
        prepare()
        open_for_imports(DEMO_CORPUS, guide.folder)
        answer_to_network(settings.ADDRESS)
        thread = threading.Thread(target=guide.run, name="guide", daemon=True)
        thread.start()
        processes = portal_processes(
            settings.ADDRESS, web_threads=settings.WEB_THREADS, worker_processes=settings.WORKER_PROCESSES
        )
        Supervisor(processes, guide.tell).run()
        return thread

    def _print(self, text: str) -> None:
        self.stdout.write(text, ending="")
        self.stdout.flush()


class _Guide:
    """Does, beside the running portal, what an organizer would do."""

    def __init__(self, folder: Path, say: TerminalScreen, options: dict[str, Any], *, synthetic: bool) -> None:
        self.folder = folder
        self.synthetic = synthetic
        self.with_models = not options["without_models"]
        self.and_exit: bool = options["and_exit"]
        self.say = say
        self.tell = QuietMail(say, DOMAIN)
        self.failure = ""
        self.name = "demo" if synthetic else slugify(folder.name)[:40].strip("-_") or "speech"
        self.base = f"http://{own_address(settings.ADDRESS)}"

    def run(self) -> None:
        try:
            people = self._accounts()
            corpus = self._import(people["organizer"])
            if obstacle := find_obstacle(corpus):
                self.say(obstacle)
                system = self._anonymize(corpus, people["organizer"])
                result = (system.get_absolute_url(), "the corpus by B2, to hear")
                self._point_at({f"Organizer, logged in as {_log_in(f'organizer@{DOMAIN}')}": {"result": result}})
            else:
                self._challenge(corpus, people)
        except CommandError as error:
            self.failure = str(error)
        except Exception as error:
            self.failure = f"The demo failed: {type(error).__name__}: {error}"
        finally:
            connection.close()
        if self.and_exit or self.failure:
            os.kill(os.getpid(), signal.SIGTERM)

    def _accounts(self) -> dict[str, User]:
        """Return the accounts of the demo by the first part of their log-in name."""
        rights: dict[str, dict[str, bool]] = ROLES | {key: {} for key in TEAMS}
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
            self.say("Running a small challenge from its corpus to its leaderboard; this takes a few minutes")
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

    def _challenge(self, corpus: Corpus, people: dict[str, User]) -> None:
        """The challenge, and listening tests on its systems: an open one, and closed ones with simulated listeners."""
        organizer = people["organizer"]
        edition = make_demo_edition(corpus=corpus, organizer=organizer, with_models=self.with_models, say=self.say)
        if not edition.recipe.evaluation.by_portal:
            self.say(f"An older demo made the challenge {edition.name}. Delete it as the operator, then start again.")
            deleting = {"delete": (reverse("deletion:index"), "the button that removes the demo's data")}
            return self._point_at({f"Operator, logged in as {_log_in(f'operator@{DOMAIN}')}": deleting})
        start_demo_baselines(edition=edition, organizer=organizer, say=self.say)
        _wait_until_open(f"{self.base}/health/live")
        if edition.published_at is None:
            self.say(f"The portal is open already: {self.base}{reverse('tour')}")
            self.say("  Still computed: the numbers of all systems, then the leaderboard and the listening tests.")
            self.say(f"  Log in as organizer@{DOMAIN} with {demo_password(f'organizer@{DOMAIN}')} to see more of it.")
        teller = send_demo_systems(edition=edition, people=people, with_models=self.with_models, say=self.say)
        finish_demo_challenge(edition=edition, organizer=organizer, teller=teller, say=self.say)
        heard = begin_simulated_studies(edition=edition, organizer=organizer, say=self.say)
        run_demo_study(edition=edition, organizer=organizer, say=self.say)
        release_samples(edition=edition, people=people, say=self.say)
        finish_simulated_studies(heard, organizer=organizer, say=self.say)
        wait_for_mails()
        self.tell.over = True
        return self._point_at(_list_journeys(edition))

    def _point_at(self, journeys: dict[str, Pages]) -> None:
        _wait_until_open(f"{self.base}/health/live")
        lines = ["", f"The portal is open at {self.base}/", *list_addresses(self.base, journeys)]
        for line in [*lines, f"Ctrl-C ends it; the data stays in {settings.DATA_DIR}"]:
            self.say(line)


def list_addresses(base: str, journeys: Mapping[str, Pages]) -> list[str]:
    """Return the pages of each journey below its heading, in columns: name, address, what it shows."""
    pages = [(name, address) for found in journeys.values() for name, (address, _) in found.items()]
    name_width = max(len(name) for name, _ in pages)
    width = max(len(base + address) for _, address in pages)
    lines = []
    for heading, found in journeys.items():
        lines += ["", heading]
        for name, (address, words) in found.items():
            lines.append(f"  {name:<{name_width}}  {base + address:<{width}}  {words}")
    return lines


def _list_journeys(edition: Edition) -> dict[str, Pages]:
    """Return the ways of the tour, each with the log-ins that it needs."""
    journeys: dict[str, Pages] = {}
    for way in list_ways(edition):
        logged_in = f", logged in as {', '.join(map(_log_in, way.accounts))}" if way.accounts else ", without a log-in"
        phone = f". {_words_for_a_phone(way.pages['listen'][0])}" if "listen" in way.pages else ""
        journeys[f"{way.who}{logged_in}{phone}"] = way.pages
    return journeys


def _log_in(email: str) -> str:
    return f"{email} {demo_password(email)}"


def _words_for_a_phone(link: str) -> str:
    """Return the same link for other machines, or how to get one."""
    if place := network_address(settings.ADDRESS):
        return f"On a phone in the same network: http://{place}{link}"
    return "For a phone in the same network, start with make demo ADDRESS=0.0.0.0:8000"


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
    """Return an import of this corpus that is still under way, from a run that was interrupted."""
    jobs = Job.objects.filter(kind=kind, state__in=ACTIVE_STATES)
    return next((job for job in jobs if job.parameters["name"] == name), None)


def _wait_until_open(address: str) -> None:
    for _ in range(120):
        try:
            with urlopen(address, timeout=2):  # noqa: S310 - our own address
                return
        except (URLError, OSError):
            time.sleep(0.5)
    raise CommandError(f"The web server did not open {address} within a minute; the lines above say why.")
