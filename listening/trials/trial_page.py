"""What the page of the trials needs besides the trials themselves, which its script fetches.

The page is the same for every evaluator of a study, but for the addresses of the session: nothing of a trial is in it.
Public: `trial_context`, `Question`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from listening.models import Session, Study, Task

# Of every form; its own module, template and style come besides.
MODULES = ("words", "store", "connection", "queue", "clips", "player", "screen", "trial")
OF_FORM = {
    Study.Form.RATING: ("rating", "listening/_rating.html", ""),
    Study.Form.LINKABILITY: ("board", "listening/_board.html", "listening/board.css"),
    Study.Form.TRANSCRIPTION: ("transcription", "listening/_transcription.html", "listening/transcription.css"),
}


@dataclass(frozen=True)
class Question:
    """What is asked about a trial, and what the two ends of the scale mean. `listen_again`: slot to be heard anew."""

    task: str
    title: str | Promise
    hint: str | Promise
    lowest: str | Promise
    highest: str | Promise
    listen_again: str = ""


QUESTIONS = {
    Task.VERIFIABILITY: Question(
        "verifiability",
        _("Do A and B come from the same speaker?"),
        _("Judge the voice, not the words."),
        _("surely different speakers"),
        _("surely the same speaker"),
    ),
    Task.NATURALNESS: Question(
        "naturalness",
        _("How natural does A sound?"),
        _("Natural speech may have background noise. Judge the sound, not the words."),
        _("totally unnatural, severe degradation"),
        _("totally natural, no degradation"),
    ),
    Task.INTELLIGIBILITY: Question(
        "intelligibility",
        _("How well can you understand A?"),
        _("Listen to A again before you answer."),
        _("not understandable at all"),
        _("perfectly understandable"),
        listen_again="a",
    ),
}


def trial_context(session: Session) -> dict[str, Any]:
    """The context of `listening/trials.html`, besides that of every page of an evaluator."""
    study = session.study
    module, form_template, form_style = OF_FORM[Study.Form(study.form)]
    return {
        "session": session,
        "study": study,
        "questions": [QUESTIONS[Task(task)] for task in study.tasks if task in QUESTIONS],
        "points": range(1, study.scale_points + 1),
        "slots": ("A", "B") if Task.VERIFIABILITY in study.tasks else ("A",),
        "has_players": study.form != Study.Form.LINKABILITY,
        "modules": [f"listening/{name}.js" for name in (*MODULES, module)],
        "form_module": f"listening/{module}.js",
        "form_template": form_template,
        "form_style": form_style,
        "addresses": {
            name.replace("-", "_"): reverse(f"listen:{name}", args=[session.token])
            for name in ("session", "answers", "alive", "take-over", "report")
        },
    }
