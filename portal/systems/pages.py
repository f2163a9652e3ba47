"""What the pages of systems show, put together from what the other parts know."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from typing import Any

from django.core.paginator import Paginator
from django.db.models import Count, Q
from django.http import Http404, HttpRequest
from django.utils.safestring import SafeString, mark_safe

from anonymization.app.models import AnonymizationRun
from anonymization.app.selectors import find_method, list_networks, list_runs, list_settings, sum_speech
from common.tables import Cell, Column, Table, number_columns, plain_table
from evaluation.app.audio_measures import selectors
from evaluation.app.models import EvaluationRun
from evaluation.app.runs.kinds import CHAINED_KINDS
from evaluation.figures import contours
from evaluation.figures.histogram import MINIMUM_PITCH_CORRELATION, Threshold, describe, size_of
from evaluation.figures.style import ImageFormat, Size, Theme, for_page
from evaluation.metrics.averages import Distribution, distribute
from evaluation.metrics.catalogue import PITCH_CORRELATION
from evaluation.metrics.pitch import MINIMUM_OF_2022
from portal.challenges.models import Gender
from portal.challenges.selectors import corpora_for, passes_speech_on
from portal.core.labels import moment_cell, time_left
from portal.core.signed_urls import signed_address, voice_sources
from portal.core.storage import read_stored
from portal.corpora.selectors import summaries
from portal.jobs.models import ACTIVE_STATES, Job, JobState
from portal.jobs.selectors import JobsProgress, with_estimates
from portal.submissions.models import SharedPart, Submission, SubmittedDocument, SubmittedFile, System
from portal.submissions.rules import Relation, sharing_problem
from portal.submissions.selectors import (
    ACCEPTED,
    PROPOSED_SAMPLES,
    find_description,
    find_shown,
    list_chained_jobs,
    list_parts,
    list_parts_and_descriptions,
    listed_systems_for,
    propose_samples,
    relation_to,
    shown_submission,
)
from portal.systems.selectors import View, list_samples
from portal.systems.tables import (
    PITCH_COLUMNS,
    comparison_table,
    extremes_tables,
    histogram_table,
    home_cell,
    measures_table,
    pitch_cells,
)
from portal.teams.selectors import data_access

PAGE_SIZE = 50
SYSTEMS_ON_A_PAGE = 20
FIGURE_FILES: tuple[ImageFormat, ...] = ("svg", "png", "pdf")
RUNS_THAT_TELL_THE_PACE, ENDED_JOBS_THAT_TELL_THE_PACE = 20, 50
# Attacks, recognition and trainings have pages of their own, with their own progress. Here they count while the system
# is evaluated, which waits for them.
OF_ENGINES = (*(one.kind for one in CHAINED_KINDS), EvaluationRun.Kind.TRAINING)


# What to expect of the numbers of a method, where that is known (docs/methods.md).
_OF_DRAWN_ALPHA = (
    "Each speaker of an enrolment or trial set has one α for all utterances, and ρF0 follows α more than anything "
    "else: from about 0.4 at α = 0.5 to 0.8 at α = 0.9. The published means of B2 are 0.61 to 0.70 for female and "
    "0.53 to 0.66 for male sets. They average over many speakers; a set of a few has only a few values of α, so "
    "its mean can lie anywhere between 0.3 and 0.8 with nothing wrong. Compare systems on sets with many speakers."
)
EXPECTATIONS = {
    "mcadams-2020": (
        "All speakers share one voice, α = 0.8, as this edition was published: voices differ neither between speakers "
        "nor between the enrolment and the trials of one."
    ),
    "mcadams-2022": _OF_DRAWN_ALPHA,
    "mcadams-2024": _OF_DRAWN_ALPHA,
}


# The list of systems -------------------------------------------------------------------------------


# What became of a submission, whatever jobs of its earlier or later versions did.
BADGES: dict[str, str] = {Submission.State.EVALUATED: "succeeded", Submission.State.WITHDRAWN: "cancelled"}


@dataclass(frozen=True)
class SystemRow:
    """A system in a list: its files, how far its jobs are, and its pitch correlation where trial sets were measured."""

    system: System
    files: int
    jobs: dict[str, int]
    pitch: selectors.PitchTable | None
    shown: Submission | None

    @property
    def jobs_total(self) -> int:
        return sum(self.jobs.values())

    @property
    def jobs_ended(self) -> int:
        return self.jobs_total - self.jobs.get(JobState.WAITING, 0) - self.jobs.get(JobState.RUNNING, 0)

    @property
    def submission_state(self) -> str:
        """State of the submission to an edition whose numbers its own people meet; empty where there is none."""
        if self.shown is None or not self.system.edition_id:
            return ""
        return str(Submission.State(self.shown.state).label).lower()

    @property
    def state(self) -> str:
        """Return the state that most asks for attention; nothing where there is no job."""
        order = (JobState.RUNNING, JobState.WAITING, JobState.FAILED, JobState.CANCELLED, JobState.SUCCEEDED)
        of_jobs = next((state.value for state in order if self.jobs.get(state)), "")
        if of_jobs and self.submission_state and of_jobs not in ACTIVE_STATES:
            return BADGES.get(self.submission_state, of_jobs)
        return of_jobs

    @property
    def state_text(self) -> str:
        if self.submission_state and self.state not in ACTIVE_STATES:
            return self.submission_state
        if self.state in ACTIVE_STATES:
            return f"{self.state}, {self.jobs_ended} of {self.jobs_total} jobs ended"
        if self.state in {JobState.FAILED, JobState.CANCELLED}:
            return f"{self.jobs[self.state]} of {self.jobs_total} jobs {self.state}"
        return "measured" if self.state else "no jobs"


def list_page(request: HttpRequest) -> dict[str, Any]:
    page = Paginator(listed_systems_for(request.user), SYSTEMS_ON_A_PAGE).get_page(request.GET.get("page"))
    rows = system_rows(list(page.object_list))
    return {
        "page": page,
        "rows": rows,
        "listing": _systems_table(rows),
        "minimum": MINIMUM_OF_2022,
        "corpora": summaries(corpora_for(request.user).filter(archived_at=None)),
    }


def system_rows(systems: list[System]) -> list[SystemRow]:
    """Return files of the submission that is shown, jobs and results of these systems, in as many queries for any
    number."""
    shown = find_shown(systems)
    counted = SubmittedFile.objects.filter(submission__in=shown.values()).order_by()
    files = dict(counted.values_list("submission__system").annotate(Count("pk")))
    jobs = _count_jobs(shown)
    pitch = selectors.compare_systems(shown)
    return [
        SystemRow(system, files.get(system.pk, 0), jobs.get(system.pk, {}), pitch.get(system.pk), shown.get(system.pk))
        for system in systems
    ]


def _count_jobs(shown: dict[int, Submission]) -> dict[int, dict[str, int]]:
    """Return how many jobs of the version shown of each system are in each state, as `describe_progress` counts
    them."""
    found: dict[int, Counter[str]] = {system: Counter() for system in shown}
    made = AnonymizationRun.objects.filter(submission__in=shown.values(), job__isnull=False)
    for system, state in made.values_list("submission__system", "job__state"):
        found[system][state] += 1
    of_engines = []
    runs = EvaluationRun.objects.filter(submission__in=shown.values(), job__isnull=False)
    for run, kind, system, state in runs.values_list("pk", "kind", "submission__system", "job__state"):
        if kind in OF_ENGINES:
            of_engines.append((run, system, state))
        else:
            found[system][state] += 1
    at_work = {pk for pk, counts in found.items() if counts[JobState.WAITING] or counts[JobState.RUNNING]}
    system_of = {run: system for run, system, _ in of_engines if system in at_work}
    chained = list_chained_jobs(system_of).values_list("parameters__run", "state") if system_of else ()
    counted = [(run, state) for run, _, state in of_engines if run in system_of]
    for run, state in (*counted, *chained):
        found[system_of[run]][state] += 1
    return {system: dict(counts) for system, counts in found.items()}


def _systems_table(rows: list[SystemRow]) -> Table:
    columns = [
        Column("name", "Name"),
        Column("where", "Edition or corpus", kind="text"),
        Column("state", "State"),
        *PITCH_COLUMNS,
    ]
    columns += [*number_columns("Files"), Column("begun", "Begun"), Column("method", "Method", kind="text")]
    return plain_table(
        "Systems with their results",
        columns,
        map(_system_cells, rows),
        styles="strip dense",
        caption="Systems",
        is_caption_hidden=True,
        missing="–",
    )


def _system_cells(row: SystemRow) -> list[Cell | str]:
    system = row.system
    return [
        Cell(str(system), link=system.get_absolute_url()),
        home_cell(system.edition or system.corpus, system.corpus),
        Cell(row.state_text, badge=row.state) if row.state else Cell(aside=row.state_text),
        *pitch_cells(row.pitch),
        f"{row.files:,}",
        moment_cell(system.created_at),
        system.title,
    ]


# A system ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Figure:
    """A stored figure for light and dark pages, with its words, its files and the engine that it tells of."""

    title: str
    alt: str
    image: str
    dark: str
    downloads: list[dict[str, str]]
    size: Size | None = None
    engine: str = ""
    stored_as: str = ""
    drawn: dict[str, SafeString] = field(default_factory=dict)


def drawn_in_page(key: str, name: str, words: str) -> dict[str, SafeString]:
    """Return a stored SVG as a part of a page, whose curves tell what they are; nothing for one that is not stored."""
    if (svg := read_stored(key)) is None:
        return {}
    return {"wide": mark_safe(for_page(svg, name, words, lambda _: ""))}  # noqa: S308 - drawn by us


def sign_figure(request: HttpRequest, key: Callable[[Theme, ImageFormat], str], **words: Any) -> Figure:
    """Return a figure with the addresses of its files.

    Args:
        key: of the file in a theme and format.
        words: `title`, `alt`, `size` and `engine` of the `Figure`.
    """
    files = {kind: signed_address(request, key("light", kind)) for kind in FIGURE_FILES}
    downloads = [{"label": kind.upper(), "url": url} for kind, url in files.items()]
    dark = signed_address(request, key("dark", "svg"))
    return Figure(image=files["svg"], dark=dark, downloads=downloads, **words)


def system_page(request: HttpRequest, system: System) -> dict[str, Any]:
    submission = load_submission(system)
    runs = selectors.list_finished_runs(submission)
    values = selectors.read_values(runs)
    counts = selectors.count_files(submission.pk)
    judged = selectors.select_trial_runs(runs) or runs
    worst, best = selectors.find_extremes(judged)
    comparison = selectors.compare_pitch(runs, values, counts)
    return {
        "system": system,
        "corpus": system.corpus,
        "submission": submission,
        "files": counts.files,
        "provenance": describe_provenance(submission, request.user),
        "is_organizer": relation_to(request.user, system) is Relation.ORGANIZER,
        "progress": describe_progress(submission),
        "runs": runs,
        "comparison": comparison,
        "trial_sets": comparison_table(comparison),
        "minimum": MINIMUM_OF_2022,
        "estimators": values.estimators,
        "measures": measures_table(runs, values, counts, "Every data set of this system, by gender.", system),
        "figures": [figure for run in judged if (figure := set_figure(request, run, values))],
        **{"contours": contours_figure(request, judged)} | _describe_numbers(judged),
        "worst": worst,
        "best": best,
        "extremes": extremes_tables(system, worst, best),
        "problems": selectors.group_faults(runs),
    }


OFFER_QUESTION = (
    "Up to {} utterances, each of another speaker, can be heard by everybody once {}the leaderboard is published. "
    "You can take each of them back."
)


def shared_parts(request: HttpRequest, view: View) -> dict[str, Any]:
    """Return the samples that can be heard and the description that can be read; for its own, what they do with them.

    Everybody meets what is released on a published leaderboard, its own also what is only offered. A description that
    was released stays until that of a later version is. A sample that a listening test plays is heard by nobody. Where
    the owner of the corpus passes speech on, its own and those who may download the data, organizers and who accepted
    its terms in an approved team, also hear the originals.
    """
    submission, system = view.submission, view.system
    all_parts, descriptions = list_parts_and_descriptions(submission)
    met = shown_submission(system, Relation.OTHER, view.versions) if view.is_own else submission
    public = next((one for one in descriptions if met and one.submission.version <= met.version), None)
    parts = all_parts if view.is_own else [part for part in all_parts if part.released_at]
    audible = list_samples(parts, submission)
    with_originals = (
        bool(audible)
        and system.edition is not None
        and passes_speech_on(system.edition)
        and (view.is_own or data_access(request.user, system.edition).is_open)
    )
    problem = sharing_problem(
        view.relations, is_baseline=system.team_id is None, is_accepted=submission.state in ACCEPTED
    )
    described = next((part for part in parts if part.document), None) if view.is_own else public
    others = [one for one in view.versions if one.pk != submission.pk and one.state != Submission.State.WITHDRAWN]
    return {
        "samples": [
            _sample(request, part, part.file, number, with_original=with_originals)
            | {"state": _release_in_words(part, system, met, is_public=met == submission)}
            for number, part in enumerate(audible, start=1)
            if part.file
        ],
        "has_originals": with_originals,
        "silent": sum(part.file is not None for part in parts) - len(audible) if view.is_own else 0,
        "description": described,
        "description_state": _release_in_words(described, system, met, is_public=described == public)
        if described
        else "",
        "earlier_description": public if public and public.submission.version < submission.version else None,
        "offers_samples": not problem and not any(part.file for part in all_parts) and submission.has_files,  # type: ignore[attr-defined]
        "offer_question": OFFER_QUESTION.format(
            PROPOSED_SAMPLES, "" if system.team_id is None else "an organizer has released them and "
        ),
        "offers_description": not problem and not any(one.document for one in all_parts) and submission.has_description,  # type: ignore[attr-defined]
        "waiting_in": [one.version for one in others if one.has_offers],  # type: ignore[attr-defined]
        "n_waiting": sum(part.released_at is None for part in all_parts) if view.is_organizer else 0,
    }


def _release_in_words(part: SharedPart, system: System, met: Submission | None, *, is_public: bool) -> str:
    """For its own people: whether others can hear or read it.

    Args:
        met: the version that others meet.
    """
    if part.released_at is None:
        return "waits for its release by an organizer"
    if system.edition is not None and system.edition.published_at is None:
        return "released; public once the leaderboard is published"
    if is_public:
        return "released"
    if met is None:
        return "released; public once this version is on the leaderboard"
    return f"released, but not public: the leaderboard shows version {met.version}"


def _sample(
    request: HttpRequest, part: SharedPart, file: SubmittedFile, number: int, *, with_original: bool
) -> dict[str, Any]:
    """Return a sample as `player.html` takes it: neither utterance nor speaker has a name here."""
    audio = {"original": file.utterance.audio} if with_original else {}
    voice = file.utterance.speaker.get_gender_display()
    return {
        "part": part,
        "title": f"Sample {number}",
        "note": f"{voice} voice, {file.samples / file.rate_hz:.1f} s",
        "sources": voice_sources(request, audio | {"anonymised": file.audio}),
    }


def describe_offer(view: View, parts: Sequence[SubmittedFile | SubmittedDocument]) -> str:
    """Return what an offer of these parts, all samples or all descriptions, has done."""
    samples = sum(isinstance(part, SubmittedFile) for part in parts)
    what = f"{samples} samples are" if samples > 1 else "1 sample is" if samples else "The description is"
    if view.system.team_id is None:
        return f"{what} released: public once the leaderboard is published."
    return f"{what} offered: public once an organizer has released what is offered and the leaderboard is published."


def find_offered(view: View, what: str) -> list[SubmittedFile | SubmittedDocument]:
    """Return what a form offers of a submission: ``samples`` that are proposed, its ``description``, or the file of a
    key."""
    if what == "samples":
        return [*propose_samples(view.submission)]
    if what == "description":
        found = find_description(view.submission)
        return [found] if found else []
    return [*view.submission.files.filter(pk=what)] if what.isdecimal() and len(what) < 19 else []


def find_part(view: View, key: str) -> SharedPart | None:
    """Return a part that is offered or released, by its key in a form."""
    return next((part for part in list_parts(view.submission) if str(part.pk) == key), None)


def load_submission(system: System) -> Submission:
    """Return the newest submission of a system, or "not found"."""
    submission = system.submissions.first()
    if submission is None:
        raise Http404
    return submission


def describe_provenance(submission: Submission, user: Any) -> dict[str, Any] | None:
    """Return how the portal itself made these files; None for files made elsewhere.

    `method`: None where this portal has it no more; `levels`: at which level which data sets were anonymised;
    `expectation`: what a reader should know before comparing the numbers.
    """
    runs = list_runs(submission)
    if not runs:
        return None
    return {
        **{
            name: ", ".join(sorted({getattr(run, name) for run in runs})) for name in ("recipe_version", "code_version")
        },
        "name": runs[0].method,
        "method": find_method(runs[0]),
        "runs": runs,
        "networks": list_networks(user, runs[0]),
        "settings": list_settings(runs[0]),
        "levels": _levels(runs),
        "expectation": EXPECTATIONS.get(runs[0].method, ""),
    }


def _levels(runs: list[AnonymizationRun]) -> str:
    """Such as ``speaker level``, or ``speaker level; utterance level for x_train``."""
    by_level: dict[str, list[str]] = {}
    for run in runs:
        by_level.setdefault(run.level, []).append(run.data_set.name)
    if len(by_level) == 1:
        return f"{runs[0].level} level"
    fewest = min(by_level, key=lambda level: len(by_level[level]))
    [usual] = [level for level in by_level if level != fewest]
    return f"{usual} level; {fewest} level for {', '.join(by_level[fewest])}"


def drawn_minimum(run: EvaluationRun, now: Threshold | None) -> Threshold | None:
    """Return the minimum whose line a run's histogram has: that of `now` unless the job says which one it drew."""
    found = run.job.result.get("minimum") if run.job else None
    if found is None or (drawn := Threshold(*found) if found else None) == now:
        return now
    return drawn and replace(drawn, label=f"former {drawn.label}")


