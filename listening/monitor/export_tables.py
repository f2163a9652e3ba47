"""The tables of a raw study as rows: for each its columns and where their values come from.

Nothing is left out but previews, tokens, withdrawal codes and the names of people on their platform (only `payments`
has those). While the study recruits, results are locked: `Blinds` leaves out systems and puts codes in the
place of items. Values are plain Python; `listening.monitor.exports` writes them as CSV or JSON. Long tables are read in
pieces.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Q, QuerySet
from django.utils import timezone
from django.utils.crypto import salted_hmac

from listening.models import (
    Answer,
    Exclusion,
    Flag,
    ItemSample,
    Play,
    ScreeningResult,
    Serve,
    Session,
    SessionEvent,
    Study,
    Trial,
)
from listening.monitor.coverage import ORIGINAL, standing_exclusion
from portal.core.version import code_version

PIECE = 2000
RECRUITING = (Study.State.OPEN, Study.State.PAUSED)
Row = tuple[Any, ...]


def is_locked(study: Study) -> bool:
    """Whether ratings by system are kept from everybody, because somebody may still recruit or tune."""
    return study.state in RECRUITING


@dataclass(frozen=True)
class Blinds:
    """What is told of systems and items: their names, or while results are locked no system, and codes of items.

    Not even a code of a system for each block: an item that stands in several blocks would join those codes.
    """

    study: Study

    @property
    def are_down(self) -> bool:
        return is_locked(self.study)

    def item(self, key: str) -> str:
        return self._code(key) if self.are_down else key

    def unless_down(self, value: Any) -> Any:
        return None if self.are_down else value

    def _code(self, key: str) -> str:
        digest = salted_hmac("listening.export", f"{self.study.pk} {key}", algorithm="sha256").hexdigest()
        return f"locked-{digest[:10]}"


@dataclass(frozen=True)
class Table:
    columns: tuple[str, ...]
    rows: Callable[[Study], Iterator[Row]]


# The plan ------------------------------------------------------------------------------------------

STUDY_FIELDS = (
    "name", "title", "edition", "form", "state", "is_simulated", "tasks", "pages", "scale_points", "plays_at_most",
    "role_play", "languages", "questionnaire", "screening", "platform", "evaluators", "trials_per_evaluator",
    "originals_per_evaluator", "practice_trials", "gold_trials", "bridge_trials", "board_samples", "board_dimensions",
    "board_groups", "relaxations", "lease_minutes", "pay_per_hour", "currency",
)  # fmt: skip
STUDY_COLUMNS = (
    "exported_at", "is_locked", *STUDY_FIELDS, "data_sets", "seed", "design_version", "design_fingerprint",
    "certificate", "stimuli", "portal_version", "created_at", "launched_at", "closed_at",
)  # fmt: skip


def study_rows(study: Study) -> Iterator[Row]:
    fields = {name: getattr(study, name) for name in STUDY_FIELDS}
    fields |= {"edition": study.edition.name, "pay_per_hour": str(study.pay_per_hour)}
    blinds, certificate = Blinds(study), study.certificate
    yield (
        timezone.now(),
        is_locked(study),
        *fields.values(),
        list(study.data_sets.order_by("name").values_list("name", flat=True)),
        blinds.unless_down(study.seed),
        [part.get("version") for part in certificate.get("parts", [])],
        certificate.get("fingerprint"),
        blinds.unless_down(certificate or None),
        study.stimuli,
        code_version(),
        study.created_at,
        study.launched_at,
        study.closed_at,
    )


def system_rows(study: Study) -> Iterator[Row]:
    for one in study.systems.select_related("submission__system"):
        yield one.code, str(one.submission), one.submission.system.title


def text_rows(study: Study) -> Iterator[Row]:
    texts = study.texts.order_by("kind", "language", "version")
    yield from texts.values_list("kind", "language", "version", "created_at", "text")


def block_rows(study: Study) -> Iterator[Row]:
    yield from study.blocks.order_by("number").values_list("number", "wave", "offers", "is_finished", "holder")


def item_rows(study: Study) -> Iterator[Row]:
    """In the order of their names, because that of their making would tell their systems."""
    blinds = Blinds(study)
    items = study.items.values_list("key", "purpose", "system__code", "is_target", "expected")
    for key, purpose, system, is_target, expected in sorted(items, key=lambda row: blinds.item(row[0])):
        yield blinds.item(key), purpose, blinds.unless_down(system or ORIGINAL), is_target, expected


def sample_rows(study: Study) -> Iterator[Row]:
    blinds = Blinds(study)
    samples = ItemSample.objects.filter(item__study=study).values_list(
        "item__key", "slot", "stimulus__system__code", "stimulus__utterance__name",
        "stimulus__utterance__speaker__name", "stimulus__utterance__speaker__gender", "stimulus__duration_s",
        "stimulus__facts",
    )  # fmt: skip
    for key, slot, system, *speech, duration_s, facts in sorted(samples, key=lambda row: (blinds.item(row[0]), row[1])):
        hidden = map(blinds.unless_down, (duration_s, facts))
        yield blinds.item(key), slot, blinds.unless_down(system or ORIGINAL), *speech, *hidden


def trial_rows(study: Study) -> Iterator[Row]:
    blinds = Blinds(study)
    trials = Trial.objects.filter(block__study=study).order_by("block__number", "position")
    fields = ("block__number", "position", "item__key", "item__purpose", "item__system__code", "item__is_target")
    for block, position, key, purpose, system, is_target in _in_pieces(trials.values_list(*fields)):
        yield block, position, blinds.item(key), purpose, blinds.unless_down(system or ORIGINAL), is_target


# People and what they did --------------------------------------------------------------------------

SESSION_FIELDS = {
    "session": "pk", "person": "participant__person_key", "block": "block__number", "state": "state", "step": "step",
    "is_excluded": "is_excluded", "is_simulated": "is_simulated", "language": "language", "texts": "texts",
    "questionnaire": "questionnaire", "device": "device", "skips": "skips", "started_at": "started_at",
    "consented_at": "consented_at", "trials_started_at": "trials_started_at", "last_seen_at": "last_seen_at",
    "ended_at": "ended_at",
}  # fmt: skip
AT_TRIAL = {"session": "session", "block": "trial__block__number", "position": "trial__position"}
PLAY_FIELDS = AT_TRIAL | {name: name for name in ("slot", "started_ms", "heard_ms", "is_whole", "remarks")}
SERVE_FIELDS = AT_TRIAL | {name: name for name in ("slot", "first_at", "complete_at", "requests")}
EVENT_FIELDS = {name: name for name in ("session", "at", "kind", "is_told", "data")}
SCREENING_FIELDS = {"session": "session", "kind": "kind", "attempt": "attempt", "expected": "secret"} | {
    name: name for name in ("given", "score", "of", "is_passed", "at")
}
ANSWER_COLUMNS = (
    "session", "person", "block", "position", "item", "purpose", "system", "is_target", "task", "rating", "text",
    "data", "received_at", "client_ms", "is_late", "session_state", "is_excluded",
)  # fmt: skip
RULE_COLUMNS = (
    "rule", "flag", "session", "reason", "offers_block_again", "created_by", "created_at", "revoked_by", "revoked_at",
)  # fmt: skip
PAYMENT_FIELDS = {
    "session": "pk", "person": "participant__person_key", "platform_id": "participant__platform_id",
    "platform_session": "platform_data__session", "state": "state", "completion_code": "completion_code",
    "started_at": "started_at", "ended_at": "ended_at",
}  # fmt: skip


def _sessions(study: Study) -> QuerySet[Session]:
    sessions = study.sessions.filter(is_preview=False).order_by("pk")
    return sessions.annotate(is_excluded=standing_exclusion())


def _done(rows: QuerySet[Any], study: Study) -> QuerySet[Any]:
    """What was done in the sessions of the study that count, in the order in which it came."""
    return rows.filter(session__study=study, session__is_preview=False).order_by("pk")


def session_rows(study: Study) -> Iterator[Row]:
    yield from _in_pieces(_sessions(study).values_list(*SESSION_FIELDS.values()))


def participant_rows(study: Study) -> Iterator[Row]:
    seen = Count("sessions", filter=Q(sessions__is_preview=False))
    people = study.participants.annotate(seen=seen).filter(seen__gt=0).order_by("pk")
    yield from people.values_list("person_key", "created_at", "seen")


def answer_rows(study: Study) -> Iterator[Row]:
    blinds = Blinds(study)
    answers = _done(Answer.objects.all(), study).annotate(left_out=standing_exclusion("session"))
    fields = (
        "session", "session__participant__person_key", "trial__block__number", "trial__position", "trial__item__key",
        "trial__item__purpose", "trial__item__system__code", "trial__item__is_target", "task", "rating", "text", "data",
        "received_at", "client_ms", "is_late", "session__state", "left_out",
    )  # fmt: skip
    for row in _in_pieces(answers.values_list(*fields)):
        session, person, block, position, key, purpose, system, *rest = row
        shown = blinds.unless_down(system or ORIGINAL)
        yield session, person, block, position, blinds.item(key), purpose, shown, *rest


def play_rows(study: Study) -> Iterator[Row]:
    yield from _in_pieces(_done(Play.objects.all(), study).values_list(*PLAY_FIELDS.values()))


def serve_rows(study: Study) -> Iterator[Row]:
    yield from _in_pieces(_done(Serve.objects.all(), study).values_list(*SERVE_FIELDS.values()))


def event_rows(study: Study) -> Iterator[Row]:
    yield from _in_pieces(_done(SessionEvent.objects.all(), study).values_list(*EVENT_FIELDS.values()))


def screening_rows(study: Study) -> Iterator[Row]:
    yield from _in_pieces(_done(ScreeningResult.objects.all(), study).values_list(*SCREENING_FIELDS.values()))


def flag_rows(study: Study) -> Iterator[Row]:
    for session, kind, data, at in _done(Flag.objects.all(), study).values_list("session", "kind", "data", "at"):
        yield session, kind, data.get("holds", True), {k: v for k, v in data.items() if k != "holds"}, at


def rule_rows(study: Study) -> Iterator[Row]:
    for rule in study.exclusion_rules.select_related("created_by", "revoked_by"):
        yield (
            rule.pk,
            rule.flag,
            rule.session_id,
            rule.reason,
            rule.offers_block_again,
            str(rule.created_by or ""),
            rule.created_at,
            str(rule.revoked_by or ""),
            rule.revoked_at,
        )


def exclusion_rows(study: Study) -> Iterator[Row]:
    exclusions = Exclusion.objects.filter(rule__study=study).order_by("pk")
    for rule, session, at, revoked_at in exclusions.values_list("rule", "session", "at", "rule__revoked_at"):
        yield rule, session, at, revoked_at is None


def payment_rows(study: Study) -> Iterator[Row]:
    yield from _in_pieces(_sessions(study).values_list(*PAYMENT_FIELDS.values()))


def _in_pieces(rows: QuerySet[Any, Any]) -> Iterator[Row]:
    return rows.iterator(chunk_size=PIECE)


TABLES: dict[str, Table] = {
    "study": Table(STUDY_COLUMNS, study_rows),
    "systems": Table(("system", "submission", "title"), system_rows),
    "texts": Table(("kind", "language", "version", "created_at", "text"), text_rows),
    "blocks": Table(("block", "wave", "offers", "is_finished", "session"), block_rows),
    "items": Table(("item", "purpose", "system", "is_target", "expected"), item_rows),
    "samples": Table(("item", "slot", "system", "utterance", "speaker", "gender", "duration_s", "facts"), sample_rows),
    "trials": Table(("block", "position", "item", "purpose", "system", "is_target"), trial_rows),
    "participants": Table(("person", "first_seen_at", "sessions"), participant_rows),
    "sessions": Table(tuple(SESSION_FIELDS), session_rows),
    "answers": Table(ANSWER_COLUMNS, answer_rows),
    "plays": Table(tuple(PLAY_FIELDS), play_rows),
    "serves": Table(tuple(SERVE_FIELDS), serve_rows),
    "events": Table(tuple(EVENT_FIELDS), event_rows),
    "screening": Table(tuple(SCREENING_FIELDS), screening_rows),
    "flags": Table(("session", "kind", "holds", "data", "at"), flag_rows),
    "rules": Table(RULE_COLUMNS, rule_rows),
    "exclusions": Table(("rule", "session", "at", "is_standing"), exclusion_rows),
}
# Asked for explicitly, and never part of the whole.
PAYMENTS = Table(tuple(PAYMENT_FIELDS), payment_rows)
