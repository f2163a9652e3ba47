"""What the pages of studies show, and the planner: can the numbers be met, how precise, how long, at what cost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from math import isnan
from typing import Any

from django.conf import settings
from django.conf.locale import LANG_INFO
from django.db.models import Count, Max, Q, QuerySet, prefetch_related_objects
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.safestring import SafeString, mark_safe
from django.utils.text import capfirst

from common.errors import NotPossible, ProblemsError
from common.tables import Table, number_table
from listening.analysis.reading.inputs import Settings
from listening.app.models import Presentation, PresentationSample, Study
from listening.app.studies import rules, selectors
from listening.app.studies.forms import PLAN_SECTIONS, SAVED, SECTIONS, StudyForm
from listening.app.studies.interface_words import count_missing, ships_words
from listening.app.studies.planning import TRIED_IN_REQUEST_S, PlanVerdict, judge_plan
from listening.app.studies.rules import CHANGEABLE, DESIGNABLE, LAUNCHED, RELAXATIONS
from listening.app.studies.services import DESIGN_JOB, missing_for_launch
from listening.app.studies.settings import (
    DEFAULT_PARAMETERS,
    OPTIONAL_CHECKS,
    OWN_SIGNS,
    parse_questionnaire,
    parse_screening,
)
from listening.design.certificate import describe_power
from listening.design.precision import TYPICAL_EER, SystemPrecision, plan_precision
from listening.questions import COMPARED_SLOTS, AskedQuestion, Kind, Orders
from portal.core.clock import read_clock
from portal.core.labels import decimals
from portal.jobs.rules import can_cancel
from portal.jobs.selectors import with_estimates

State = Study.State
ONLY_HERE = ("127.0.0.1", "localhost")
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


def list_studies(studies: Iterable[Study]) -> list[tuple[Study, str]]:
    """Return studies with the badges of their states."""
    return [(study, BADGES[State(study.state)]) for study in studies]


def _draw_code(address: str) -> SafeString:
    """Return an address as a picture for the camera of a phone."""
    import qrcode
    from qrcode.image.svg import SvgPathImage

    drawn: str = qrcode.make(address, image_factory=SvgPathImage).to_string(encoding="unicode")
    return mark_safe(drawn)  # noqa: S308 - squares alone


def study_page(study: Study, request: HttpRequest) -> dict[str, Any]:
    """Return everything on the page of a study."""
    prefetch_related_objects([study], "data_sets")
    is_undesigned = study.state == State.DRAFT and not study.is_designed
    is_planned = study.state in (State.DRAFT, State.PREPARED)
    is_busy = _is_busy(study)
    blocks = study.blocks.aggregate(made=Count("pk"), finished=Count("pk", filter=Q(is_finished=True)))
    places = blocks["made"] or study.evaluators
    verdict = judge_plan(study) if is_undesigned and not is_busy else PlanVerdict([], is_tried=False)
    link = evaluator_link(study, request)
    is_confirmed = study.platform == Study.Platform.PROLIFIC and bool(study.platform_settings.get("confirm_by_api"))
    still = selectors.sessions_under_way(study).filter(held_block__isnull=False)  # for which the analysis waits
    return {
        "study": study,
        "badge": BADGES[State(study.state)],
        "may_change": study.state in CHANGEABLE,
        "may_preview": study.state in HEARABLE and not study.imported,
        "job": study.job,
        "is_busy": is_busy,
        "plan_problems": verdict.problems,
        "systems": _conditions(study),
        "left_out": selectors.systems_left_out(study) if is_planned else [],
        "plan": describe_plan(study),
        "before": _before(study),
        "codes": sorted(study.platform_settings.get("codes", {})),
        "share": rules.places_for_one_network(study, places),
        "is_narrow": rules.is_too_narrow_for_a_room(study, places),
        "places": places,
        "missing": missing_for_launch(study) if study.state == State.PREPARED else [],
        "fewest": FEWEST_FOR_INTERVALS,
        "is_too_few": is_planned and places < FEWEST_FOR_INTERVALS,
        "is_rated_once": is_planned and _is_rated_once(study, verdict),
        "stimuli": _stimuli(study),
        "unprepared": study.stimulus_files.filter(file="").count() if study.is_launched else 0,
        "results_are": rules.describe_published_results(study),
        "taken_back": selectors.was_taken_back(study),
        "link": link,
        "person_parameter": study.platform_settings.get("parameters", {}).get("person")
        or DEFAULT_PARAMETERS["own"]["person"],
        "own_signs": OWN_SIGNS,
        "is_local": request.get_host().rpartition(":")[0] in ONLY_HERE,
        "kept": selectors.describe_keeping(study, timezone.now()) if study.state == State.CLOSED else None,
        "link_picture": _draw_code(link) if study.state in LAUNCHED and study.platform == Study.Platform.OWN else "",
        "cannot_confirm": is_confirmed and not settings.PROLIFIC_TOKEN,
        "blocks_made": blocks["made"],
        "blocks_finished": blocks["finished"],
        "still_listening": still.count() if study.state == State.CLOSED else 0,
        "imported_sessions": study.sessions.count() if study.imported else 0,
        "imported_people": study.participants.count() if study.imported else 0,
    }


def _is_rated_once(study: Study, verdict: PlanVerdict) -> bool:
    """Return whether one evaluator alone hears each item."""
    items = study.presentations.filter(purpose=Presentation.Purpose.SCORED).annotate(ratings=Count("trials"))
    most = items.aggregate(most=Max("ratings"))["most"]
    return verdict.is_heard_once or (most == 1 and not study.is_crossed and study.form != Study.Form.LINKABILITY)


def evaluator_link(study: Study, request: HttpRequest) -> str:
    """Return the address for evaluators as it is given to the platform of the study."""
    address = request.build_absolute_uri(reverse("listen:join", args=[study.link_key]))
    if study.platform != Study.Platform.PROLIFIC:
        return address
    names = DEFAULT_PARAMETERS["prolific"] | study.platform_settings.get("parameters", {})
    return f"{address}?{'&'.join(f'{name}={PROLIFIC_PLACES[part]}' for part, name in names.items())}"


def describe_plan(study: Study) -> dict[str, Any]:
    """Return what the plan of a study says beyond its fields."""
    counts = (study.practice_trials, "practice"), (study.gold_trials, "control"), (study.bridge_trials, "bridge")
    has_others = study.practice_trials or study.gold_trials if study.is_crossed else study.form == Study.Form.RATING
    return {
        "tasks": [one.title for one in study.asked] if study.is_crossed else study.asked_keys,
        "is_in_order": study.orders == Orders.AS_LISTED,
        "scales": list(dict.fromkeys(_scale_in_words(one) for one in study.asked if one.is_judged)),
        "languages": list(map(language_name, study.languages)),
        "added": sum(study.certificate.get("waves", [])[1:]),
        "besides": [f"{count} {kind}" for count, kind in counts if count] or ["none"] if has_others else [],
        "relaxations": [RELAXATIONS[one] for one in study.relaxations if one in RELAXATIONS],
        "data_sets": sorted(study.data_sets.all(), key=lambda one: (one.role, one.name)),
    }


def _scale_in_words(question: AskedQuestion) -> str:
    lowest, highest = question.ends
    return f"{highest} choices" if question.kind == Kind.CHOICE else f"{lowest} to {highest}".replace("-", "−")


def design_page(study: Study) -> dict[str, Any]:
    """Return the certificate in tables, and how often each system is heard."""
    certificate = study.certificate
    is_busy = _is_busy(study)
    of_design = study.job if study.job is not None and study.job.kind == DESIGN_JOB else None
    page: dict[str, Any] = {
        "study": study,
        "is_busy": is_busy,
        "may_design": study.state in DESIGNABLE and not is_busy,
        "job": of_design if of_design is not None and (is_busy or of_design.failure) else None,
        "may_cancel": of_design is not None and can_cancel(of_design),
        "is_secret": study.state != State.CLOSED,
    }
    if not certificate:
        return page | {"plan_problems": [] if is_busy or study.imported else judge_plan(study).problems}
    parts = certificate.get("parts", [])
    titles = ["The scored trials"] if len(parts) < 2 else [f"Wave {number}" for number in range(1, len(parts) + 1)]
    groups = [
        {"title": title, "checks": list(_with_power(part)), "notes": part.get("relaxed", [])}
        for title, part in zip(titles, parts, strict=True)
    ]
    around = {"checks": certificate.get("rows", [])}
    groups.append({"title": "Everything around them", "checks": list(_with_power(around)), "notes": []})
    return page | {
        "passes": certificate.get("passes", False),
        "certificate": certificate,
        "groups": [group for group in groups if group["checks"]],
        "counts": _count_trials(study),
    }


def _count_trials(study: Study) -> QuerySet[Any, Any]:
    """Return in how many scored presentations and trials each system is rated, or each condition is compared."""
    scored, code = study.presentations.filter(purpose=Presentation.Purpose.SCORED), "condition__code"
    counted: QuerySet[Any, Any] = scored.order_by(code).values_list(code)
    if not study.is_crossed:
        return counted.annotate(Count("pk", distinct=True), Count("trials"))
    rated = PresentationSample.objects.filter(presentation__in=scored, slot__in=COMPARED_SLOTS)
    code = "stimulus__condition__code"
    numbers = Count("stimulus__item", distinct=True), Count("presentation__trials")
    return rated.order_by(code).values_list(code).annotate(*numbers)


def _with_power(part: Mapping[str, Any]) -> Iterator[tuple[Mapping[str, Any], str]]:
    """Yield checks of a certificate, each with what one that allows for chance can find at all."""
    for check in part.get("checks", []):
        yield check, describe_power(check["name"], check["required"], part.get("numbers") or {})


def _conditions(study: Study) -> QuerySet[Any]:
    """Return the systems of a study, or its conditions; of an imported one the systems of the edition."""
    conditions = study.conditions.all() if study.is_crossed else study.systems
    return conditions.select_related("submission__system").annotate(stimulus_count=Count("stimuli"))


def _is_busy(study: Study) -> bool:
    """Return whether a job works on the study; how long it will take still is put on the job."""
    if study.job is None or study.job.has_ended:
        return False
    with_estimates([study.job])
    return True


def ask_to_launch(study: Study) -> dict[str, Any]:
    """Return what the page shows that asks before a study is launched."""
    counts = [("Evaluators", study.blocks.count()), ("Trials of each", study.trials_per_evaluator)]
    counts.append(("Minutes of each", selectors.expected_effort(study)["minutes"]))
    asked = _asking(study, [State.PREPARED], "launched")
    asked["problems"] += [sentence for sentence, _ in missing_for_launch(study)]
    return asked | {
        "question": f"Launch {study}?",
        "languages": [count_english_words(study, language) for language in study.languages],
        "facts_title": "What is launched",
        "are_counts": True,
        "facts": [(name, f"{count:,}") for name, count in counts],
        "action": "Launch",
        "kind": "",
    }


def ask_to_forget(study: Study) -> dict[str, Any]:
    """Return what the page shows that asks before personal data of evaluators is deleted."""
    asked = _asking(study, [State.CLOSED], "emptied of personal data")
    if not asked["problems"] and not selectors.knows_people(study):
        asked["problems"] = ["No personal data of its evaluators is here."]
    title = "Delete personal data"
    return asked | {"question": f"{title} of {study}?", "data": rules.PERSONAL_DATA, "action": title, "kind": "danger"}


def _asking(study: Study, states: Iterable[State], action: str) -> dict[str, Any]:
    """Return what the pages that ask before something is done to a study have in common."""
    problems = []
    try:
        selectors.require_state(study, states, action)
    except NotPossible as reason:
        problems.append(str(reason))
    address = study.get_absolute_url()
    trail = [("Listening tests", reverse("studies:list")), (str(study), address)]
    return {"study": study, "trail": trail, "problems": problems, "back": address}


def close_page(study: Study) -> dict[str, Any]:
    """Return who is still listening, and until when at most."""
    found: list[Any] = list(selectors.sessions_under_way(study))
    listening, now = [one for one in found if one.has_place], read_clock()
    return {
        "study": study,
        "badge": BADGES[State(study.state)],
        "listening": listening,
        "stalled": sum(rules.is_stalled(one, now) for one in listening),
        "before": len(found) - len(listening),
        "blocks": study.blocks.aggregate(made=Count("pk"), finished=Count("pk", filter=Q(is_finished=True))),
    }


def count_english_words(study: Study, language: str) -> dict[str, Any]:
    """Return how many words of buttons and hints evaluators read in English for want of a translation."""
    missing, total = (0, 0) if ships_words(language) else count_missing(study, language)
    return {"name": language_name(language), "missing": missing, "total": total}


def language_name(code: str) -> str:
    """Return the name of a language, such as ``English``; the code itself where nobody named it."""
    known: Mapping[str, Any] = LANG_INFO.get(code, {})
    return str(known.get("name", code))


def _before(study: Study) -> dict[str, Any]:
    """Return what comes before the trials."""
    screening = parse_screening(study.screening)
    questions = parse_questionnaire(study.questionnaire, screening=screening)
    return {
        "screening": screening,
        "questions": [one.name.replace("_", " ") for one in questions],
        "checks": [(one, getattr(screening, one)) for one in OPTIONAL_CHECKS if one in screening.checks],
        "languages": list(map(language_name, screening.native_languages)),
    }


def _stimuli(study: Study) -> list[tuple[str, str]]:
    facts = study.stimuli
    if not facts:
        return []
    form, channels = f"{facts.get('format')}, {facts.get('rate_hz', 0) / 1000:g} kHz", facts.get("channels", 0)
    level = facts.get("level_dbov")
    return [
        ("Files", f"{facts.get('files', 0):,}"),
        ("Speech", f"{facts.get('speech_s', 0) / 60:.1f} min"),
        ("Form", f"{form}, {channels} channel{'s' * (channels != 1)}"),
        ("Level", f"{decimals(level, 1)} dBov" if level is not None else capfirst(study.get_loudness_display())),
    ]


FEWEST_FOR_INTERVALS = Settings().least_clusters
WIDEST = 0.25  # half an interval of a rate that is given as a number


def planner(study: Study, form: StudyForm, *, seconds: float = TRIED_IN_REQUEST_S) -> dict[str, Any]:
    """Return what the planner shows: of the form where it was filled in and can be read, else of the study as it is.

    Args:
        seconds: as of `judge_plan`.
    """
    form_problems: list[str] = []
    tried = copy(study)
    submissions, data_sets, further = (form.initial[name] for name in ("systems", "data_sets", "further"))
    if form.is_bound:
        form.is_valid()
        given = form.cleaned_data
        form_problems = _form_problems(form)
        for name in SAVED:
            if name in given and name not in form.errors:
                setattr(tried, name, given[name])
        submissions = list(given.get("systems", submissions))
        data_sets = list(given.get("data_sets", data_sets))
        further = given.get("further", further)
    if form_problems:
        verdict = PlanVerdict(form_problems, is_tried=True)
    else:
        verdict = judge_plan(tried, systems=submissions, data_sets=data_sets, further=further, seconds=seconds)
    page: dict[str, Any] = {"plan_problems": verdict.problems, "is_tried": verdict.is_tried}
    try:
        heard = study.compared if study.has_own_recordings else [one.system for one in submissions]
        page |= _effort(tried, list(map(str, heard)), selectors.mean_length(study, data_sets))
    except ProblemsError as error:  # no system
        return page | {"plan_problems": verdict.problems or error.problems}
    return page | {"is_rated_once": verdict.is_heard_once}


def _form_problems(form: StudyForm) -> list[str]:
    """Return what is wrong with the fields of a plan."""
    names = {name for part in PLAN_SECTIONS for name in SECTIONS[part][1]}
    return [
        f"{form.fields[name].label}: {sentence}"
        for name, sentences in form.errors.items()
        if name in names
        for sentence in sentences
    ]


def _effort(tried: Study, systems: list[str], mean_s: float) -> dict[str, Any]:
    """Return minutes, hours and cost; and for ratings how precise each system's results will be."""
    before_min = selectors.minutes_before_trials(tried)
    plan = plan_precision(
        evaluators=tried.evaluators,
        trials=tried.trials_per_evaluator,
        originals=min(tried.originals_per_evaluator, tried.trials_per_evaluator),
        systems=systems,
        questions=() if tried.is_crossed else tried.asked,
        seconds_per_trial=seconds_of_trial(tried, mean_s),
        other_minutes=before_min,
        other_trials=tried.trials_beside,
        pay_per_hour=float(tried.pay_per_hour),
    )
    is_enough = tried.evaluators >= FEWEST_FOR_INTERVALS
    return {
        "stats": [
            {"label": "One evaluator", "value": f"{plan.minutes:.0f}", "unit": "min"},
            {"label": "All together", "value": f"{plan.hours:.1f}", "unit": "h"},
            {"label": "Pay", "value": f"{plan.cost:,.0f}", "unit": tried.currency}
            if tried.pay_per_hour
            else {"label": "Pay", "value": "unpaid"},
        ],
        "precision": _precision_table(systems, tried.asked, plan.rows, with_widths=is_enough) if plan.rows else None,
        "effort": {
            "before_min": f"{before_min:.0f}",
            "trials": tried.trials_per_evaluator + tried.trials_beside,
            "trial_s": f"{seconds_of_trial(tried, mean_s):.0f}",
            "mean_s": f"{mean_s:.1f}",
        },
        "fewest": FEWEST_FOR_INTERVALS,
        "is_too_few": not is_enough and (plan.rows or tried.is_crossed),
        "has_intervals": is_enough and plan.rows,
        "is_too_wide": is_enough and any(row.eer_half_width > WIDEST for row in plan.rows),
        "widest": round(100 * WIDEST),
        "typical_eer": round(100 * TYPICAL_EER),
    }


