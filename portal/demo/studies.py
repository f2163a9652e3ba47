"""The listening tests of the demo: one open to anyone, and closed ones whose listeners are simulated.

The systems are real ones of simulated teams. The ratings of the open study are those of the people who open its link,
and nobody's else. Of the closed ones plan, design, recordings, analysis and publication are the portal's own, by its
services and jobs; only the answers are made, by `portal.demo.listeners`. They are marked as simulated, and every page
and figure says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models import Count
from django.urls import reverse
from django.utils import timezone
from django.utils.text import Truncator

from common.errors import ProblemsError
from listening.analysis.reading.inputs import ORIGINAL
from listening.app.models import Study
from listening.app.results.services import close_study, publish_results, start_analysis
from listening.app.studies.designing import make_design
from listening.app.studies.rules import RELAXATIONS
from listening.app.studies.selectors import find_played
from listening.app.studies.services import create_study, launch_study, prepare_study
from listening.app.studies.settings import DEFAULT_SCREENING
from listening.questions import load_preset
from portal.accounts.models import User
from portal.challenges.models import DataSet, Edition
from portal.challenges.services import DEMO
from portal.core.models import AuditEvent
from portal.demo.challenge import find_submission, select_demo_submissions
from portal.demo.listeners import answer_study
from portal.demo.terminal import TerminalScreen, finish_jobs
from portal.jobs.models import Job, JobState
from portal.submissions.models import Submission, SubmittedDocument, SubmittedFile
from portal.submissions.rules import Relation
from portal.submissions.selectors import PROPOSED_SAMPLES, find_description
from portal.submissions.services import offer_parts, release_parts

SCREENING = DEFAULT_SCREENING | {"headphones": "none"}  # the link is tried on a phone, in a minute
PLAN = {
    "evaluators": 6,
    "places_per_network": 6,  # people who try the demo come from one address
    "trials_per_evaluator": 8,
    "originals_per_evaluator": 4,
    "practice_trials": 1,
    "gold_trials": 1,
    "bridge_trials": 0,
    "seed": 2022,
    "screening": SCREENING,
}
SAMPLED = "wide"  # the team whose system everybody can hear
LASTED = timedelta(hours=3)  # at most, from the launch to the end
LONGEST_REASON = 240  # characters of why a test is left out
NO_CONTROLS = {"practice_trials": 0, "gold_trials": 0, "bridge_trials": 0}


def run_demo_study(*, edition: Edition, organizer: User, say: TerminalScreen) -> Study | None:
    """Make what of the open study is not there yet: its plan, its certified design, its stimuli, its launch.

    Returns:
        The study; None where the corpus has too little speech for it.

    Raises:
        CommandError: the stimuli could not be made.
    """
    title = "Demo listening test (systems of simulated teams)"
    # Nobody hears samples of a system while an open listening test plays it.
    plan = DemoStudy("listening", title, "voiceprivacy-2022", PLAN, without=SAMPLED)
    study = _designed(edition, plan, organizer, say, "Planning a listening test on these systems")
    if study is None:
        return None
    if study.state == Study.State.PREPARING:
        finish_jobs([study.job], say)
        study.refresh_from_db()
    if study.state == Study.State.PREPARED:
        study = launch_study(study=study, by=organizer, now=timezone.now())
        say("The listening test is open")
    return study


def release_samples(*, edition: Edition, people: Mapping[str, User], say: TerminalScreen) -> None:
    """Let everybody hear and read of one system what its team offers and the organizer releases, once.

    Args:
        people: the account of the organizer, and of the owner of each simulated team by its key.
    """
    submission = find_submission(edition, SAMPLED)
    if submission is None or submission.state != Submission.State.EVALUATED or submission.shared_parts.exists():
        return
    files = submission.files.select_related("utterance").order_by("utterance__name")
    played = find_played(submission=submission, utterances=[one.utterance_id for one in files])
    of_speakers = {one.utterance.speaker_id: one for one in files if one.utterance_id not in played}
    samples = list(of_speakers.values())[:PROPOSED_SAMPLES]
    if not samples:
        return
    description = find_description(submission)
    parts: list[SubmittedFile | SubmittedDocument] = [*samples, *([description] if description else [])]
    now = timezone.now()
    offer_parts(submission=submission, parts=parts, by=people[SAMPLED], relations={Relation.TEAM}, now=now)
    release_parts(submissions=[submission], by=people["organizer"], now=now)
    say(f"{submission.system}: {len(samples)} samples can be heard by everybody")


def evaluator_link(study: Study) -> str:
    """Return the address that evaluators are given, without the host."""
    return reverse("listen:join", args=[study.link_key])


def heard_submissions(edition: Edition, *, without: str = "") -> list[Submission]:
    """Return what the demo itself submitted, as far as it is evaluated; nobody else's system gets ratings that are made
    up.

    Args:
        without: team whose first system is left out.
    """
    found = select_demo_submissions(edition).filter(state=Submission.State.EVALUATED).order_by("pk")
    left_out = find_submission(edition, without) if without else None
    return [one for one in found if one != left_out]


def choose_heard_sets(edition: Edition) -> list[DataSet]:
    """Return an enrolment set and all that is tried with it, of several the one with most different sentences.

    A listening test compares speakers of one part of a corpus only.
    """
    if edition.corpus is None:
        return []
    known = {one.name: one for one in edition.corpus.data_sets.all()}
    sentences = edition.corpus.data_sets.annotate(said=Count("utterances__transcript", distinct=True))
    counts: dict[str, int] = dict(sentences.values_list("name", "said"))
    parts: dict[str, list[DataSet]] = {}
    for one in edition.recipe.sets("trial"):
        if one.name in known and one.enrolment in known:
            parts.setdefault(one.enrolment, [known[one.enrolment]]).append(known[one.name])
    return max(parts.values(), key=lambda part: sum(counts[one.name] for one in part[1:]), default=[])


@dataclass(frozen=True)
class DemoStudy:
    """A study of the demo.

    Attributes:
        name: follows that of the edition.
        preset: what evaluators are asked.
        numbers: fields of `Study`.
        without: team whose first system it leaves out; none where empty.
    """

    name: str
    title: str
    preset: str
    numbers: dict[str, Any] = field(default_factory=dict)
    without: str = ""


PLANS = (
    DemoStudy(
        "ratings",
        "Demo ratings (simulated listeners)",
        "voiceprivacy-2022",
        {"evaluators": 24, "trials_per_evaluator": 16, "originals_per_evaluator": 8}
        | {"practice_trials": 1, "gold_trials": 1, "bridge_trials": 4},
    ),
    DemoStudy(
        "voices",
        "Demo voice map (simulated listeners)",
        "linkability",
        {"evaluators": 12, "trials_per_evaluator": 1, "board_samples": 12, "board_groups": True} | NO_CONTROLS,
    ),
    DemoStudy(
        "words",
        "Demo transcription (simulated listeners)",
        "transcription",
        {"evaluators": 12, "trials_per_evaluator": 10, "items_at_most": 10, "plays_at_most": 2}
        | {"further": [ORIGINAL], "originals_per_evaluator": 0}
        | NO_CONTROLS,
    ),
)


def begin_simulated_studies(*, edition: Edition, organizer: User, say: TerminalScreen) -> list[Study]:
    """Plan and design what of these studies is not there yet and the corpus has speech for; start their recordings."""
    simulated = {"is_simulated": True, "seed": 2022, "screening": SCREENING}
    plans = (replace(plan, numbers=simulated | plan.numbers) for plan in PLANS)
    found = (_designed(edition, plan, organizer, say, f"Planning {plan.title}") for plan in plans)
    return [study for study in found if study is not None]


def finish_simulated_studies(studies: Sequence[Study], *, organizer: User, say: TerminalScreen) -> None:
    """Bring them to published results.

    Raises:
        CommandError: recordings could not be made, or a study could not be analysed.
    """
    finish_jobs([study.job for study in studies if study.state == Study.State.PREPARING], say)
    for study in studies:
        study.refresh_from_db()
        if study.state == Study.State.PREPARED:
            _let_listen(study, organizer)
            say(f"{study}: {study.evaluators} simulated listeners have answered; nobody was asked")
    finish_jobs([_analysis_job(study, organizer) for study in studies], say)
    for study in studies:
        if not _was_published(study):  # somebody took it back later on purpose
            publish_results(study=study, by=organizer, now=timezone.now())
            say(f"{study}: the results are published")


def _designed(edition: Edition, plan: DemoStudy, organizer: User, say: TerminalScreen, begins: str) -> Study | None:
    """Return the study with its design, and the job that makes its recordings started; None where the speech allows
    none.

    Where recordings run short, the rules that a design can do without are relaxed. `begins`: said of a new one.
    """
    known = Study.objects.filter(name=f"{edition.name}-{plan.name}").first()
    if known is None or not known.is_designed:
        say(begins)
    problems: list[str] = []
    for relaxations in ([], list(RELAXATIONS)):
        try:
            with transaction.atomic():
                study = known or _create(edition, plan, organizer, relaxations)
                if study.state == Study.State.DRAFT:
                    if not study.is_designed:
                        make_design(study, organizer)
                    prepare_study(study, organizer)
                    study.refresh_from_db()
        except ProblemsError as error:
            problems = error.problems
        else:
            if relaxations and known is None:
                say(f"{plan.title}: recordings run short, so the rules of its design are relaxed; its page says which")
            return study
    say(f"{plan.title} is left out, for it needs more speech. {Truncator(problems[0]).chars(LONGEST_REASON)}")
    return None


def _create(edition: Edition, plan: DemoStudy, organizer: User, relaxations: Sequence[str]) -> Study:
    return create_study(
        edition=edition,
        by=organizer,
        systems=heard_submissions(edition, without=plan.without),
        data_sets=choose_heard_sets(edition),
        name=f"{edition.name}-{plan.name}",
        title=plan.title if edition.name == DEMO else f"{plan.title} of {edition.name}",
        questions=load_preset(plan.preset).questions,
        responsible="VoicePrivacy Portal (demo)",
        contact=organizer.email,
        keep_months=12,
        relaxations=relaxations,
        **plan.numbers,
    )


@transaction.atomic
def _let_listen(study: Study, organizer: User) -> None:
    """Launch it as of when the challenge began, let its simulated listeners answer, and close it now."""
    now = timezone.now()
    begun = study.edition.created_at if study.edition else now - LASTED
    study = launch_study(study=study, by=organizer, now=max(now - LASTED, begun))
    answer_study(study, now)
    close_study(study=study, by=organizer, now=now)


def _analysis_job(study: Study, organizer: User) -> Job | None:
    """Return the job that analyses a closed study, which closing has started; None once it is done."""
    newest = study.analyses.select_related("job").order_by("-pk").first()
    if newest is None or (newest.job is not None and newest.job.state in (JobState.FAILED, JobState.CANCELLED)):
        newest = start_analysis(study, organizer)
    return None if newest.is_ready else newest.job


def _was_published(study: Study) -> bool:
    kind = study._meta.label_lower
    published = AuditEvent.objects.filter(action="study.results_published", subject_type=kind)
    return published.filter(subject_id=str(study.pk)).exists()
