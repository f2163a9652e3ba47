"""The demo challenge: an edition that the portal evaluates, with two baselines and up to four simulated teams.

The teams and their people are inventions of this module, and every name says *simulated*. Their systems are not: the
portal's own anonymisers make their speech, which is received like any upload, inspected, attacked, recognised and
ranked by the jobs of the portal. One archive was made beforehand, because that takes minutes and large models. Where
the models of attacker or recogniser are missing, the attacker is one that needs none, and no words are recognised.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError
from django.db.models import Q, QuerySet
from django.utils import timezone

from anonymization.methods.registry import explain_missing, get_method
from common.memory import format_size
from evaluation.protocols.recipe_making import GAIN, Engines, make_recipe, propose_choices, usable_trial_sets
from portal.accounts.models import User
from portal.challenges.models import Corpus, DataSet, Edition
from portal.challenges.services import create_edition
from portal.core.models import AuditEvent
from portal.demo import archives
from portal.demo.terminal import LOOK_EVERY_S, SubmissionTeller, TerminalScreen
from portal.editions.selectors import describe_sets, write_recipe
from portal.jobs.models import Job, JobState
from portal.jobs.terminal import failure_report
from portal.leaderboard.services import publish_leaderboard
from portal.submissions.models import Submission, System, Upload
from portal.submissions.resumable_uploads import (
    UploadPlan,
    abandon_upload,
    create_upload,
    receive_part,
    unfinished_uploads,
)
from portal.systems.services import start_edition_baseline
from portal.teams.models import Team
from portal.teams.services import approve_team, register_team
from speech.encoders import long_term_spectrum
from speech.encoders import registry as encoders
from speech.recognizers import registry as recognizers

SETTLED = (Submission.State.REFUSED, Submission.State.EVALUATED, Submission.State.WITHDRAWN)
SYSTEM_DESCRIPTION = "A system of a simulated team of the demo: the portal’s own anonymiser {method}."
SPOILED_AT_LEAST = 10  # utterances that an archive needs to have every problem
T04_ARCHIVE = settings.FILES_DIR / "demo_t04.zip"
T04_COMMAND = "vp run demo --method t04 --seed 5 --format flac"


@dataclass(frozen=True)
class _DemoSystem:
    """One system of the demo: whose, what made it, and whether its archive is spoiled."""

    team: str  # empty for the organizers' baselines, which the portal runs
    title: str
    method: str
    seed: int
    label: str = ""  # of a baseline
    options: Mapping[str, str] = field(default_factory=dict)
    kind: str = System.Kind.PRIMARY
    is_spoiled: bool = False
    archive: Path | None = None  # made beforehand of the demo corpus; a demo without models does without


# Name, affiliation, country and whether it is academic.
TEAMS = {
    "wide": ("Wide Range (simulated)", "University of Examples (simulated)", "FR", True),
    "low": ("Quick Pitch (simulated)", "Example Labs (simulated)", "SG", False),
    "hasty": ("Hasty Upload (simulated)", "Institute of Late Nights (simulated)", "DE", True),
    "anew": ("Spoken Anew (simulated)", "Laboratory of Examples (simulated)", "JP", True),
}
ENTRIES = (
    _DemoSystem("", get_method("mcadams-2022").title, "mcadams-2022", 2022, "B2"),
    _DemoSystem("", get_method("pitch-shift-vocoder").title, "pitch-shift-vocoder", 2022, "Pitch shift"),
    _DemoSystem("wide", "WORLD vocoder, other formants and F0", "world-formant-f0", 1),
    _DemoSystem("low", "TD-PSOLA, other pitch and formants", "pitch-shift-psola", 2),
    _DemoSystem(
        *("low", "TD-PSOLA, other pitch only", "pitch-shift-psola", 3),
        options={"formants": "kept"},
        kind=System.Kind.CONTRASTIVE,
    ),
    _DemoSystem("hasty", "TD-PSOLA, packed in a hurry", "pitch-shift-psola", 4, is_spoiled=True),
    _DemoSystem("anew", "Recognition, then synthesis in mixed voices", "t04", 5, archive=T04_ARCHIVE),
)


def choose_engines(*, with_models: bool, say: TerminalScreen) -> Engines:
    """Return the attacker and the recogniser of the demo; what is missing of them is told, and what stands in for
    it."""
    attacker, recognizer = encoders.find_engine(encoders.DEFAULT), recognizers.find_engine(recognizers.DEFAULT)
    spectrum = long_term_spectrum.ENGINE
    if not with_models:
        say(f"Without models: the attacker is {spectrum.title}, and no words are recognised")
        return Engines((spectrum.name,))
    if why := encoders.explain_missing(attacker):
        say(f"{why} The attacker is {spectrum.title} instead.")
        attacker = spectrum
    if why := recognizers.explain_missing(recognizer):
        say(f"{why} No words are recognised in the demo.")
        return Engines((attacker.name,))
    return Engines((attacker.name,), (recognizer.name,))


def find_obstacle(corpus: Corpus) -> str:
    """Return why no challenge can be made of a corpus, in one sentence; empty where one can."""
    if usable_trial_sets(describe_sets(corpus)):
        return ""
    return f"The corpus {corpus.name} has no trial set that can be attacked, so there is no challenge on it."


def make_demo_edition(*, corpus: Corpus, organizer: User, with_models: bool, say: TerminalScreen) -> Edition:
    """Return the challenge on this corpus, by the recipe that the portal proposes; the one that is there, if there
    is."""
    known = Edition.objects.filter(name=corpus.name, corpus=corpus).first()
    if known is not None:
        return known
    sets = describe_sets(corpus)
    title = "Demo challenge" if corpus.is_synthetic else f"Challenge of {corpus.name}"
    engines = choose_engines(with_models=with_models, say=say)
    choices = propose_choices(sets, engines, edition=corpus.name, title=title)
    if engines.attackers == (long_term_spectrum.ENGINE.name,):  # knows voices too little to compare them
        choices = replace(choices, utilities=tuple(one for one in choices.utilities if one != GAIN))
    recipe = make_recipe(sets, choices)
    kind = "synthetic" if corpus.is_synthetic else "real"
    return create_edition(
        by=organizer,
        organizers=[organizer],
        name=corpus.name,
        title=f"{title} (simulated teams)",
        description=f"This challenge shows the portal at work. Its speech is {kind} and its teams are simulated. The "
        "portal itself attacks, recognises and ranks what they submit. Its numbers rest on few voices and say little "
        "about anonymisers.",
        recipe_text=write_recipe(recipe, corpus),
        corpus=corpus,
        is_listed=True,
        description_required=True,
        shares_data=corpus.is_synthetic,
    )


def start_demo_baselines(*, edition: Edition, organizer: User, say: TerminalScreen) -> None:
    """Let the portal make the baselines that are not there yet; what cannot run here is told."""
    for entry in ENTRIES:
        if not entry.archive and (why := explain_missing(get_method(entry.method))):
            say(f"{entry.title} is left out. {why}")
    for entry in _missing(edition):
        if entry.team:
            continue
        say(f"Starting the baseline {entry.label}, which the portal runs, attacks and recognises")
        data_sets = _data_sets(edition)
        made: dict[str, Any] = {"method": entry.method, "seed": entry.seed, "data_sets": data_sets}
        start_edition_baseline(edition=edition, label=entry.label, by=organizer, **made)


def send_demo_systems(
    *, edition: Edition, people: Mapping[str, User], with_models: bool, say: TerminalScreen
) -> SubmissionTeller:
    """Hand in what the teams make, as far as it is not there yet.

    Args:
        people: the account of the organizer, and of the owner of each simulated team by its key in `TEAMS`.
        with_models: whether the archive that was made beforehand with models is sent, where it is of this speech.

    Returns:
        What tells how the submissions go on.
    """
    has_archives = with_models and edition.corpus is not None and edition.corpus.is_synthetic
    made = [entry for entry in ENTRIES if _can_be_made(entry) and (has_archives or not entry.archive)]
    owners = {entry.team for entry in made}
    teams = {key: _team(edition, key, people[key], people["organizer"]) for key in TEAMS if key in owners}
    teller = SubmissionTeller(say)
    missing = [entry for entry in _missing(edition) if entry.team in teams]
    utterances = archives.read_utterances(_data_sets(edition)) if missing else []
    for entry in missing:
        if entry.is_spoiled and len({one.name for one in utterances}) < SPOILED_AT_LEAST:
            continue
        _send(edition, entry, teams[entry.team], people[entry.team], utterances, say)
        teller(select_demo_submissions(edition), select_jobs(edition))
    return teller


def finish_demo_challenge(*, edition: Edition, organizer: User, teller: SubmissionTeller, say: TerminalScreen) -> None:
    """Wait until every submission is settled, and publish the leaderboard; `edition` then says so.

    Raises:
        CommandError: the portal could not evaluate a submission.
    """
    _wait(edition, teller)
    if not AuditEvent.objects.filter(
        action="board.published", subject_type="challenges.edition", subject_id=str(edition.pk)
    ).exists():  # somebody took it back later on purpose
        publish_leaderboard(edition=edition, now=timezone.now(), by=organizer)
        say("The leaderboard is published")
    edition.refresh_from_db()


def select_demo_submissions(edition: Edition) -> QuerySet[Submission]:
    """Return what the demo itself submitted: for its own teams and, as baselines, for the organizer."""
    own = Q()
    for entry in ENTRIES:
        team = Q(system__team__name=TEAMS[entry.team][0]) if entry.team else Q(system__team=None)
        own |= team & Q(system__title=entry.title)
    return Submission.objects.filter(own, system__edition=edition, version=1)


def find_submission(edition: Edition, team: str, *, is_spoiled: bool = False) -> Submission | None:
    """Return the first submission of the first such entry of a team, or of the organizers' baselines."""
    title = next(entry.title for entry in ENTRIES if (entry.team, entry.is_spoiled) == (team, is_spoiled))
    return select_demo_submissions(edition).filter(system__title=title).first()


