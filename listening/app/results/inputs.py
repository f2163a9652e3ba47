"""What a study has for its analysis: who rated what, which sessions are left out and why, and what was computed.

Sessions that count have finished, or ended early for no fault of theirs; these are marked. Previews, sessions still
under way, withdrawn ones and those that were turned away never count, and practice never does. People and sessions
appear under keys made for the analysis alone, so that a published bundle cannot be joined with the raw export or with
the names for paying. Of a study whose ratings were collected elsewhere the stored inputs are read. Word errors of the
recogniser and pitch correlations stand with the submissions heard; whatever is not known of an utterance is NaN.

`compute_basis` identifies inputs in a few cheap queries without reading a rating, part by part, so that a page can say
what has changed since an analysis.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import numpy as np
from django.core.files.storage import default_storage
from django.db.models import Count, Max, Min, QuerySet
from django.utils.crypto import salted_hmac

from common.arrays import Texts
from common.errors import ProblemsError
from evaluation.app.audio_measures.selectors import WordCount, count_utterance_errors, read_pitch_correlations
from evaluation.app.models import EvaluationRun
from evaluation.formats.results import Speech
from listening.analysis.analyse import ANALYSIS_VERSION
from listening.analysis.bundle import read_inputs
from listening.analysis.reading.answer_values import PAIRED_KINDS
from listening.analysis.reading.inputs import (
    ORIGINAL,
    Answers,
    Inputs,
    ObjectiveRows,
    Placements,
    Ratings,
    StudyFacts,
    Transcripts,
)
from listening.app.models import Answer, Condition, Exclusion, Play, Presentation, Session, Study, StudyText
from listening.app.monitor.selectors import standing_exclusion
from listening.app.studies.selectors import StoredPresentation, read_presentations
from listening.questions import AskedQuestion, Kind
from portal.challenges.models import Edition
from portal.jobs.models import JobState
from portal.submissions.models import Submission

State = Session.State
COUNTED = (State.FINISHED, State.EXPIRED, State.TECHNICAL)
PLAN = (
    *("evaluators", "trials_per_evaluator", "originals_per_evaluator", "practice_trials", "gold_trials"),
    *("bridge_trials", "pages", "plays_at_most", "role_play", "screening", "relaxations", "seed"),
    *("certificate", "stimuli"),
)
SCREENING_ANCHOR_HZ = 7000  # the anchor of MUSHRA by which listeners are screened
PREFERRED = ("", "A", "B", "=")  # by the number of a choice between two recordings
KEY_LENGTH = 16
DIGEST_LENGTH = 10  # digits of each part of a basis
EXCLUSION_FIELDS = ("session", "rule", "rule__flag", "rule__reason", "rule__revoked_at")


class Changed(StrEnum):
    """What can have changed in a study since its analysis, in the order of `compute_basis`; each as a sentence."""

    METHOD = "The method of analysis has changed with the version of the portal."
    STUDY = "The title, the settings or the texts of the study have changed."
    SYSTEMS = "A submission that was heard was withdrawn, or a system has another label."
    ANSWERS = "Sessions have ended since, or somebody withdrew their answers."
    EXCLUSIONS = "Sessions were left out or counted again."
    MEASURES = "An evaluation of a system that was heard has ended since."


@dataclass(frozen=True, slots=True)
class _Visit:
    """A session that counts, as the analysis knows it."""

    listener: str
    session: str
    is_finished: bool
    excluded: str


def collect_inputs(study: Study) -> Inputs:
    """Return everything that the analysis of a study starts from, in a constant number of queries."""
    exclusions = list(Exclusion.objects.filter(rule__study=study).order_by("pk").values_list(*EXCLUSION_FIELDS))
    told = tuple(
        (flag or "session", session_key(study, session), reason, revoked_at is None)
        for session, _, flag, reason, revoked_at in exclusions
    )
    if study.imported:
        return _imported(study, _reasons(exclusions), told)
    systems, gone = _systems(study)
    visits = _visits(study, _reasons(exclusions))
    items = read_presentations(study)
    transcripts = {one.utterance: one.transcript for item in items.values() for one in item.samples.values()}
    columns = {name: _without(part, gone) for name, part in _answers(study, visits, items, transcripts, gone).items()}
    items = {pk: item for pk, item in items.items() if item.system not in gone}
    heard: dict[str, set[str]] = defaultdict(set)
    for item in items.values():
        for slot, sample in item.samples.items():
            if slot != "b" and sample.system not in gone:
                heard[sample.system or ORIGINAL].add(sample.utterance)
    texts = study.texts.filter(kind__in=StudyText.READ).order_by("kind", "language", "version")
    return Inputs(
        study=_facts(study, systems, items.values()),
        objective=collect_objective(_submissions(systems), heard, transcripts, study.edition)
        if study.edition
        else None,
        exclusions=told,
        texts={f"{one.kind}-{one.language}-{one.version}.md": one.text for one in texts},
        **columns,
    )


def compute_basis(study: Study) -> str:
    """Return digests of what inputs follow from, one for each `Changed`: equal ones give equal inputs."""
    answers = Answer.objects.filter(session__study=study, session__is_preview=False, session__state__in=COUNTED)
    standing = Exclusion.objects.filter(rule__study=study, rule__revoked_at=None)
    submissions = _standing(study).values("submission")
    parts = {
        Changed.METHOD: ANALYSIS_VERSION,
        Changed.STUDY: [
            [getattr(study, name) for name in ("name", "title", "is_simulated", "imported")],
            [one.as_data() for one in study.asked],
            [str(getattr(study, name)) for name in PLAN],
            study.texts.filter(kind__in=StudyText.READ).aggregate(count=Count("pk"), last=Max("pk")),
        ],
        Changed.SYSTEMS: list(_standing(study).values_list("code", "submission", "submission__system__label")),
        Changed.ANSWERS: [
            list(_counted(study).values_list("pk", "state")),
            answers.aggregate(count=Count("pk"), last=Max("pk")),
        ],
        Changed.EXCLUSIONS: list(standing.order_by("pk").values_list("session", "rule__flag", "rule__reason")),
        Changed.MEASURES: _newest_runs(submissions),
    }
    written = (json.dumps(parts[part], sort_keys=True, default=str).encode() for part in Changed)
    return "".join(hashlib.sha256(part).hexdigest()[:DIGEST_LENGTH] for part in written)


def changed_parts(before: str, now: str) -> list[Changed]:
    """Return in what two values of `compute_basis` differ; one of an earlier version differs by its method."""
    starts = range(0, len(Changed) * DIGEST_LENGTH, DIGEST_LENGTH)
    found = [
        part
        for part, start in zip(Changed, starts, strict=True)
        if before[start : start + DIGEST_LENGTH] != now[start : start + DIGEST_LENGTH]
    ]
    return [Changed.METHOD] if Changed.METHOD in found else found


def has_answers(study: Study) -> bool:
    """Return whether there is anything to analyse."""
    if study.imported:
        return True
    return _counted_answers(study).exists()


def count_people(study: Study) -> int:
    """Return how many people there are whose answers count and whom no rule leaves out."""
    kept = _counted_answers(study).exclude(standing_exclusion("session"))
    return int(kept.aggregate(people=Count("session__participant", distinct=True))["people"])


def _counted_answers(study: Study) -> QuerySet[Answer]:
    wanted = Answer.objects.filter(session__study=study, session__is_preview=False, session__state__in=COUNTED)
    unscored = [Presentation.Purpose.PRACTICE]
    if study.form_of_results == Study.Form.ANSWERS:
        unscored.append(Presentation.Purpose.GOLD)
    return wanted.exclude(trial__presentation__purpose__in=unscored)


def session_key(study: Study, session: int) -> str:
    """Return what a session is called in an analysis."""
    return _key("session", study, str(session))


def listener_key(study: Study, person_key: str) -> str:
    """Return what a person is called in an analysis; the hash of their name is not told again."""
    return _key("listener", study, person_key)


def keys_of_sessions(study: Study) -> dict[str, int]:
    """Return the sessions of a study by what an analysis calls them."""
    return {session_key(study, pk): pk for pk in _counted(study).values_list("pk", flat=True)}


def _key(kind: str, study: Study, value: str) -> str:
    digest = salted_hmac(f"listening.results.{kind}", f"{study.pk} {value}", algorithm="sha256").hexdigest()
    return digest[:KEY_LENGTH]


def _counted(study: Study) -> Any:
    return study.sessions.filter(is_preview=False, state__in=COUNTED).order_by("pk")


def _standing(study: Study) -> QuerySet[Condition]:
    """Return the systems heard whose submissions were not withdrawn; what was said of the others enters no analysis."""
    return study.systems.exclude(submission__state=Submission.State.WITHDRAWN)


def _systems(study: Study) -> tuple[dict[str, Condition], frozenset[str]]:
    """Return the standing systems by their codes, and the codes of the withdrawn ones."""
    systems = {one.code: one for one in study.systems.select_related("submission__system")}
    withdrawn = Submission.State.WITHDRAWN
    gone = frozenset(code for code, one in systems.items() if one.submission and one.submission.state == withdrawn)
    return {code: one for code, one in systems.items() if code not in gone}, gone


def _submissions(systems: Mapping[str, Condition]) -> dict[str, Submission]:
    return {code: one.submission for code, one in systems.items() if one.submission}


def _without(part: Any, gone: frozenset[str]) -> Any:
    """Return the rows of columns that are not about these systems."""
    if part is None or not gone:
        return part
    return part.rows(~np.isin(part.condition if isinstance(part, Answers) else part.system, sorted(gone)))


def _newest_runs(submissions: Any) -> list[Any]:
    """Return of each submission heard, what was computed last."""
    runs = EvaluationRun.objects.filter(submission__in=submissions, job__state=JobState.SUCCEEDED)
    return list(runs.order_by("submission_id").values_list("submission").annotate(Max("pk"), Count("pk")))


# A study of the portal -----------------------------------------------------------------------------


def _facts(study: Study, systems: Mapping[str, Condition], items: Iterable[StoredPresentation]) -> StudyFacts:
    design = {name: getattr(study, name) for name in PLAN} | {
        "edition": study.edition.name if study.edition else "",
        "data_sets": sorted(study.data_sets.values_list("name", flat=True)),
        "submissions": {code: str(one.submission) for code, one in sorted(systems.items()) if one.submission},
        "gold": {item.key: item.expected for item in items if item.purpose == Presentation.Purpose.GOLD},
        "launched_at": _moment(study.launched_at),
        "closed_at": _moment(study.closed_at),
    }
    if anchors := [code for code, one in systems.items() if one.low_pass_hz == SCREENING_ANCHOR_HZ]:
        design["anchor"] = anchors[0]
    if study.original_name != ORIGINAL:
        design["original"] = study.original_name
    return StudyFacts(
        name=study.name,
        title=study.title,
        form=str(study.form_of_results),
        tasks=tuple(study.asked_keys),
        scale={one.key: (float(one.ends[0]), float(one.ends[1])) for one in study.asked if one.is_rated},
        is_simulated=study.is_simulated,
        labels={
            code: (one.submission and one.submission.system.label) or code for code, one in sorted(systems.items())
        },
        design=json.loads(json.dumps(design, default=str)),
        questions=study.asked,
    )


def _moment(at: Any) -> str:
    return at.isoformat(timespec="seconds") if at is not None else ""


def _reasons(exclusions: Iterable[tuple[Any, ...]]) -> dict[int, str]:
    """Return why each session is left out, by the rules that stand."""
    found: dict[int, list[str]] = defaultdict(list)
    for session, _, _, reason, revoked_at in exclusions:
        if revoked_at is None:
            found[session].append(reason)
    return {session: "; ".join(reasons) for session, reasons in found.items()}


def _visits(study: Study, reasons: Mapping[int, str]) -> dict[int, _Visit]:
    rows = _counted(study).values_list("pk", "participant__person_key", "state")
    return {
        pk: _Visit(listener_key(study, person), session_key(study, pk), state == State.FINISHED, reasons.get(pk, ""))
        for pk, person, state in rows
    }


def _answers(
    study: Study,
    visits: Mapping[int, _Visit],
    items: Mapping[int, StoredPresentation],
    transcripts: Mapping[str, str],
    gone: frozenset[str],
) -> dict[str, Any]:
    """Return the columns of the study's form, session after session, in the order in which answers came."""
    fields = ["session", "trial__presentation", "trial", "task", "rating", "text"]
    if study.form != Study.Form.RATING:  # decoding thousands of empty objects takes longer than all the rest
        fields.append("data")
    answers = Answer.objects.filter(session__study=study, session__in=list(visits)).order_by("session", "pk")
    ratings, placements, written = [], [], []
    answered: list[tuple[Any, ...]] = []
    form = study.form_of_results
    heard = _heard_orders(study) if form == Study.Form.ANSWERS else {}
    asked = {one.key: one for one in study.asked}
    places: dict[int, dict[int, int]] = defaultdict(dict)
    for session, item_pk, trial, task, rating, text, *data in answers.values_list(*fields):
        visit, item = visits[session], items[item_pk]
        position = places[session].setdefault(trial, len(places[session]) + 1)
        if item.purpose == Presentation.Purpose.PRACTICE:
            continue
        if asked[task].kind == Kind.PLACEMENT:
            placements += _placed(visit, item, data[0])
        elif asked[task].kind == Kind.TEXT:
            written.append(_written(visit, item, text, data[0], transcripts, study.original_name))
        elif form == Study.Form.ANSWERS:
            is_half = asked[task].analysed_as in PAIRED_KINDS and any(
                one.system in gone for one in item.samples.values()
            )
            if item.is_scored and not is_half:
                ratings_by_slot = data[0]["ratings"] if rating is None else {}
                order = heard.get((session, trial), {})
                told = (rating, ratings_by_slot, order, position, study.original_name)
                answered += _answered(visit, item, asked[task], *told)
        elif rating is not None:
            ratings.append(_rated(visit, item, asked[task], rating, position))
    return {
        "ratings": Ratings.from_rows(ratings) if form == Study.Form.RATING else None,
        "placements": Placements.from_rows(placements) if placements else None,
        "transcripts": Transcripts.from_rows(written) if written else None,
        "answers": Answers.from_rows(answered) if answered else None,
    }


