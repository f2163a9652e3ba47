"""The demo challenge: an edition whose three teams are simulated, with submissions that the portal really checks.

The teams and their people are inventions of this module, and every name says *simulated*. Their archives are real: made
by `archives` from the demo corpus, received like any upload, inspected, measured and ranked by the jobs of the portal.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from django.core.management.base import CommandError
from django.db.models import Q, QuerySet
from django.utils import timezone

from common.memory import format_size
from evaluation.formats.results import Speech
from evaluation.scoring.results.expected import detection_name
from portal.accounts.models import User
from portal.challenges.models import Corpus, Edition
from portal.challenges.services import create_edition
from portal.core.models import AuditEvent
from portal.demo import archives
from portal.demo.terminal import LOOK_EVERY_S, Say, SubmissionTeller
from portal.jobs.models import Job, State
from portal.jobs.terminal import failure_report
from portal.leaderboard.services import publish_leaderboard
from portal.submissions.models import Submission, System, Upload
from portal.submissions.uploads import Plan, abandon_upload, create_upload, receive_part, unfinished_uploads
from portal.teams.models import Team
from portal.teams.services import approve_team, register_team

NAME, TITLE = "demo", "Demo challenge (simulated teams)"
STAMP = "2026-11-01-12-00-00"
SETTLED = (Submission.State.REFUSED, Submission.State.EVALUATED, Submission.State.WITHDRAWN)
DESCRIPTION = (
    "This challenge shows the portal at work. Its speech is synthetic, its teams are simulated, and its attacker knows "
    "a voice by its long-term spectrum only. What its teams’ recogniser understood is simulated: the numbers are "
    "computed as they stand, and say nothing about real anonymisers."
)
SYSTEM_DESCRIPTION = "A simulated system of the demo. Its hypotheses come from a simulated recogniser."


@dataclass(frozen=True)
class _Entry:
    """One archive of the demo: whose, what made it, and what is wrong with it."""

    team: str  # empty for the organizer's baseline
    title: str
    alphas: tuple[float, float]
    seed: int
    kind: str = System.Kind.PRIMARY
    problem: str = ""


# Name, affiliation, country and whether it is academic.
TEAMS = {
    "wide": ("Wide Range (simulated)", "University of Examples (simulated)", "FR", True),
    "low": ("Low Coefficients (simulated)", "Example Labs (simulated)", "SG", False),
    "hasty": ("Hasty Upload (simulated)", "Institute of Late Nights (simulated)", "DE", True),
}
ENTRIES = (
    _Entry("", "B2", (0.5, 0.9), 2022),
    _Entry("wide", "McAdams coefficient, α from 0.4 to 0.95", (0.4, 0.95), 1),
    _Entry("low", "McAdams coefficient, α from 0.5 to 0.7", (0.5, 0.7), 4),
    _Entry("low", "McAdams coefficient, α = 0.8 for everybody", (0.8, 0.8), 1, System.Kind.CONTRASTIVE, "overstated"),
    _Entry("hasty", "McAdams coefficient, packed in a hurry", (0.5, 0.9), 3, problem="spoiled"),
)


def run_demo_challenge(*, corpus: Corpus, folder: Path, recipe_text: str, people: dict[str, User], say: Say) -> Edition:
    """Make what of the challenge is not there yet, wait until every submission is settled, and publish the leaderboard.

    Args:
        folder: of the demo corpus on this machine.
        people: the account of the organizer, and of the owner of each simulated team by its key in `TEAMS`.

    Raises:
        CommandError: the portal could not evaluate a submission.
    """
    organizer = people["organizer"]
    edition = Edition.objects.filter(name=NAME).first() or create_edition(
        by=organizer,
        organizers=[organizer],
        name=NAME,
        title=TITLE,
        description=DESCRIPTION,
        recipe_text=recipe_text,
        corpus=corpus,
        is_listed=True,
        description_required=True,
    )
    teams = {key: _team(edition, key, people[key], organizer) for key in TEAMS}
    teller = SubmissionTeller(say)
    missing = [entry for entry in ENTRIES if not _is_sent(edition, entry)]
    if missing:
        say("Making the archives of three simulated teams: B2 with other settings, attacked by the untrained attacker")
        utterances = archives.read_demo_corpus(folder)
        for entry in missing:
            _send(edition, entry, teams.get(entry.team), people[entry.team or "organizer"], utterances, say)
            teller(select_demo_submissions(edition), _jobs(edition))
    _wait(edition, teller)
    edition.refresh_from_db()
    if not AuditEvent.objects.filter(
        action="board.published", subject_type="challenges.edition", subject_id=str(edition.pk)
    ).exists():  # whoever took it back later wants it so
        publish_leaderboard(edition=edition, now=timezone.now(), by=organizer)
        say("The leaderboard is published")
    return edition


def select_demo_submissions(edition: Edition) -> QuerySet[Submission]:
    """What the demo itself submitted: for its own teams and, as the baseline, for the organizer."""
    own = Q()
    for entry in ENTRIES:
        team = Q(system__team__name=TEAMS[entry.team][0]) if entry.team else Q(system__team=None)
        own |= team & Q(system__title=entry.title)
    return Submission.objects.filter(own, system__edition=edition, version=1)


def find_submission(edition: Edition, problem: str) -> Submission | None:
    """The first submission of the entry with this problem."""
    title = next(entry.title for entry in ENTRIES if entry.problem == problem)
    return select_demo_submissions(edition).filter(system__title=title).first()


def _team(edition: Edition, key: str, owner: User, organizer: User) -> Team:
    fields: dict[str, Any] = dict(zip(("name", "affiliation", "country", "is_academic"), TEAMS[key], strict=True))
    team = edition.teams.filter(name=fields["name"]).first()
    if team is None:
        contact = {"contact": owner.name, "contact_email": owner.email}
        team = register_team(edition=edition, by=owner, now=timezone.now(), **contact, **fields)
    return team if team.number else approve_team(team=team, by=organizer, now=timezone.now())


def _is_sent(edition: Edition, entry: _Entry) -> bool:
    return System.objects.filter(edition=edition, title=entry.title, submissions__isnull=False).exists()


def _send(
    edition: Edition, entry: _Entry, team: Team | None, by: User, utterances: list[archives.DemoUtterance], say: Say
) -> None:
    """Make the archive and hand it in part by part, as an upload from outside does."""
    recipe = edition.recipe
    submission = archives.anonymise(utterances, entry.alphas, entry.seed)
    archives.add_results(submission, recipe, STAMP)
    archives.add_hypotheses(submission, recipe, entry.seed)
    submission.files["system_description.pdf"] = archives.describe(entry.title, SYSTEM_DESCRIPTION)
    if entry.problem == "overstated":
        for trials in recipe.sets("trial"):
            lazy_informed = detection_name(recipe, trials, Speech.ANONYMISED, Speech.ANONYMISED)
            archives.overstate(submission, lazy_informed, "EER: 20%")
    if entry.problem == "spoiled":
        archives.spoil(submission, recipe.anonymised_suffix)
    for rest in unfinished_uploads(edition, team).filter(system_title=entry.title, created_by=by):
        abandon_upload(upload=rest, by=by)  # of a demo that was interrupted
    with TemporaryDirectory() as place:
        archive = Path(place) / f"{entry.team or 'b2'}.zip"
        archives.pack(submission, archive, recipe.anonymised_suffix)
        size = archive.stat().st_size
        say(f"Uploading {archive.name} ({format_size(size)}) for {team or 'the organizer'}: {entry.title}")
        plan = Plan(edition, team, kind=entry.kind, title=entry.title)
        upload: Upload = create_upload(plan=plan, file_name=archive.name, size=size, by=by, now=timezone.now())
        with archive.open("rb") as file:
            receive_part(upload=upload, offset=0, read=file.read, length=size, by=by)


def _jobs(edition: Edition) -> QuerySet[Job]:
    submissions = select_demo_submissions(edition)
    return Job.objects.filter(Q(submission__in=submissions) | Q(evaluation_run__submission__in=submissions))


def _wait(edition: Edition, teller: SubmissionTeller) -> None:
    """Wait until each submission is evaluated or refused."""
    submissions, jobs = select_demo_submissions(edition), _jobs(edition)
    while submissions.exclude(state__in=SETTLED).exists():
        teller(submissions, jobs)
        failed = Q(state=Submission.State.FAILED) | Q(job__state=State.FAILED)
        if (one := submissions.filter(failed).first()) is not None:
            of_it = jobs.filter(Q(submission=one) | Q(evaluation_run__submission=one), state=State.FAILED)
            job = of_it.order_by("finished_at").last()
            raise CommandError(f"{one} failed. {failure_report(job) if job else ''}".strip())
        time.sleep(LOOK_EVERY_S)
    teller(submissions, jobs)
