"""What organizers' pages read of studies, what a study can be made of, and the texts that evaluators read.

An organizer sees the studies of the editions they organise and, of those without an edition, their own; anything else
looks exactly like a study that does not exist. The data sets of a study belong together: every trial set is compared
with every enrolment set in a trial list of the corpus. A list that was given names the models and the utterances that
may be heard; a product names all.
"""

from __future__ import annotations

import io
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib.auth import get_user_model
from django.core.files.storage import default_storage
from django.db.models import Avg, Count, Exists, F, OuterRef, Q, QuerySet
from django.http import Http404
from django.shortcuts import get_object_or_404
from django.utils.safestring import SafeString, mark_safe
from django.utils.text import slugify

from common.errors import NotPossible
from common.line_texts import fold_line, number_line
from evaluation.formats.scores import read_trial_table
from listening import texts
from listening.analysis.reading.inputs import ORIGINAL
from listening.app.models import Block, Condition, Presentation, PresentationSample, Session, Stimulus, Study, StudyText
from listening.app.studies.rules import PERSONAL_DATA, RESULTS_TAKEN_BACK, kept_until, seconds_of_trial, slots_of_trial
from listening.app.studies.settings import OPTIONAL_CHECKS
from listening.design.precision import OTHER_MINUTES
from listening.design.requirements import PoolUtterance
from listening.questions import slot_order
from listening.stimuli.anchors import ANCHORS_HZ, name_anchor
from portal.challenges.models import DataSet, Edition, Gender, Role, TrialList, Utterance
from portal.challenges.selectors import managed_editions_for
from portal.core.counting import count_rows
from portal.core.models import AuditEvent
from portal.submissions.models import Submission, SubmittedFile

CHECK_MINUTES = 0.75  # of bandwidth or environment
RESERVED_NAMES = frozenset({"new", "import"})  # of other pages
LONGEST_FREE_NAME, LONGEST_TITLE, LONGEST_CODE = 50, 120, 40
HEARABLE = (Submission.State.ACCEPTED, Submission.State.EVALUATING, Submission.State.EVALUATED)


def studies_for(user: Any) -> QuerySet[Study]:
    """Return the studies of the editions this person organises, and those of their own recordings, newest first."""
    if not user.is_authenticated:
        return Study.objects.none()
    theirs = Q(edition__in=managed_editions_for(user)) | Q(edition=None, created_by=user)
    return Study.objects.filter(theirs).select_related("edition", "edition__corpus")


def organizers_of(study: Study) -> QuerySet[Any]:
    """Return the people who organise a study: those of its edition, or who made it."""
    if study.edition is not None:
        return study.edition.organizers.all()
    return get_user_model().objects.filter(pk__in=[study.created_by_id])


def editions_to_study(user: Any) -> QuerySet[Edition]:
    """Return the editions with a corpus that this person organises; "not found" for who is no organizer of anything."""
    managed = managed_editions_for(user)
    if not user.is_organizer and not managed.exists():
        raise Http404
    return managed.filter(corpus__isnull=False, archived_at=None)


def explain_no_edition(user: Any) -> str:
    """Return why there is no edition for a new study, and what to do; empty where there is one.

    Raises:
        Http404: as of `editions_to_study`.
    """
    if editions_to_study(user).exists():
        return ""
    if managed_editions_for(user).filter(corpus__isnull=False).exists():
        return "Every edition with a corpus that you organise is archived. Restore one, or create a new edition."
    return "You organise no edition with a corpus. Create one, or give one of yours a corpus."


def edition_to_study(user: Any, name: str) -> Edition:
    """Return one of them by its name, which may come from anywhere; Http404 for any other."""
    if "\0" in name:  # which PostgreSQL takes in no text
        raise Http404
    return get_object_or_404(editions_to_study(user), name=name)


def free_study_name(title: str) -> str:
    """Return a name for addresses that is derived from a title and that no study has."""
    start = slugify(title)[:LONGEST_FREE_NAME].strip("-_") or "study"
    taken = set(Study.objects.filter(name__startswith=start).values_list("name", flat=True)) | RESERVED_NAMES
    return next(name for name in (start, *(f"{start}-{n}" for n in range(2, len(taken) + 3))) if name not in taken)