def set_figure(
    request: HttpRequest,
    run: EvaluationRun,
    values: selectors.RunValues,
    minimum: Threshold | None = MINIMUM_PITCH_CORRELATION,
) -> Figure | None:
    """Return the histogram of a data set."""
    groups = {
        str(Gender(gender).label): summary
        for gender in values.genders_of(run)
        if (summary := values.pitch(run, gender))
    }
    if not groups:
        return None
    drawn = Distribution(groups=tuple(groups), summaries=tuple(groups.values()), bins=())
    words = describe(drawn, drawn_minimum(run, minimum), PITCH_CORRELATION.decimals)
    alt = f"Histogram of {PITCH_CORRELATION.label} in {run.measured_set.name}. {words}"
    key = partial(selectors.figure_key, run)
    return sign_figure(request, key, title=run.measured_set.name, size=size_of(len(groups)), alt=alt)


def contours_figure(request: HttpRequest, runs: Sequence[EvaluationRun]) -> dict[str, Any] | None:
    """Return F0 contours of the utterance of median gain by realignment, as `figure.html` takes it; None without
    one."""
    found = ((one, one.job.result.get("contours")) for one in runs if one.job)
    run, shown = next((pair for pair in found if pair[1]), (None, {}))
    if run is None:
        return None
    words, title = contours.describe_contours(**shown), f"F0 contours of one utterance of {run.measured_set.name}"
    key = partial(selectors.contours_key, run)
    drawn = sign_figure(request, key, title=title, alt=f"{title}. {words}", size=contours.SIZE)
    return vars(drawn) | {"caption": f"{words} Half of the utterances gain more."}


