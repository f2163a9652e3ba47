"""A study and its design, the people who listen, what they answered, and the analyses of that.

Study ─ Question, StudyText, Condition, Item (what is said) ─ Stimulus (an item in a condition) · Presentation (what one
trial presents) · Block (the trials of one evaluator) ─ Trial (a presentation at its place) · Participant ─ Session ─
Answer, Play, Serve, ScreeningResult, SessionEvent · Flag, ExclusionRule ─ Exclusion · Analysis.
"""

from __future__ import annotations

from listening.app.models.participation import (
    Answer,
    Block,
    Exclusion,
    ExclusionRule,
    Flag,
    Participant,
    Play,
    ScreeningResult,
    Serve,
    Session,
    SessionEvent,
    read_withdrawal_code,
)
from listening.app.models.studies import (
    LOUDNESS,
    Analysis,
    Condition,
    Item,
    Presentation,
    PresentationSample,
    Question,
    Stimulus,
    Study,
    StudyText,
    Trial,
)

__all__ = [
    "LOUDNESS",
    "Analysis",
    "Answer",
    "Block",
    "Condition",
    "Exclusion",
    "ExclusionRule",
    "Flag",
    "Item",
    "Participant",
    "Play",
    "Presentation",
    "PresentationSample",
    "Question",
    "ScreeningResult",
    "Serve",
    "Session",
    "SessionEvent",
    "Stimulus",
    "Study",
    "StudyText",
    "Trial",
    "read_withdrawal_code",
]
