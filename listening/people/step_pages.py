"""What an evaluator's page shows: its template and its values, by the step and the state of the session."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.conf.locale import LANG_INFO
from django.forms import Form
from django.http import HttpRequest
from django.utils.translation.trans_real import parse_accept_lang_header

from listening import texts
from listening.models import Session, Study, StudyText
from listening.people import platforms, screening
from listening.people.step_forms import ConsentForm, HeadphoneForm, QuestionsForm, SoundForm
from listening.people.steps import questions_of, screening_of, steps_of

Step = Session.Step
Page = tuple[str, dict[str, Any]]


@dataclass(frozen=True)
class Language:
    """A language to choose; `address` where there is no session that could remember the choice."""

    code: str
    name: str
    is_current: bool
    address: str = ""


def languages_of(study_languages: Iterable[str], current: str, query: Any = None) -> list[Language]:
    """The languages on offer, by their own names; with the query of an address, an address for each."""
    found = []
    for code in study_languages:
        address = ""
        if query is not None:
            changed = query.copy()
            changed["lang"] = code
            address = f"?{changed.urlencode()}"
        found.append(Language(code, language_name(code), code == current, address))
    return found


def language_name(code: str) -> str:
    facts = LANG_INFO.get(code) or LANG_INFO.get(code.partition("-")[0]) or {}
    name = str(facts.get("name_local", code))
    return name[:1].upper() + name[1:]


def language_for(request: HttpRequest, offered: Iterable[str]) -> str:
    """The language that is asked for in the address, else by the browser, among those on offer; else the first."""
    on_offer = list(offered) or ["en"]
    if (wanted := request.GET.get("lang", "")) in on_offer:
        return wanted
    for accepted, _quality in parse_accept_lang_header(request.headers.get("Accept-Language", "")):
        for code in (accepted, accepted.partition("-")[0]):
            if code in on_offer:
                return code
    return on_offer[0]


def frame_of(session: Session) -> dict[str, Any]:
    """What every page of a session needs."""
    frame: dict[str, Any] = {
        "session": session,
        "languages": languages_of(session.study.languages, session.language),
    }
    steps = steps_of(session.study)
    if session.state == Session.State.ACTIVE and session.step in steps and session.step != Step.TRIALS:
        frame |= {"step_number": steps.index(Step(session.step)) + 1, "steps_total": len(steps)}
    return frame


def page_of(session: Session, form: Form | None = None, **shown: Any) -> Page:
    """Template and values of the page at which the session stands; `form` holds what was filled in wrongly."""
    if session.state != Session.State.ACTIVE:
        return "listening/end.html", frame_of(session) | _end(session)
    make = {
        Step.CONSENT: _consent,
        Step.QUESTIONS: _questions,
        Step.SOUND: _sound,
        Step.HEADPHONES: _headphones,
        Step.ROLE_PLAY: _role_play,
        Step.TRIALS: _trials,
    }[Step(session.step)]
    template, values = make(session, form)
    return template, frame_of(session) | values | shown


def questions_form(session: Session, data: Mapping[str, Any] | None) -> QuestionsForm:
    study = session.study
    return QuestionsForm(
        data,
        questions=questions_of(study),
        language=session.language,
        languages=screening_of(study).native_languages,
    )


def preview_page(study: Study, language: str) -> dict[str, Any]:
    """What somebody may read who has not accepted the task yet: what it is about, and nothing to hear."""
    kinds = (StudyText.Kind.CONSENT, StudyText.Kind.ROLE_PLAY, StudyText.Kind.INSTRUCTIONS)
    return {"texts": [shown for kind in kinds if (shown := texts.newest_text(study, kind, language)).body]}


def _consent(session: Session, form: Form | None) -> Page:
    shown = texts.show_text(session, StudyText.Kind.CONSENT)
    return "listening/consent.html", {"text": shown, "form": form or ConsentForm()}


def _questions(session: Session, form: Form | None) -> Page:
    return "listening/questions.html", {"form": form or questions_form(session, None)}


def _sound(session: Session, form: Form | None) -> Page:
    test = screening.open_test(session, screening.Kind.SOUND, screening_of(session.study))
    return "listening/sound.html", {"test": test, "form": form or SoundForm()}


def _headphones(session: Session, form: Form | None) -> Page:
    tests = screening_of(session.study)
    kind = screening.next_headphone_test(session, tests) or tests.headphone_tests[-1]
    test = screening.open_test(session, kind, tests)
    form = form if isinstance(form, HeadphoneForm) else HeadphoneForm()
    rounds = list(zip(form.rounds, test.sounds, strict=True))
    place, total = tests.headphone_tests.index(kind) + 1, len(tests.headphone_tests)
    return "listening/headphones.html", {"test": test, "form": form, "rounds": rounds, "place": place, "tests": total}


def _role_play(session: Session, form: Form | None) -> Page:  # noqa: ARG001
    kinds = (StudyText.Kind.ROLE_PLAY, StudyText.Kind.INSTRUCTIONS)
    return "listening/role_play.html", {
        "texts": [one for kind in kinds if (one := texts.show_text(session, kind)).body]
    }


def _trials(session: Session, form: Form | None) -> Page:  # noqa: ARG001
    from listening.trials.trial_page import trial_context

    return "listening/trials.html", trial_context(session)


def _end(session: Session) -> dict[str, Any]:
    is_finished = session.state == Session.State.FINISHED
    return {
        "thanks": texts.show_text(session, StudyText.Kind.THANKS) if is_finished else None,
        "way_back": platforms.way_back(session),
        "mturk": platforms.mturk_form(session),
        "may_start_again": session.state == Session.State.EXPIRED and session.study.state == Study.State.OPEN,
        "answered": session.answers.values("trial").distinct().count(),
    }