def _describe_numbers(runs: list[EvaluationRun]) -> dict[str, Any]:
    """Return the bars of all these histograms in common bins: a row for each data set and gender."""
    rho = selectors.group_correlations_by_set(runs)
    if not rho:
        return {}
    numbers = distribute(rho)
    counts = zip(*(each.counts for each in numbers.bins), strict=True)
    rows = list(zip(numbers.groups, numbers.summaries, counts, strict=True))
    return {"bins": numbers.bins, "number_rows": rows, "numbers": histogram_table(numbers.bins, rows)}


# A new system --------------------------------------------------------------------------------------


def measuring_per_second() -> float | None:
    """Return seconds that measuring one second of speech took lately; None before this portal did."""
    measures = EvaluationRun.Kind.MEASURES
    runs = EvaluationRun.objects.filter(job__state=JobState.SUCCEEDED, kind=measures).order_by("-pk")
    rows = list(runs.values_list("data_set", "job__started_at", "job__finished_at")[:RUNS_THAT_TELL_THE_PACE])
    speech = sum_speech({data_set for data_set, *_ in rows if data_set})
    known = [(ended - started, speech.get(one, 0.0)) for one, started, ended in rows if started and ended]
    speech_s = sum(spoken for _, spoken in known)
    return sum(took.total_seconds() for took, spoken in known if spoken) / speech_s if speech_s else None