def _heard_orders(study: Study) -> dict[tuple[int, int], dict[str, int]]:
    """Return by session and trial in which order, from 1, its recordings were first heard."""
    plays = Play.objects.filter(session__study=study, session__is_preview=False).order_by()
    orders: dict[tuple[int, int], dict[str, int]] = defaultdict(dict)
    for session, trial, slot, _ in (
        plays.values_list("session", "trial", "slot").annotate(first=Min("pk")).order_by("first")
    ):
        orders[session, trial][slot] = len(orders[session, trial]) + 1
    return orders


def _answered(
    visit: _Visit,
    item: StoredPresentation,
    question: AskedQuestion,
    rating: int,
    ratings_by_slot: Mapping[str, int],
    order: Mapping[str, int],
    position: int,
    original: str,
) -> Iterator[tuple[Any, ...]]:
    """Yield a row for each recording that was rated, or was one of those that were compared."""
    kind, truth = question.analysed_as, ""
    if kind == "mushra":
        values = {slot: str(value) for slot, value in ratings_by_slot.items()}
    elif kind in PAIRED_KINDS:
        values = dict.fromkeys("ab", str(rating) if kind == "ccr" else PREFERRED[rating])
    else:
        values = {"a": question.labels("en")[rating] if kind == "choice" else str(rating)}
    if kind == "abx":
        truth = next(slot.upper() for slot in "ab" if item.samples[slot] == item.samples["x"])
    for slot, value in values.items():
        sample, shown = item.samples[slot], slot.upper() if len(values) > 1 else ""
        truth = sample.answer if kind == "choice" else truth
        heard = (question.key, sample.utterance, sample.system or original, shown)
        yield (visit.listener, visit.session, *heard, value, order.get(slot, 0), position, truth, visit.excluded)


