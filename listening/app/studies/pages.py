"""What the pages of studies show."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Q
from django.http import HttpRequest
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.text import capfirst

from listening import texts
from listening.models import Item, Study, StudyText, Task
from listening.people import prolific
from listening.studies import designing, designs, plans
from listening.studies.study_rules import CHANGEABLE, RELAXATIONS
from portal.jobs.rules import can_cancel
from portal.jobs.selectors import with_estimates

State = Study.State
BADGES = {
    State.DRAFT: "waiting",
    State.PREPARING: "running",
    State.PREPARED: "waiting",
    State.OPEN: "running",
    State.PAUSED: "cancelled",
    State.CLOSED: "succeeded",
}
HEARABLE = (State.PREPARED, State.OPEN, State.PAUSED, State.CLOSED)
PROLIFIC_PLACES = {"person": "{{%PROLIFIC_PID%}}", "study": "{{%STUDY_ID%}}", "session": "{{%SESSION_ID%}}"}
TASK_WORDS = {task.value: task.label.lower() for task in Task}


@dataclass(frozen=True)
class StudyRow:
    """A study in a list; `what`: its tasks in words."""

    study: Study
    what: str
    badge: str


def study_rows(studies: Iterable[Study]) -> list[StudyRow]:
    return [StudyRow(study, _tasks(study), BADGES[State(study.state)]) for study in studies]


def study_page(study: Study, request: HttpRequest) -> dict[str, Any]:
    """Everything on the page of a study."""
    is_undesigned = study.state == State.DRAFT and not study.is_designed
    is_busy = _is_busy(study)
    blocks = study.blocks.aggregate(made=Count("pk"), finished=Count("pk", filter=Q(is_finished=True)))
    link, note = evaluator_link(study, request)
    return {
        "study": study,
        "badge": BADGES[State(study.state)],
        "may_change": study.state in CHANGEABLE,
        "may_preview": study.state in HEARABLE and not study.imported,
        "job": study.job,
        "is_busy": is_busy,
        "plan_problems": designs.plan_problems(study) if is_undesigned and not is_busy else [],
        "systems": study.systems.select_related("submission__system").annotate(stimulus_count=Count("stimuli")),
        "plan": plan_facts(study),
        "before": _before(study),
        "platform": _platform(study),
        "stimuli": _stimuli(study),
        "unprepared": study.stimulus_files.filter(file="").count() if study.is_launched else 0,
        "link": link,
        "link_note": note,
        "cannot_confirm": _cannot_confirm(study),
        "blocks_made": blocks["made"],
        "blocks_finished": blocks["finished"],
        "imported_sessions": study.sessions.count() if study.imported else 0,
        "imported_people": study.participants.count() if study.imported else 0,
    }


def evaluator_link(study: Study, request: HttpRequest) -> tuple[str, str]:
    """The address for evaluators as it is given to the platform of the study, and what to say beside it."""
    address = request.build_absolute_uri(reverse("listen:join", args=[study.link_key]))
    if study.platform == Study.Platform.PROLIFIC:
        names = plans.DEFAULT_PARAMETERS["prolific"] | study.platform_settings.get("parameters", {})
        query = "&".join(f"{name}={PROLIFIC_PLACES[part]}" for part, name in names.items())
        return f"{address}?{query}", "This is the address to give Prolific, which fills in the parts in braces."
    if study.platform == Study.Platform.MTURK:
        return address, "This is the address of an external question; Mechanical Turk adds its parameters by itself."
    person = study.platform_settings.get("parameters", {}).get("person") or plans.DEFAULT_PARAMETERS["own"]["person"]
    return address, f"Whoever sends invitations can tell people apart by adding ?{person}= and a name of their choice."


def plan_facts(study: Study) -> list[tuple[str, str]]:
    """The plan of a study in words."""
    is_rating = study.form == Study.Form.RATING
    facts = [("What evaluators do", capfirst(study.get_form_display())), ("Tasks", _tasks(study))]
    if is_rating:
        facts += [("Pages", capfirst(study.get_pages_display())), ("Scale", f"1 to {study.scale_points}")]
    if study.form == Study.Form.LINKABILITY:
        boards = "a plane" if study.board_dimensions == 2 else "a line"
        facts.append(("Boards", f"{study.board_samples} samples on {boards}"))
    plays = study.plays_at_most
    facts += [
        ("Plays of a sample", f"at most {plays}" if plays else "as often as wanted"),
        ("Role play", capfirst(study.get_role_play_display())),
        ("Languages", ", ".join(study.languages)),
        ("Evaluators", str(study.evaluators)),
        ("Trials of each", _trials(study)),
    ]
    if is_rating:
        facts.append(
            ("Besides", f"{study.practice_trials} practice, {study.gold_trials} control, {study.bridge_trials} bridge")
        )
    if study.relaxations:
        facts.append(("May give way", "; ".join(RELAXATIONS[one] for one in study.relaxations if one in RELAXATIONS)))
    sets = ", ".join(study.data_sets.order_by("role", "name").values_list("name", flat=True))
    return [*facts, ("Data sets", sets or "none yet"), ("Seed", str(study.seed))]


def design_page(study: Study) -> dict[str, Any]:
    """The certificate in tables, and how often each system is heard."""
    certificate = study.certificate
    is_busy = _is_busy(study)
    of_design = study.job if study.job is not None and study.job.kind == designing.KIND else None
    page: dict[str, Any] = {
        "study": study,
        "is_busy": is_busy,
        "may_design": study.state in designs.DESIGNABLE and not is_busy,
        "job": of_design if of_design is not None and (is_busy or of_design.failure) else None,
        "may_cancel": of_design is not None and can_cancel(of_design),
        "is_secret": study.state != State.CLOSED,
    }
    if not certificate:
        return page | {"plan_problems": [] if is_busy or study.imported else designs.plan_problems(study)}
    parts = certificate.get("parts", [])
    titles = ["The scored trials"] if len(parts) < 2 else [f"Wave {number}" for number in range(1, len(parts) + 1)]
    groups = [
        {"title": title, "checks": part.get("checks", []), "notes": part.get("relaxed", [])}
        for title, part in zip(titles, parts, strict=True)
    ]
    groups.append({"title": "Everything around them", "checks": certificate.get("rows", []), "notes": []})
    counted = study.items.filter(purpose=Item.Purpose.SCORED).values("system__code").order_by("system__code")
    return page | {
        "passes": certificate.get("passes", False),
        "facts": [
            ("Seed", str(certificate.get("seed", ""))),
            ("Blocks", " + ".join(map(str, certificate.get("waves", [])))),
            ("Fingerprint of the trials", certificate.get("fingerprint", "")),
        ],
        "groups": [group for group in groups if group["checks"]],
        "counts": [
            {"name": row["system__code"] or "original speech", "items": row["items"], "trials": row["presented"]}
            for row in counted.annotate(items=Count("pk", distinct=True), presented=Count("trials"))
        ],
    }


def _cannot_confirm(study: Study) -> bool:
    """Whether Prolific shall confirm each submission although the portal has no token to ask with."""
    wants = study.platform == Study.Platform.PROLIFIC and study.platform_settings.get("confirm_by_api")
    return bool(wants) and prolific.configured_api() is None


def _is_busy(study: Study) -> bool:
    """Whether a job works on the study; how long it will take still is put on the job."""
    if study.job is None or study.job.has_ended:
        return False
    with_estimates([study.job])
    return True


def extend_page(study: Study) -> dict[str, Any]:
    is_open = study.state in (State.OPEN, State.PAUSED)
    refusal = (
        "" if is_open else f"Its state is “{study.get_state_display()}”; only a launched study gets more evaluators."
    )
    return {"blocks": study.blocks.count(), "refusal": refusal}


def chosen_text(study: Study, query: Mapping[str, str]) -> tuple[str, str]:
    """The kind and the language that an address asks for; the first ones where it asks for none that exist."""
    kind, language = query.get("kind", ""), query.get("language", "")
    kind = kind if kind in StudyText.Kind.values else StudyText.Kind.CONSENT.value
    return kind, language if language in study.languages else study.languages[0]


def text_page(study: Study, kind: str, language: str) -> dict[str, Any]:
    """A text as evaluators read it, its history, and the way to the others."""
    address = reverse("studies:texts", args=[study.name])
    tabs = [
        {
            "label": f"{one.label.capitalize()}, {language_name(code)}",
            "url": f"{address}?{urlencode({'kind': one.value, 'language': code})}",
            "is_chosen": (one.value, code) == (kind, language),
        }
        for one in StudyText.Kind
        for code in study.languages
    ]
    return {
        "study": study,
        "kind_label": StudyText.Kind(kind).label.capitalize(),
        "language": language,
        "language_label": language_name(language),
        "tabs": tabs,
        "shown": texts.newest_text(study, kind, language),
        "versions": study.texts.filter(kind=kind, language=language).select_related("created_by"),
    }


def language_name(code: str) -> str:
    """Such as ``English``; the code itself where nobody named it."""
    from django.conf.locale import LANG_INFO

    known: Mapping[str, Any] = LANG_INFO.get(code, {})
    return str(known.get("name", code))


def _tasks(study: Study) -> str:
    return ", ".join(TASK_WORDS.get(task, task) for task in study.tasks)


def _trials(study: Study) -> str:
    if study.form == Study.Form.LINKABILITY:
        return f"{study.trials_per_evaluator} board{'s' if study.trials_per_evaluator > 1 else ''}"
    return f"{study.trials_per_evaluator}, of which {study.originals_per_evaluator} original"


def _before(study: Study) -> list[tuple[str, str]]:
    try:
        screening = plans.parse_screening(study.screening)
        questions = plans.parse_questionnaire(study.questionnaire, screening=screening)
    except plans.PlanError as error:
        return [("Faults", str(error))]
    heard = {"none": "none", "huggins": "Huggins pitch", "woods": "antiphase", "both": "both"}[screening.headphones]
    gate = " (a gate)" if screening.headphones_gate == "gate" and screening.headphones != "none" else ""
    return [
        ("Questions", ", ".join(one.name.replace("_", " ") for one in questions) or "none"),
        ("Sound test", "yes" if screening.sound else "no"),
        ("Headphone check", f"{heard}{gate}"),
        ("Native languages", ", ".join(map(language_name, screening.native_languages)) or "any"),
        ("Missed control trials", "end the session" if screening.gold_gate == "gate" else "are flagged"),
    ]


def _platform(study: Study) -> list[tuple[str, str]]:
    codes = study.platform_settings.get("codes", {})
    facts = [("Evaluators come from", capfirst(study.get_platform_display()))]
    if study.platform == Study.Platform.PROLIFIC:
        facts.append(("Completion codes", ", ".join(sorted(codes)) or "none yet; the launch needs one"))
    return [
        *facts,
        ("Pay", f"{study.pay_per_hour} {study.currency} per hour"),
        ("A block is offered again", f"after {study.lease_minutes} min without a sign of life"),
    ]


def _stimuli(study: Study) -> list[tuple[str, str]]:
    facts = study.stimuli
    if not facts:
        return []
    return [
        ("Files", f"{facts.get('files', 0):,}"),
        ("Speech", f"{facts.get('speech_s', 0) / 60:.1f} min"),
        ("Form", f"{facts.get('format')}, {facts.get('rate_hz', 0) / 1000:g} kHz, {facts.get('channels')} channels"),
        ("Level", f"{facts.get('level_dbov')} dBov"),
    ]
