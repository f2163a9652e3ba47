"""A study and its design, the people who listen, and what they answered.

Study ─ StudySystem, StudyText, Stimulus, Item (what is presented) · Block (the trials of one evaluator) ─ Trial
(an item at its place) · Participant ─ Session ─ Answer, Play, Serve, ScreeningResult, SessionEvent · Flag,
ExclusionRule ─ Exclusion · Analysis.
"""

from listening.models.analyses import Analysis
from listening.models.answers import Answer, Play, ScreeningResult, Serve, SessionEvent
from listening.models.people import Block, Exclusion, ExclusionRule, Flag, Participant, Session
from listening.models.studies import Item, ItemSample, Stimulus, Study, StudySystem, StudyText, Task, Trial

__all__ = [
    "Analysis",
    "Answer",
    "Block",
    "Exclusion",
    "ExclusionRule",
    "Flag",
    "Item",
    "ItemSample",
    "Participant",
    "Play",
    "ScreeningResult",
    "Serve",
    "Session",
    "SessionEvent",
    "Stimulus",
    "Study",
    "StudySystem",
    "StudyText",
    "Task",
    "Trial",
]