def find_titled(title: str, *, by: Any, besides: Study) -> str:
    """Return the short name of another study with this title, as far as `by` may see it; empty where there is none."""
    others = _seen_by(by).filter(archived_at=None).exclude(pk=besides.pk or 0).values_list("title", "name")
    wanted = fold_line(title)
    return next((name for other, name in others if fold_line(other) == wanted), "")


def free_title(title: str, by: Any) -> str:
    """Return the title, with a number where a study that `by` sees has it."""
    return number_line(title, _seen_by(by).values_list("title", flat=True), longest=LONGEST_TITLE)


def _seen_by(by: Any) -> QuerySet[Study]:
    return studies_for(by) if by else Study.objects.all()


def studies_with_counts(user: Any, edition: Edition | None = None) -> QuerySet[Study]:
    """Return studies with `blocks_made`, `blocks_finished` and `sessions_begun` of each, in one query."""
    studies = studies_for(user) if edition is None else studies_for(user).filter(edition=edition)
    listed = studies.filter(archived_at=None, edition__archived_at=None)
    return (
        listed.prefetch_related("questions")
        .annotate(
            blocks_made=count_rows(Block.objects.all(), "study"),
            blocks_finished=count_rows(Block.objects.filter(is_finished=True), "study"),
            sessions_begun=count_rows(Session.objects.filter(is_preview=False), "study"),
        )
        .order_by("-created_at", "-pk")
    )


def has_archived(user: Any, edition: Edition | None = None) -> bool:
    """Return whether one of the studies that a list leaves out is archived, itself or with its edition."""
    studies = studies_for(user) if edition is None else studies_for(user).filter(edition=edition)
    return studies.exclude(archived_at=None, edition__archived_at=None).exists()


def find_played(*, submission: Submission, utterances: Iterable[int]) -> set[int]:
    """Return which of these utterances no page plays as this system, since a test that is under way plays them.

    All of them where it plays the system at all: a listener who knows the system's sound would rate its name.
    """
    under_way = Study.objects.filter(state__in=(Study.State.OPEN, Study.State.PAUSED))
    if under_way.filter(conditions__submission__system=submission.system_id).exists():
        return set(utterances)
    played = Stimulus.objects.filter(study__in=under_way, item__utterance__in=utterances)
    return set(played.values_list("item__utterance", flat=True))


def sessions_under_way(study: Study) -> QuerySet[Session]:
    """Return sessions that have not ended, with `has_place`, `place_until` and the number of `answered_trials`."""
    active = study.sessions.filter(state=Session.State.ACTIVE, is_preview=False).order_by("pk")
    return active.annotate(
        has_place=Q(held_block__isnull=False),
        place_until=F("held_block__lease_expires_at"),
        answered_trials=Count("answers__trial", distinct=True),
    )


def was_published(study: Study) -> bool:
    """Return whether the results of a study are or ever were public."""
    told = AuditEvent.objects.filter(subject_type="listening.study", subject_id=str(study.pk))
    return study.results_published_at is not None or told.filter(action="study.results_published").exists()


def was_taken_back(study: Study) -> bool:
    """Return whether results that were published rested on too few people after a withdrawal."""
    told = AuditEvent.objects.filter(subject_type="listening.study", subject_id=str(study.pk))
    return study.results_published_at is None and told.filter(action=RESULTS_TAKEN_BACK).exists()


def knows_people(study: Study) -> bool:
    """Return whether something still leads to its evaluators."""
    named = study.participants.exclude(platform_id="").exists()
    return named or study.sessions.filter(is_preview=False).exclude(platform_data={}, device={}).exists()


def describe_keeping(study: Study, now: datetime) -> dict[str, Any]:
    """Return until when what leads to evaluators may be kept, and whether it is still there."""
    until = kept_until(study)
    told = AuditEvent.objects.filter(
        subject_type="listening.study", subject_id=str(study.pk), action="study.people_forgotten"
    )
    forgotten = told.first()
    return {
        "until": until,
        "what": PERSONAL_DATA,
        "is_over": until is not None and until <= now,
        "is_there": study.state == Study.State.CLOSED and not study.imported and knows_people(study),
        "deleted_at": forgotten.at if forgotten else None,
    }