def select_jobs(edition: Edition) -> QuerySet[Job]:
    """Return the jobs of the challenge, without its mails."""
    return Job.objects.filter(edition=edition.name).exclude(kind="send-notice")


def _data_sets(edition: Edition) -> list[DataSet]:
    """Return what every submission consists of: the sets of the recipe that the corpus has."""
    if edition.corpus is None:
        return []
    return list(edition.corpus.data_sets.filter(name__in=edition.recipe.data_sets).order_by("name"))


def _team(edition: Edition, key: str, owner: User, organizer: User) -> Team:
    fields: dict[str, Any] = dict(zip(("name", "affiliation", "country", "is_academic"), TEAMS[key], strict=True))
    team = edition.teams.filter(name=fields["name"]).first()
    if team is None:
        contact: dict[str, Any] = {"contact": owner.name, "contact_email": owner.email}
        team = register_team(edition=edition, by=owner, now=timezone.now(), **contact, **fields)
    return team if team.number else approve_team(team=team, by=organizer, now=timezone.now())


def _missing(edition: Edition) -> list[_DemoSystem]:
    """Return the systems that can be made here and are not there yet."""
    sent = set(System.objects.filter(edition=edition, submissions__isnull=False).values_list("title", flat=True))
    return [one for one in ENTRIES if one.title not in sent and _can_be_made(one)]