def seconds_of_trial(study: Study, mean_s: float) -> float:
    """Estimate how long a trial takes, in s, with samples of this mean length."""
    return rules.seconds_of_trial(study.asked, [mean_s] * len(rules.slots_of_trial(study)))


def _half_width(share: float) -> str:
    """Return half an interval of a rate in percentage points; one that says hardly anything only as such."""
    return f"± {100 * share:.1f}" if share <= WIDEST else f"over ± {100 * WIDEST:.0f}"


def _precision_table(
    systems: Sequence[str], asked: Sequence[AskedQuestion], rows: Iterable[SystemPrecision], *, with_widths: bool
) -> Table:
    """Return ratings of each system and, where there will be intervals, half widths; EERs in percentage points."""
    found = {(row.system, row.task): row for row in rows}
    heads = ["System", "Ratings"]
    if with_widths:
        heads += [*(f"EER of {one.key}, points" for one in asked), "Mean rating", "Normalised"]

    def cells(system: str) -> Iterator[str]:
        of_tasks = [found[system, one.key] for one in asked]
        yield from (system, str(of_tasks[0].ratings))
        if not with_widths:
            return
        for row in of_tasks:  # a dash where there is nothing to compare with
            yield "–" if isnan(row.eer_half_width) else _half_width(row.eer_half_width)
        widths = (of_tasks[0].raw_mean_half_width, 2), (of_tasks[0].mean_half_width, 3)
        yield from ("–" if isnan(width) else f"± {width:.{digits}f}" for width, digits in widths)

    caption = "How precise the results of each system will be" if with_widths else "Ratings of each system"
    return number_table("Precision of each system", heads, map(cells, systems), caption=caption)