def lock_study(study: Study, states: Iterable[str], action: str) -> Study:
    """Return the row of a study, held until the end of the transaction.

    Raises:
        NotPossible: it is in none of these states.
    """
    row = Study.objects.select_for_update(of=("self",)).select_related("edition").get(pk=study.pk)
    require_state(row, states, action)
    return row


def require_state(study: Study, states: Iterable[str], action: str) -> None:
    """Refuse an action that the state does not allow.

    Raises:
        NotPossible: it is in none of these states.
    """
    if study.state not in set(states):
        raise NotPossible(f"A study of the state “{study.get_state_display().lower()}” cannot be {action}.")


@dataclass(frozen=True)
class OriginalRecording:
    """An original recording: the key of its row where it is of a corpus, and of its file."""

    utterance: int | None
    audio: str
    transcript: str
    duration_s: float | None


@dataclass(frozen=True)
class StimulusPool:
    """`recordings`: originals by name of the utterance. `versions`: files of systems by code and utterance."""

    utterances: tuple[PoolUtterance, ...]
    recordings: Mapping[str, OriginalRecording]
    versions: Mapping[tuple[str, str], str]

    def audio_of(self, system: str, name: str) -> str:
        """Return the key of the file of an utterance as a system made it, or of the original (``""``)."""
        return self.versions[system, name] if system else self.recordings[name].audio


def submissions_to_hear(edition: Edition, study: Study | None = None) -> QuerySet[Submission]:
    """Return the newest usable submission with anonymised trial utterances of each system of the edition or its corpus.

    Systems without an edition are the organizers' own baselines on the same corpus. Those of the study stay.
    """
    files = SubmittedFile.objects.filter(submission=OuterRef("pk"), data_set__role=Role.TRIAL)
    usable = Submission.objects.filter(Exists(files), state__in=HEARABLE, system__corpus=edition.corpus_id)
    usable = usable.filter(system__edition=edition) | usable.filter(system__edition=None, system__team=None)
    newer = usable.filter(system=OuterRef("system"), version__gt=OuterRef("version"))
    chosen = Q(~Exists(newer.order_by()), system__archived_at=None)
    if study is not None:
        chosen |= Q(pk__in=study.systems.values("submission"))
    return usable.filter(chosen).select_related("system", "system__team").order_by("system__label", "system__name")


def systems_left_out(study: Study) -> list[str]:
    """Return labels of the teams' systems that could be heard and are not in the study."""
    chosen = study.systems.values("submission__system")
    if study.edition is None:
        return []
    found = submissions_to_hear(study.edition).exclude(system__team=None).exclude(system__in=chosen)
    return [one.system.label or one.system.title for one in found]


def heard_submissions(study: Study) -> dict[str, Submission]:
    """Return the submission that is heard of each system of the study, by its code."""
    rows = study.systems.filter(submission__isnull=False).select_related("submission__system").order_by("code")
    return {one.code: one.submission for one in rows if one.submission is not None}


def list_further(study: Study) -> list[str]:
    """Return which conditions a study of systems compares besides them: `ORIGINAL`, and anchors by their codes."""
    kinds = (Condition.Kind.ORIGINAL, Condition.Kind.ANCHOR)
    return [code or ORIGINAL for code in study.conditions.filter(kind__in=kinds).values_list("code", flat=True)]


def read_pool_of_rows(study: Study) -> StimulusPool:
    """Return the recordings of a crossed test that every condition has, as its rows hold them, by their names."""
    codes = codes_of(study)
    unscored = set(study.conditions.filter(kind__in=Condition.UNSCORED).values_list("code", flat=True))
    found: dict[str, dict[str, str]] = defaultdict(dict)
    for name, code, source in study.stimulus_files.values_list("item__name", "condition__code", "source"):
        found[name][code] = source
    items = {one.name: one for one in study.items.all()}
    utterances: list[PoolUtterance] = []
    recordings: dict[str, OriginalRecording] = {}
    versions: dict[tuple[str, str], str] = {}
    for name, sources in sorted(found.items()):
        if len(sources) < len(codes) and not unscored.intersection(sources):
            continue
        item = items[name]
        recordings[name] = OriginalRecording(item.utterance_id, sources.get("", ""), item.transcript, None)
        versions |= {(code, name): source for code, source in sources.items() if code}
        if unscored.intersection(sources):
            continue
        utterances.append(
            PoolUtterance(
                key=name,
                speaker=item.speaker or name,
                sex="m" if item.sex == Gender.MALE else "f",  # which no rule of such a design asks for
                role="trial",
                systems=frozenset(filter(None, codes)),
            )
        )
    return StimulusPool(tuple(utterances), recordings, versions)