def _can_be_made(entry: _DemoSystem) -> bool:
    return bool(entry.archive) or not explain_missing(get_method(entry.method))


def _send(
    edition: Edition,
    entry: _DemoSystem,
    team: Team,
    by: User,
    utterances: list[archives.DemoUtterance],
    say: TerminalScreen,
) -> None:
    """Hand in an archive part by part, as an upload from outside does; it is made first where it does not exist."""
    for rest in unfinished_uploads(edition, team).filter(system_title=entry.title, created_by=by):
        abandon_upload(upload=rest, by=by)  # of a demo that was interrupted
    with TemporaryDirectory() as place:
        archive = entry.archive or Path(place) / f"{entry.team}.zip"
        if not entry.archive:
            _make_archive(archive, entry, team, utterances, edition.recipe.anonymised_suffix, say)
        size = archive.stat().st_size
        say(f"Uploading {archive.name} ({format_size(size)}) for {team}")
        plan = UploadPlan(edition, team, kind=entry.kind, title=entry.title)
        upload: Upload = create_upload(plan=plan, file_name=archive.name, size=size, by=by, now=timezone.now())
        with archive.open("rb") as file:
            receive_part(upload=upload, offset=0, read=file.read, length=size, by=by)


def _make_archive(
    target: Path,
    entry: _DemoSystem,
    team: Team,
    utterances: list[archives.DemoUtterance],
    suffix: str,
    say: TerminalScreen,
) -> None:
    """Write the archive of a system; `suffix` is what the edition adds to the names of its data sets."""
    work = f"{team} makes its speech: {entry.title}"
    say(work)
    submission = archives.anonymise(
        utterances,
        entry.method,
        entry.seed,
        entry.options,
        lambda done, total: say.show(f"{work}: {done} of {total}"),
    )
    text = SYSTEM_DESCRIPTION.format(method=get_method(entry.method).title)
    submission.files["system_description.pdf"] = archives.describe(entry.title, text)
    if entry.is_spoiled:
        archives.spoil(submission, suffix)
    archives.pack(submission, target, suffix)


def _wait(edition: Edition, teller: SubmissionTeller) -> None:
    """Wait until each submission is evaluated or refused."""
    submissions, jobs = select_demo_submissions(edition), select_jobs(edition)
    while submissions.exclude(state__in=SETTLED).exists():
        teller(submissions, jobs.all())
        failed = Q(state=Submission.State.FAILED) | Q(job__state=JobState.FAILED)
        failed |= Q(anonymization_runs__job__state=JobState.FAILED)
        if (one := submissions.filter(failed).first()) is not None:
            job = jobs.filter(state=JobState.FAILED).order_by("finished_at").last()
            raise CommandError(f"{one} failed. {failure_report(job) if job else ''}".strip())
        time.sleep(LOOK_EVERY_S)
    teller(submissions, jobs.all())
    teller.say.settle()
