"""What an evaluator's page shows: its template and its values, by the step and the state of the session.

The page of the trials is the same for every evaluator of a study, but for the addresses of the session: nothing of a
trial is in it, its script fetches them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from django.conf.locale import LANG_INFO
from django.forms import Form
from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext
from django.utils.translation.trans_real import parse_accept_lang_header

from listening.app.models import Session, Study, StudyText
from listening.app.sessions import platforms, pre_screening
from listening.app.sessions.endings import describe_end
from listening.app.sessions.forms import CheckForm, ConsentForm, QuestionsForm
from listening.app.sessions.selectors import list_questions, list_steps, read_screening
from listening.app.sessions.services import explain_no_place, show_text
from listening.app.studies.rules import slots_of_trial
from listening.app.studies.selectors import expected_effort, shown_text
from listening.questions import REFERENCE, AskedQuestion, Kind, Screen
from portal.core.clock import read_clock

Step = Session.Step
Page = tuple[str, dict[str, Any]]
# Of every page of trials; the module, template and style of what is answered come besides.
MODULES = ("words", "store", "connection", "queue", "clips", "player", "screen", "trial")
# By the kind of answer; of scales and choices it is "rating".
MODULE_OF: Mapping[str, str] = {Kind.PLACEMENT: "board", Kind.TEXT: "transcription", Kind.SLIDER: "sliders"}
# Their answers are sent with a choice of the language, so that the page in that language has them.
KEEP_ANSWERS = {Step.QUESTIONS, Step.SOUND, Step.HEADPHONES}


def list_languages(study_languages: Iterable[str], current: str, query: Any = None) -> list[dict[str, Any]]:
    """Return the languages on offer, by their own names.

    Args:
        query: of an address, which gives one for each: where there is no session that could remember the choice.
    """
    found = []
    for code in study_languages:
        address = ""
        if query is not None:
            changed = query.copy()
            changed["lang"] = code
            address = f"?{changed.urlencode()}"
        found.append(
            {"code": code, "name": language_name(code), "is_current": code == current, "address": address},
        )
    return found


def language_name(code: str) -> str:
    facts = LANG_INFO.get(code) or LANG_INFO.get(code.partition("-")[0]) or {}
    name = str(facts.get("name_local", code))
    return name[:1].upper() + name[1:]


def choose_language(request: HttpRequest, offered: Iterable[str]) -> str:
    """Return the language on offer that the address asks for, else that of the browser; else the first."""
    on_offer = list(offered) or ["en"]
    if (wanted := request.GET.get("lang", "")) in on_offer:
        return wanted
    for accepted, _quality in parse_accept_lang_header(request.headers.get("Accept-Language", "")):
        for code in (accepted, accepted.partition("-")[0]):
            if code in on_offer:
                return code
    return on_offer[0]


def session_frame(session: Session) -> dict[str, Any]:
    """Return what every page of a session needs."""
    languages = list_languages(session.study.languages, session.language)
    frame: dict[str, Any] = {"session": session, "languages": languages}
    steps = list_steps(session.study)[:-1]  # the trials count themselves
    if session.state == Session.State.ACTIVE and session.step in steps:
        frame |= {"step_number": steps.index(Step(session.step)) + 1, "steps_total": len(steps)}
    return frame


def current_page(session: Session, form: Form | None = None, **shown: Any) -> Page:
    """Return template and values of the page at which the session stands; `form` holds what was filled in so far."""
    if session.state != Session.State.ACTIVE:
        return "listening/sessions/end.html", session_frame(session) | _end(session)
    form = form or form_of_step(session)
    values = session_frame(session) | {"form": form, "keeps_answers": session.step in KEEP_ANSWERS}
    values |= _of_step(session, form) | shown
    return f"listening/sessions/{session.step.replace('-', '_')}.html", values


def form_of_step(session: Session, data: Any = None) -> Any:
    """Return the form of the step at which the session stands, with what was filled in; None where there is none."""
    if session.step == Step.QUESTIONS:
        study = session.study
        languages = read_screening(study).native_languages
        return QuestionsForm(data, questions=list_questions(study), language=session.language, languages=languages)
    if session.step in {Step.SOUND, Step.HEADPHONES}:
        screening = read_screening(session.study)
        kind = pre_screening.next_check(session, screening) or pre_screening.list_checks(session, screening)[-1]
        unheard = () if data is None else pre_screening.list_unheard(session, kind, data.get("attempt", ""))
        return CheckForm(data, kind=kind, unheard=unheard)
    return ConsentForm(data) if session.step == Step.CONSENT else None


def preview_page(study: Study, language: str) -> dict[str, Any]:
    """Return what somebody may read who has not accepted the task yet: what it is about, and nothing to hear."""
    kinds = (StudyText.Kind.CONSENT, StudyText.Kind.ROLE_PLAY, StudyText.Kind.INSTRUCTIONS)
    found = [shown for kind in kinds if (shown := shown_text(study, kind, language)).body]
    return {"texts": found, "study": study, "facts": expected_effort(study)}


def _of_step(session: Session, form: Any) -> dict[str, Any]:
    if session.step == Step.CONSENT:
        return {
            "text": show_text(session, StudyText.Kind.CONSENT),
            "facts": expected_effort(session.study),
            "no_place": explain_no_place(session, read_clock()),
        }
    if session.step in {Step.SOUND, Step.HEADPHONES}:
        screening = read_screening(session.study)
        kinds, test = pre_screening.list_checks(session, screening), pre_screening.open_test(session, form.kind)
        sounds = [
            pre_screening.sound_names(session, test, place)[0] for place in pre_screening.CHECKS[form.kind].sounds
        ]
        return {
            "test": test,
            "attempts": pre_screening.attempts_at(form.kind, screening),
            "sounds": sounds,
            "rounds": list(zip(form.rounds, sounds, strict=False)),  # of the sound test one sound for all
            "place": kinds.index(form.kind) + 1,
            "tests": len(kinds),
        }
    if session.step == Step.ROLE_PLAY:
        kinds = (StudyText.Kind.ROLE_PLAY, StudyText.Kind.INSTRUCTIONS)
        return {"texts": [one for kind in kinds if (one := show_text(session, kind)).body]}
    return trial_context(session) if session.step == Step.TRIALS else {}


def _end(session: Session) -> dict[str, Any]:
    is_finished = session.state == Session.State.FINISHED
    answered = session.answers.values("trial").distinct().count()
    gave_nothing = session.state == Session.State.EXPIRED and not answered
    is_gone = session.state in {Session.State.WITHDRAWN, Session.State.SCREENED_OUT}
    return {
        "thanks": show_text(session, StudyText.Kind.THANKS) if is_finished else None,
        "end": describe_end(session),
        "way_back": platforms.way_back(session),
        "mturk": platforms.mturk_form(session),
        "may_start_again": may_start_again(session),
        "answered": answered,
        "has_withdrawal_code": not (is_gone or gave_nothing),
    }


def may_start_again(session: Session) -> bool:
    """Return whether somebody who lost their place may have another one, but under another submission."""
    is_newest = not session.participant.sessions.filter(pk__gt=session.pk, is_preview=False).exists()
    return is_newest and session.state == Session.State.EXPIRED and session.study.state == Study.State.OPEN


def trial_context(session: Session) -> dict[str, Any]:
    """Return the context of `listening/trials.html`, besides that of every page of an evaluator."""
    return form_context(session.study, session.language) | {
        "session": session,
        "addresses": {
            name.replace("-", "_"): reverse(f"listen:{name}", args=[session.token])
            for name in ("session", "answers", "alive", "take-over", "report")
        },
    }


def form_context(study: Study, language: str) -> dict[str, Any]:
    """Return what the page of a trial asks, in a language."""
    asked = study.asked
    module = next((MODULE_OF[one.kind] for one in asked if one.kind in MODULE_OF), "rating")
    is_switching = any(one.is_heard_in_parts for one in asked)
    has_players = study.form != Study.Form.LINKABILITY
    page = "switching" if is_switching else "players" if has_players else "trial"
    style = page if is_switching else module
    with_points = [one for one in asked if one.kind in (Kind.SCALE, Kind.CHOICE)]
    slots = slots_of_trial(study)
    return {
        "study": study,
        "questions": [_in_language(one, language) for one in asked],
        "most_points": max((one.ends[1] for one in with_points), default=0),
        "has_signs": any(one.ends[0] < 0 for one in with_points),
        "has_choices": any(one.kind == Kind.CHOICE for one in asked),
        "alone": [one.key for one in asked if one.screen == Screen.SINGLE],
        "slots": {slot: gettext("Reference") if slot == REFERENCE else slot.upper() for slot in slots},
        "rated_slots": [slot for slot in slots if slot.isdigit()],
        "has_both_ends": study.form == Study.Form.RATING and study.practice_trials > 1 and not study.is_crossed,
        "has_players": has_players,
        "is_switching": is_switching,
        "modules": [f"listening/{name}.js" for name in dict.fromkeys((*MODULES, page, module))],
        "form_module": f"listening/{module}.js",
        "page_module": f"listening/{page}.js",
        "form_template": f"listening/sessions/_{module}.html",
        "form_style": "" if style == "rating" else f"listening/{style}.css",
    }


def _in_language(asked: AskedQuestion, language: str) -> dict[str, Any]:
    """Return a question as its template shows it.

    What has a label for each answer stands in a column: points with the highest above, choices in their order.
    """
    words = asked.words(language)
    if asked.kind == Kind.SLIDER:
        return {"key": asked.key, "question": words.question, "hint": words.hint, "bands": words.labels}
    labels, (lowest, highest) = asked.labels(language), asked.ends
    is_choice = asked.kind == Kind.CHOICE
    is_column = is_choice or asked.has_label_for_each_point(language)
    points = [
        (point, "" if is_choice else _number(point, is_signed=lowest < 0), labels.get(point, ""))
        for point in range(lowest, highest + 1)
    ]
    return {
        "key": asked.key,
        "question": words.question,
        "hint": words.hint,
        "listen_again": "a" if asked.listen_again else "",
        "points": points[::-1] if is_column and not is_choice else points,
        "is_column": is_column,
    }


def _number(point: int, *, is_signed: bool) -> str:
    return f"{point:+d}".replace("-", "−") if is_signed and point else str(point)