def codes_of(study: Study) -> tuple[str, ...]:
    """Return the codes of what a study compares; of a crossed one original and anchors among them."""
    if study.is_crossed:
        return tuple(sorted(study.compared.values_list("code", flat=True)))
    return tuple(heard_submissions(study))


def name_conditions(systems: Iterable[str], further: Iterable[str]) -> tuple[str, ...]:
    """Return the codes of what a crossed study of systems compares, in the order of `codes_of`."""
    return tuple(sorted({*systems, *("" if one == ORIGINAL else one for one in further)}))


def pool_of(study: Study) -> StimulusPool:
    """Return everything that may be heard in a study; of a crossed one that is launched what was prepared for it."""
    if study.has_own_recordings or (study.is_crossed and study.is_launched):
        return read_pool_of_rows(study)
    return make_pool(study.data_sets.all(), heard_submissions(study), list_further(study) if study.is_crossed else ())


def name_codes(submissions: Iterable[Submission], taken: Iterable[str] = ()) -> dict[str, Submission]:
    """Return submissions by the code that each has in a study: the label of its system, numbered where it is taken."""
    named: dict[str, Submission] = {}
    held = {*taken, *map(name_anchor, ANCHORS_HZ)}
    for one in submissions:
        label = str(one.system)
        code, number = label[:LONGEST_CODE], 2
        while code in held or code in named:
            code, number = f"{label[: LONGEST_CODE - 3]}-{number}", number + 1
        named[code] = one
    return named


def sets_to_hear(edition: Edition, study: Study | None = None) -> QuerySet[DataSet]:
    """Return trial and enrolment sets of the edition's corpus that stand in a trial list and hold recordings.

    Once a system can be heard, trial sets are those that one has audio for. Those of the study stay.
    """
    with_audio = DataSet.utterances.through.objects.filter(dataset=OuterRef("pk")).exclude(utterance__audio="")
    sets = DataSet.objects.filter(Exists(with_audio), corpus=edition.corpus_id)
    lists = TrialList.objects.filter(trial_set__corpus=edition.corpus_id)
    systems = submissions_to_hear(edition, study).order_by().values("pk")
    made = SubmittedFile.objects.filter(submission__in=systems, data_set=OuterRef("pk"))
    heard = sets.filter(Exists(made.order_by()), role=Role.TRIAL).values_list("pk", flat=True)
    trials = sets.filter(role=Role.TRIAL, pk__in=lists.values("trial_set"))
    trials = trials.filter(pk__in=list(heard)) if heard else trials
    enrolments = sets.filter(role=Role.ENROLMENT, pk__in=lists.values("enrolment_set"))
    own = [] if study is None else list(study.data_sets.values_list("pk", flat=True))
    return (trials | enrolments | sets.filter(pk__in=own)).order_by("role", "name")


def set_problems(data_sets: Iterable[DataSet], *, is_crossed: bool = False) -> list[str]:
    """Return what keeps these data sets from being heard together, as sentences; in a crossed test trial sets alone."""
    chosen = list(data_sets)
    trials = [one for one in chosen if one.role == Role.TRIAL]
    if is_crossed:
        return [] if trials else ["Choose a trial set: its utterances are heard in every condition."]
    enrolments = [one for one in chosen if one.role == Role.ENROLMENT]
    if not trials or not enrolments:
        missing = "a trial set" if not trials else "an enrolment set"
        return [f"Choose {missing}: sample A of a trial comes from a trial set, sample B from an enrolment set."]
    pairs = set(TrialList.objects.filter(trial_set__in=trials).values_list("trial_set", "enrolment_set"))
    return [
        f"No trial list of the corpus compares {trial} with {enrolment}. Choose the data sets of one subset."
        for trial in trials
        for enrolment in enrolments
        if (trial.pk, enrolment.pk) not in pairs
    ]