# Progress of a system ------------------------------------------------------------------------------


def describe_progress(submission: Submission) -> JobsProgress:
    """Return the jobs of a version of a system, while it is at work with those of its attacks, recognition and
    trainings."""
    of_runs = Q(anonymization_run__submission=submission) | Q(evaluation_run__submission=submission)
    found = list(Job.objects.filter(of_runs).select_related("evaluation_run"))
    runs = {job.pk: job.evaluation_run for job in found if hasattr(job, "evaluation_run")}
    of_engines = {key: run.pk for key, run in runs.items() if run.kind in OF_ENGINES}
    jobs = [job for job in found if job.pk not in of_engines]
    if of_engines and any(not job.has_ended for job in jobs):
        jobs = [*found, *list_chained_jobs(of_engines.values())]
    jobs = with_estimates(sorted(jobs, key=lambda job: (job.created_at, job.pk)))
    return JobsProgress(jobs=jobs, estimate=time_left(_remaining(jobs)), is_part=len(jobs) < len(found))


def _remaining(jobs: list[Job]) -> timedelta | None:
    """Time until all jobs have ended: what each waiting one will take is what others of its kind took.

    Jobs of others that are taken before the last of them count, too, those under way as if they had just begun. Unknown
    before one of each kind has ended, or while one of its own runs whose end is not known.
    """
    running = [job.remaining for job in jobs if job.state == JobState.RUNNING]  # type: ignore[attr-defined]
    waiting = Counter(job.kind for job in jobs if job.state == JobState.WAITING)
    if not (running or waiting):
        return None
    at_work = len(running)
    for kind, state, count in _count_in_front(jobs):
        waiting[kind] += count
        at_work += count if state == JobState.RUNNING else 0
    took: dict[str, list[timedelta]] = defaultdict(list)
    for job in jobs:
        if job.state == JobState.SUCCEEDED and job.took is not None:  # type: ignore[attr-defined]
            took[job.kind].append(job.took)  # type: ignore[attr-defined]
    if missing := [kind for kind in waiting if kind not in took]:
        ended = Job.objects.filter(kind__in=missing, state=JobState.SUCCEEDED, started_at__isnull=False)
        times = ended.order_by("-finished_at").values_list("kind", "started_at", "finished_at")
        for kind, started_at, finished_at in times[:ENDED_JOBS_THAT_TELL_THE_PACE]:
            if started_at and finished_at:
                took[kind].append(finished_at - started_at)
    if None in running or not waiting.keys() <= took.keys():
        return None
    work = [sum(took[kind], timedelta()) / len(took[kind]) * count for kind, count in waiting.items()]
    return sum([*running, *work], timedelta()) / max(1, at_work)


def _count_in_front(jobs: list[Job]) -> list[tuple[str, str, int]]:
    """Return jobs of others in the queues in which some of these wait: under way, or older than the last of these."""
    waiting = [job for job in jobs if job.state == JobState.WAITING]
    if not waiting:
        return []
    older = Q(state=JobState.WAITING, created_at__lt=max(job.created_at for job in waiting))
    others = Job.objects.filter(older | Q(state=JobState.RUNNING), queue__in={job.queue for job in waiting})
    counted = others.exclude(pk__in=[job.pk for job in jobs]).order_by().values_list("kind", "state")
    return list(counted.annotate(Count("pk")))
