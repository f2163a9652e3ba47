"""Everything that an organizer does to a study but its design: make, change, word, launch, pause, close, preview.

What belongs to the plan of a study (which recordings are heard, how many, on which scale) can change until the launch,
and a change takes the design with it, because the certificate would no longer tell the truth.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from django.db import transaction

from listening import texts
from listening.models import Session, Study, StudyText
from listening.signals import study_closed
from listening.studies import plans
from listening.studies.design_rows import read_rows
from listening.studies.design_writing import clear_design
from listening.studies.row_checks import launch_faults
from listening.studies.selectors import locked_study
from listening.studies.study_rules import (
    CHANGEABLE,
    LOCKED_AFTER_LAUNCH,
    PLAN_FIELDS,
    RATED,
    StudyProblems,
    platform_problems,
    tasks_of,
)
from portal.challenges.models import DataSet, Edition
from portal.core import audit
from portal.jobs.services import NotPossible
from portal.submissions.models import Submission

State = Study.State
LONGEST_CODE = 40
FIRST_SETTINGS: dict[str, Any] = {
    "screening": plans.DEFAULT_SCREENING,
    "questionnaire": plans.DEFAULT_QUESTIONNAIRE,
    "platform_settings": {"parameters": {}, "codes": {}, "confirm_by_api": False},
}


@transaction.atomic
def create_study(
    *,
    edition: Edition,
    by: Any,
    systems: Iterable[Submission],
    data_sets: Iterable[DataSet],
    **fields: Any,
) -> Study:
    """A draft with its systems, its recordings and the shipped wording of every text in its languages.

    Args:
        fields: of `Study`; those left out get their default.

    Raises:
        StudyProblems: the name is taken or not usable.
    """
    study = Study(edition=edition, created_by=by, **FIRST_SETTINGS | fields)
    study.tasks = tasks_of(study.form, study.tasks or RATED)
    study.languages = study.languages or list(texts.SHIPPED_LANGUAGES)
    check_name(study)
    study.save()
    study.data_sets.set(data_sets)
    _set_systems(study, systems)
    for (kind, language), wording in _wordings(study).items():
        _add_text(study, kind, language, wording, by)
    audit.record("study.created", study, actor=by, edition=edition.name)
    return study


@transaction.atomic
def change_study(
    *,
    study: Study,
    by: Any,
    systems: Iterable[Submission] | None = None,
    data_sets: Iterable[DataSet] | None = None,
    **fields: Any,
) -> Study:
    """Other fields of a study; a change of its plan takes the design away, and after the launch it is refused.

    Raises:
        NotPossible: the stimuli are being made, or the study is closed.
        StudyProblems: a field cannot change any more, or the name is taken.
    """
    study = locked_study(study, CHANGEABLE, "changed")
    changed = {name: value for name, value in fields.items() if getattr(study, name) != value}
    before = {name: getattr(study, name) for name in changed}
    _note_relation(study, "systems", systems, before, changed)
    _note_relation(study, "data_sets", data_sets, before, changed)
    if study.is_launched and (fixed := LOCKED_AFTER_LAUNCH & changed.keys()):
        sentence = "This is fixed since the launch: answers rest on it."
        raise StudyProblems({name: [sentence] for name in sorted(fixed)})
    wordings = _wordings(study)
    for name, value in changed.items():
        if name not in {"systems", "data_sets"}:
            setattr(study, name, value)
    check_name(study)
    if study.is_launched and (problems := platform_problems(study)):  # evaluators may come at any moment
        raise StudyProblems({"platform": problems})
    if PLAN_FIELDS & changed.keys():
        clear_design(study)
        if study.job is not None and study.job.has_ended:
            study.job = None  # what it told was about another plan
    study.save()
    if "screening" in changed:  # a preview may stand before a test that is gone
        study.sessions.filter(is_preview=True).delete()
    if "systems" in changed:
        _set_systems(study, systems or ())
    if "data_sets" in changed:
        study.data_sets.set(data_sets or ())
    _follow_wording(study, wordings, by)
    if changed:
        audit.record("study.changed", study, actor=by, changes=audit.changes(before, changed))
    return study


@transaction.atomic
def change_text(*, study: Study, kind: str, language: str, text: str, by: Any) -> StudyText | None:
    """The text that evaluators read from now on, as a new version; None where it says nothing new.

    Raises:
        NotPossible: the study is closed.
    """
    study = locked_study(study, [state for state in State if state != State.CLOSED], "reworded")
    made = _add_text(study, kind, language, text, by)
    if made is not None:
        audit.record("study.text_changed", study, actor=by, kind=kind, language=language, version=made.version)
    return made


@transaction.atomic
def launch_study(*, study: Study, by: Any, now: datetime) -> Study:
    """Open a study to evaluators. Its certificate is computed from its rows at this moment, whatever was stored.

    Raises:
        NotPossible: it is not ready to launch.
        StudyProblems: the rows are not a balanced design, a stimulus, a text or a setting is missing.
    """
    study = locked_study(study, [State.PREPARED], "launched")
    problems = [*launch_faults(read_rows(study)), *text_problems(study), *platform_problems(study)]
    problems += submission_problems(study)
    if problems:
        raise StudyProblems({"": problems})
    study.state, study.launched_at = State.OPEN, now
    study.save(update_fields=["state", "launched_at"])
    audit.record("study.launched", study, actor=by, certificate=study.certificate["fingerprint"])
    return study


@transaction.atomic
def pause_study(*, study: Study, by: Any) -> Study:
    """Let nobody begin; whoever is listening finishes.

    Raises:
        NotPossible: it is not open.
    """
    return _to_state(study, [State.OPEN], State.PAUSED, "paused", by)


@transaction.atomic
def resume_study(*, study: Study, by: Any) -> Study:
    """Let evaluators begin again.

    Raises:
        NotPossible: it is not paused, or recordings of an extension are not prepared yet.
    """
    if missing := study.stimulus_files.filter(file="").count():
        raise NotPossible(f"{missing} recordings are not prepared yet. Prepare the stimuli first.")
    return _to_state(study, [State.PAUSED], State.OPEN, "resumed", by)


@transaction.atomic
def close_study(*, study: Study, by: Any, now: datetime) -> Study:
    """End a study for good; its answers stay.

    Raises:
        NotPossible: it was never launched, or it is closed already.
    """
    study = _to_state(study, [State.OPEN, State.PAUSED], State.CLOSED, "closed", by)
    study.closed_at = now
    study.save(update_fields=["closed_at"])
    study_closed.send(sender=Study, study=study)
    return study


@transaction.atomic
def preview_session(*, study: Study, by: Any) -> Session:
    """A session in which an organizer meets what an evaluator will meet; it takes no block and counts nowhere.

    Raises:
        NotPossible: there is nothing to hear yet.
    """
    study = locked_study(study, [State.PREPARED, State.OPEN, State.PAUSED, State.CLOSED], "listened to")
    block = study.blocks.order_by("number").first()
    if block is None:
        raise NotPossible("There is no design to listen to. Make one first.")
    participant, _ = study.participants.get_or_create(person_key=f"preview-{by.pk}")
    audit.record("study.previewed", study, actor=by)
    return study.sessions.create(participant=participant, block=block, is_preview=True, language=study.languages[0])


def newest_text(study: Study, kind: str, language: str) -> StudyText | None:
    """What evaluators read now of a kind in a language; None where there is none."""
    return study.texts.filter(kind=kind, language=language).order_by("-version").first()


def text_problems(study: Study) -> list[str]:
    """Which texts evaluators would miss, as sentences."""
    newest = {(one.kind, one.language): one.text for one in study.texts.order_by("version")}
    return [
        f"The text “{kind.label.lower()}” is empty in the language {language}. Write it on the page of texts."
        for kind in StudyText.Kind
        for language in study.languages
        if not newest.get((kind.value, language), "").strip()
    ]


def submission_problems(study: Study) -> list[str]:
    """Which systems may not be heard any more, as sentences."""
    gone = (Submission.State.WITHDRAWN, Submission.State.REFUSED)
    return [
        f"{one.submission} is {one.submission.get_state_display().lower()}. Leave it out of the systems of the study."
        for one in study.systems.filter(submission__state__in=gone).select_related("submission__system")
    ]


def _to_state(study: Study, states: Iterable[str], state: str, deed: str, by: Any) -> Study:
    study = locked_study(study, states, deed)
    study.state = state
    study.save(update_fields=["state"])
    audit.record(f"study.{deed}", study, actor=by)
    return study


def check_name(study: Study) -> None:
    """Refuse a name that is taken, by a study or by an address.

    Raises:
        StudyProblems: it is.
    """
    if study.name in ("new", "import"):
        raise StudyProblems({"name": [f"The address of “{study.name}” is taken. Choose another name."]})
    if Study.objects.filter(name=study.name).exclude(pk=study.pk).exists():
        raise StudyProblems({"name": [f"Another study is called {study.name}. Choose another name."]})


def _set_systems(study: Study, systems: Iterable[Submission]) -> None:
    """Hear these submissions; recordings that were prepared of those that stay are kept."""
    chosen = {one.pk: one for one in systems}
    gone = study.systems.exclude(submission__in=chosen)
    study.stimulus_files.filter(system__in=gone).delete()
    gone.delete()
    held = dict(study.systems.values_list("submission", "code"))
    taken = set(held.values())
    for submission in (one for pk, one in chosen.items() if pk not in held):
        label = submission.system.label or submission.system.name
        code, number = label[:LONGEST_CODE], 2
        while code in taken:
            code, number = f"{label[: LONGEST_CODE - 3]}-{number}", number + 1
        taken.add(code)
        study.systems.create(submission=submission, code=code)


def _note_relation(
    study: Study, name: str, chosen: Iterable[Any] | None, before: dict[str, Any], changed: dict[str, Any]
) -> None:
    """Put a relation among what changed, where it did."""
    if chosen is None:
        return
    held: list[Any] = list(study.data_sets.all())
    if name == "systems":
        held = [one.submission for one in study.systems.select_related("submission__system")]
    if {one.pk for one in held} != {one.pk for one in chosen}:
        before[name], changed[name] = sorted(map(str, held)), sorted(map(str, chosen))


def _shipped(study: Study, kind: str, language: str) -> str:
    """The wording that comes with the portal for a study like this; empty where there is none."""
    tasks, points = list(study.tasks), study.scale_points
    return texts.shipped_text(kind, study.role_play, language, tasks=tasks, scale_points=points)


def _add_text(study: Study, kind: str, language: str, text: str, by: Any) -> StudyText | None:
    """The text as the newest version; None where it says nothing new."""
    newest = newest_text(study, kind, language)
    if not text or (newest is not None and newest.text == text):
        return None
    version = newest.version + 1 if newest else 1
    return study.texts.create(kind=kind, language=language, version=version, text=text, created_by=by)


def _wordings(study: Study) -> dict[tuple[str, str], str]:
    """The shipped wording of each kind and language of a study."""
    return {
        (kind, language): _shipped(study, kind, language)
        for kind in StudyText.Kind.values
        for language in study.languages
    }


def _follow_wording(study: Study, before: Mapping[tuple[str, str], str], by: Any) -> None:
    """Let texts follow what a study asks: those that nobody wrote, and the story of a role play that was chosen anew.

    Args:
        before: the shipped wordings of what the study asked so far.
    """
    for (kind, language), wording in _wordings(study).items():
        newest = newest_text(study, kind, language)
        was = before.get((kind, language))
        is_untouched = newest is None or newest.text == was
        is_new_story = kind == StudyText.Kind.ROLE_PLAY and was is not None and was != wording
        if is_untouched or is_new_story:
            _add_text(study, kind, language, wording, by)