def mean_length(study: Study, data_sets: Iterable[DataSet]) -> float:
    """Return the mean length of the recordings in seconds; four where nobody measured any."""
    known = Utterance.objects.filter(data_sets__in=data_sets, duration_s__gt=0).exclude(audio="")
    heard: QuerySet[Any] = study.stimulus_files.all() if study.has_own_recordings else known
    return heard.aggregate(mean=Avg("duration_s"))["mean"] or 4.0


_OF_RECORDINGS = ("name", "speaker__name", "speaker__gender", "pk", "audio", "transcript", "duration_s")


def make_pool(
    data_sets: Iterable[DataSet], systems: Mapping[str, Submission], further: Iterable[str] = ()
) -> StimulusPool:
    """Return everything that may be heard, in the order of names.

    Args:
        systems: the submission that is heard of each system, by its code in the study.
        further: as of `list_further`; anchors are made of the original recordings.
    """
    chosen = sorted(data_sets, key=lambda one: one.name)
    codes = {submission.pk: code for code, submission in systems.items()}
    files = SubmittedFile.objects.filter(submission__in=codes, data_set__in=chosen, data_set__role=Role.TRIAL)
    rows = files.order_by("-data_set__name").values_list("submission", "utterance__name", "audio")
    versions = {(codes[submission], name): audio for submission, name, audio in rows}
    of_name: dict[str, set[str]] = {}
    for code, name in versions:
        of_name.setdefault(name, set()).add(code)
    nobody: frozenset[str] = frozenset()
    having = {name: frozenset(found) for name, found in of_name.items()}
    named = _named_in_lists(chosen)
    recordings: dict[str, OriginalRecording] = {}
    utterances: dict[str, PoolUtterance] = {}
    heard = Utterance.objects.filter(data_sets__in=chosen).exclude(audio="").order_by()
    of_set: dict[int, list[Any]] = {}
    # Plain values: there are tens of thousands.
    for place, *of_utterance in heard.values_list("data_sets", *_OF_RECORDINGS):
        of_set.setdefault(place, []).append(of_utterance)
    for data_set in chosen:
        is_trial = data_set.role == Role.TRIAL
        allowed = named.get(data_set.pk)
        for name, speaker, gender, *recording in of_set.get(data_set.pk, []):
            if allowed is not None and (name if is_trial else speaker) not in allowed:
                continue
            recordings[name] = OriginalRecording(*recording)
            utterances[name] = PoolUtterance(
                key=name,
                speaker=speaker,
                sex="f" if gender == Gender.FEMALE else "m",
                role="trial" if is_trial else "enrolment",
                systems=having.get(name, nobody) if is_trial else nobody,
            )
    versions |= {(code, name): recordings[name].audio for code in further if code != ORIGINAL for name in utterances}
    return StimulusPool(tuple(utterances[name] for name in sorted(utterances)), recordings, versions)


def _named_in_lists(data_sets: list[DataSet]) -> dict[int, set[str] | None]:
    """Return by data set the utterances of trial sets, or models of enrolment sets, in given lists; None: all."""
    named: dict[int, set[str] | None] = {}
    for one in TrialList.objects.filter(trial_set__in=data_sets, enrolment_set__in=data_sets):
        if one.origin == TrialList.Origin.PRODUCT:
            named[one.trial_set_id] = named[one.enrolment_set_id] = None
            continue
        with default_storage.open(one.file) as file:
            table = read_trial_table(io.StringIO(file.read().decode()), f"the trials of {one.trial_set}")
        words = [bytes(pair).decode().split() for pair in table.pairs]
        for pk, place in ((one.enrolment_set_id, 0), (one.trial_set_id, 1)):
            held = named.setdefault(pk, set())
            if held is not None:
                held |= {pair[place] for pair in words}
    return named


# Presentations -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PresentedSlot:
    """What a slot of a presentation presents; `system` is empty for the original, `file` until it is prepared."""

    system: str
    utterance: str
    speaker: str
    sex: str
    transcript: str
    answer: str  # the right one, where it is known
    source: str
    file: str


