"""The audit log of an edition: what was done to it, its teams, uploads, systems, submissions and runs.

The audit log names a subject by the name of its model and its key; subjects that belong to apps above teams are reached
from the edition's own rows, without their modules.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from django.db.models import CharField, F, Q, QuerySet, Value
from django.db.models.functions import Cast, Replace
from django.utils.dateparse import parse_datetime

from portal.challenges.models import Edition
from portal.challenges.rules import moment
from portal.core.models import AuditEvent
from portal.teams.models import Team

ACTIONS_ON_JOBS = ("job.cancelled", "job.run_again")  # what people do; that a job was made, its own subject tells
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(\+\d\d:\d\d|Z)")
SUBJECTS = {"board": "Leaderboard", "study": "Listening test"}  # as pages call them
RUNS = "submissions__anonymization_runs__pk"
COLUMNS = ("time", "person", "action", "subject", "kind", "details")


def select_events(edition: Edition, team: Team | None = None) -> QuerySet[AuditEvent]:
    """Return the events of an edition, newest first; only those of one of its teams where given."""
    owner: Edition | Team = edition if team is None else team
    systems = owner.systems.all()
    subjects = Q(subject_type="submissions.system") & _among(systems, "pk")
    subjects |= Q(subject_type="submissions.submission") & _among(systems, "submissions__pk")
    subjects |= Q(subject_type="evaluation.evaluationrun") & _among(systems, "submissions__evaluation_runs__pk")
    subjects |= Q(subject_type="submissions.upload") & _among(owner.uploads.all(), "pk")
    jobs = _among(systems, "submissions__job__pk") | _among(systems, "submissions__evaluation_runs__job__pk")
    subjects |= Q(subject_type="jobs.job", action__in=ACTIONS_ON_JOBS) & jobs
    if team is None:  # the portal's own runs, with their seeds, are of no team
        subjects |= Q(subject_type="anonymization.anonymizationrun") & _among(systems, RUNS)
        subjects |= Q(subject_type="challenges.edition", subject_id=str(edition.pk))
        subjects |= Q(subject_type="teams.team") & _among(edition.teams.all(), "pk")
        subjects |= Q(action__endswith=".deleted", data__edition_pk=edition.pk)  # whose rows are gone
        subjects |= Q(subject_type="listening.study") & _among(edition.studies.all(), "pk")
    else:
        subjects |= Q(subject_type="teams.team", subject_id=str(team.pk))
    events = AuditEvent.objects.annotate(plain_id=_plain(F("subject_id")))
    return events.filter(subjects).select_related("actor").order_by("-at", "-pk")


def export_events(events: Iterable[AuditEvent]) -> Iterable[tuple[Any, ...]]:
    """Yield the trail as a table with its head."""
    yield COLUMNS
    for event in events:
        yield (
            event.at.isoformat(timespec="seconds"),
            str(event.actor) if event.actor else "the portal",
            event.action,
            event.subject,
            event.subject_type.rpartition(".")[2],
            describe_details(event),
        )


def describe_action(event: AuditEvent) -> str:
    """Such as ``Team: members frozen`` for ``team.members_frozen``."""
    subject, _, action = event.action.partition(".")
    words = action.replace("_", " ").replace("unpublished", "taken back")
    return f"{SUBJECTS.get(subject, subject.capitalize())}: {words}"


def describe_details(event: AuditEvent) -> str:
    """Such as ``email: ada@university.example``, or ``title: A → B`` for what changed; what is empty is left out.

    In the order of the alphabet, because a database keeps no order of these.
    """
    data = {key: value for key, value in event.data.items() if key != "edition_pk"}
    changed = [
        f"{_name(key)}: {_in_words(before) or 'none'} → {_in_words(after) or 'none'}"
        for key, (before, after) in sorted(data.pop("changes", {}).items())
    ]
    said = [f"{_name(key)}: {words}" for key, value in sorted(data.items()) if (words := _in_words(value))]
    return "; ".join([*changed, *said])


def _name(key: str) -> str:
    return key.replace("_", " ")


def _in_words(value: Any) -> str:
    """Return a value as a reader takes it: no quotation marks of lists, times without their parts of a second."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(_in_words, value))
    if isinstance(value, dict):
        return ", ".join(f"{_name(key)} {_in_words(one) or 'none'}" for key, one in sorted(value.items()))
    text = str(value)
    if TIME.fullmatch(text) and (time := parse_datetime(text)) is not None:
        return moment(time)
    return text


def _among(rows: QuerySet[Any], key: str) -> Q:
    """Return a condition for audit events of these rows; UUIDs are written without hyphens, as some databases do."""
    keys = rows.filter(**{f"{key}__isnull": False}).order_by().values(plain=_plain(Cast(key, CharField())))
    return Q(plain_id__in=keys)


def _plain(text: Any) -> Replace:
    return Replace(text, Value("-"), Value(""), output_field=CharField())