def _rated(
    visit: _Visit, item: StoredPresentation, question: AskedQuestion, rating: int, position: int
) -> tuple[Any, ...]:
    """Return the row of a rating; only for a question that compares voices sample B is heard."""
    a, b = item.samples["a"], item.samples.get("b")
    compares = question.compares_voices and item.is_target is not None
    asked = (question.key, item.system or ORIGINAL, int(item.is_target or 0) if compares else -1, item.key)
    heard = (a.utterance, b.utterance if compares and b else "", a.speaker, a.sex)
    end = (item.purpose, visit.is_finished, visit.excluded)
    return (visit.listener, visit.session, *asked, *heard, rating, position, *end)


def _placed(visit: _Visit, item: StoredPresentation, data: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    rows = []
    for slot, placed in sorted(data["samples"].items(), key=lambda one: int(one[0])):
        sample, at = item.samples[slot], placed["at"]
        heard = (item.key, slot, sample.system or ORIGINAL, sample.utterance, sample.speaker)
        place = (at[0], at[1] if len(at) > 1 else np.nan, placed["group"] or "")
        rows.append((visit.listener, visit.session, *heard, *place, data["speakers"], visit.excluded))
    return rows


def _written(
    visit: _Visit,
    item: StoredPresentation,
    text: str,
    data: Mapping[str, Any],
    transcripts: Mapping[str, str],
    original: str,
) -> tuple[Any, ...]:
    a = item.samples["a"]
    heard = (item.key, item.system or original, a.utterance, a.speaker)
    written = (text, transcripts[a.utterance], bool(data.get("nothing")))
    return (visit.listener, visit.session, *heard, *written, visit.excluded)


# A study whose ratings were collected elsewhere ----------------------------------------------------


def _imported(study: Study, reasons: Mapping[int, str], told: tuple[tuple[str, str, str, bool], ...]) -> Inputs:
    """Return the stored inputs, with what was left out since, and what is known of systems of the edition."""
    with default_storage.open(study.imported) as stored:
        inputs, _ = read_inputs(stored.read())
    systems, gone = _systems(study)
    parts = ("ratings", "placements", "transcripts", "answers", "objective")
    inputs = replace(inputs, **{name: _without(getattr(inputs, name), gone) for name in parts})
    names = {session_key(study, pk): reason for pk, reason in reasons.items()}
    facts = replace(inputs.study, name=study.name, title=study.title, is_simulated=study.is_simulated)
    columns = {
        name: replace(found, excluded=_left_out(found.session, found.excluded, names))
        for name in ("ratings", "placements", "transcripts", "answers")
        if (found := getattr(inputs, name)) is not None
    }
    exclusions = (*inputs.exclusions, *told)
    return replace(inputs, study=facts, exclusions=exclusions, objective=_objective(study, systems, inputs), **columns)


def _objective(study: Study, heard_systems: Mapping[str, Condition], inputs: Inputs) -> ObjectiveRows | None:
    """Return what was computed on the utterances of systems of the edition, where they are called as in its corpus."""
    systems = _submissions(heard_systems)
    if (
        inputs.objective is not None
        or inputs.ratings is None
        or not systems
        or study.edition is None
        or study.edition.corpus is None
    ):
        return inputs.objective
    rated = zip(inputs.ratings.system.tolist(), inputs.ratings.utterance.tolist(), strict=True)
    heard: dict[str, set[str]] = defaultdict(set)
    for system, utterance in rated:
        if system in systems or system == ORIGINAL:
            heard[system].add(utterance)
    wanted = set().union(*heard.values())
    names = study.edition.corpus.utterances.values_list("name", "transcript")
    transcripts = {name: transcript for name, transcript in names if name in wanted}
    return collect_objective(systems, heard, transcripts, study.edition)


def _left_out(sessions: Texts, before: Texts, names: Mapping[str, str]) -> Texts:
    """Return why each row is left out: by a rule here, beside what the import says."""
    if not names:
        return before
    pairs = zip(sessions.tolist(), before.tolist(), strict=True)
    return np.array(["; ".join(filter(None, (why, names.get(session, "")))) for session, why in pairs], np.str_)


def collect_objective(
    submissions: Mapping[str, Submission],
    heard: Mapping[str, set[str]],
    transcripts: Mapping[str, str],
    edition: Edition,
) -> ObjectiveRows | None:
    """Return one row for each utterance heard of a system of which anything is known; None where nothing is.

    Args:
        submissions: by the name of the system in the study.
        heard: utterances by the name of the system, `ORIGINAL` among them.
        transcripts: by utterance, as the corpus has them.
        edition: whose recipe names the recognition sets; of one that cannot be read no word errors are known.
    """
    words = {}
    with suppress(ProblemsError):
        words = count_utterance_errors(submissions.values(), transcripts, edition.recipe)
    pitch = read_pitch_correlations(submissions.values(), set().union(*heard.values()))
    rows = []
    for system in sorted(heard):
        submission = submissions.get(system)
        counts = _of_originals(submissions, words) if system == ORIGINAL else {}
        if submission is not None:
            counts = words.get((submission.pk, Speech.ANONYMISED), {})
        for utterance in sorted(heard[system]):
            count = counts.get(utterance)
            correlation = pitch.get((submission.pk, utterance)) if submission is not None else None
            if count is not None or correlation is not None:
                rows.append((system, utterance, *(count or (np.nan, np.nan)), correlation))
    return ObjectiveRows.from_rows(rows) if rows else None


def _of_originals(
    submissions: Mapping[str, Submission], words: Mapping[tuple[int, Speech], Mapping[str, WordCount]]
) -> dict[str, WordCount]:
    """Return words of original speech, which every team recognises alike: from the first system with the utterance."""
    found: dict[str, WordCount] = {}
    for system in sorted(submissions):
        for utterance, count in words.get((submissions[system].pk, Speech.ORIGINAL), {}).items():
            found.setdefault(utterance, count)
    return found