@dataclass(frozen=True, slots=True)
class StoredPresentation:
    """A presentation with its samples by slot, in the order of the slots; `system` is empty for original speech."""

    key: str
    purpose: str
    system: str
    is_target: bool | None
    expected: dict[str, Any]
    samples: Mapping[str, PresentedSlot]

    @property
    def is_scored(self) -> bool:
        return self.purpose == Presentation.Purpose.SCORED


def read_presentations(study: Study) -> dict[int, StoredPresentation]:
    """Return the presentations of a study by their number, as they were made: two queries of plain values."""
    rows = PresentationSample.objects.filter(presentation__study=study).values_list(
        *("presentation", "slot", "stimulus__condition__code", "stimulus__item__name", "stimulus__item__speaker"),
        *("stimulus__item__sex", "stimulus__item__transcript", "stimulus__item__answer", "stimulus__source"),
        "stimulus__file",
    )
    samples: dict[int, dict[str, PresentedSlot]] = defaultdict(dict)
    for item, slot, system, *heard in sorted(rows, key=lambda row: slot_order(row[1])):
        samples[item][slot] = PresentedSlot(system, *heard)
    told = ("pk", "key", "purpose", "condition__code", "is_target", "expected")
    return {
        pk: StoredPresentation(key, purpose, system, is_target, expected, samples[pk])
        for pk, key, purpose, system, is_target, expected in study.presentations.order_by("pk").values_list(*told)
    }


def minutes_before_trials(study: Study) -> float:
    """Return how long consent, questions, checks and instructions take."""
    checks = sum(study.screening.get(one, "none") != "none" for one in OPTIONAL_CHECKS)
    return OTHER_MINUTES + CHECK_MINUTES * checks


def expected_effort(study: Study) -> dict[str, Any]:
    """Return what a session of the design takes and earns: `minutes`, the `amount` for it, 0 where nobody is paid."""
    lengths = study.stimulus_files.aggregate(mean=Avg("duration_s"))["mean"] or 0.0
    block = study.blocks.order_by("number").first()
    trials = block.trials.count() if block is not None else study.trials_per_evaluator
    trial_s = seconds_of_trial(study.asked, [lengths] * len(slots_of_trial(study)))
    minutes = max(1, round(minutes_before_trials(study) + trials * trial_s / 60))
    amount = study.pay_per_hour * minutes / 60
    return {"minutes": minutes, "amount": f"{amount:.2f}" if amount else "", "an_hour": f"{study.pay_per_hour:.2f}"}


# Texts -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ShownText:
    """A text as a page shows it; `language` may be another one than the page's, `version` 0 is the shipped wording."""

    kind: str
    language: str
    version: int
    body: SafeString

    @property
    def direction(self) -> str:
        return texts.direction_of(self.language)


def newest_text(study: Study, kind: str, language: str) -> StudyText | None:
    """Return the row of what evaluators read now of a kind in a language; None where there is none."""
    return study.texts.filter(kind=kind, language=language).order_by("-version").first()


def shipped_text(study: Study, kind: str, language: str) -> str:
    """Return the wording that comes with the portal for a study like this; empty where there is none."""
    told: dict[str, Any] = {"questions": study.asked, "is_about_voices": not study.has_own_recordings}
    return texts.shipped_text(kind, study.role_play, language, **told)


def shown_text(study: Study, kind: str, language: str, *, below: int = 0) -> ShownText:
    """Return the newest version of a study's text in this language, else in its first one, else as it is shipped.

    Args:
        below: as of `texts.render_markdown`.
    """
    rows = {row.language: row for row in reversed(study.texts.all()) if row.kind == kind}  # the newest one comes last
    found = next((rows[one] for one in (language, *study.languages, *rows) if one in rows), None)
    if found is not None:
        return ShownText(kind, found.language, found.version, _as_html(found.text, below))
    shipped_in = language if language in texts.LANGUAGES else "en"
    return ShownText(kind, shipped_in, 0, _as_html(shipped_text(study, kind, language), below))


def _as_html(text: str, below: int) -> SafeString:
    return mark_safe(texts.render_markdown(text, below=below))  # noqa: S308 - it escapes all HTML of the text
