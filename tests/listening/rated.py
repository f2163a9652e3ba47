"""What the studies of tests ask: questions of presets, by their keys."""

from dataclasses import replace

from listening.questions import list_presets

RATED = ("verifiability", "naturalness", "intelligibility")
ASKED = {one.key: one for preset in list_presets() for one in preset.questions}


def questions_of(tasks=RATED, points=None):
    """The questions with these keys, on scales of other points where they are given."""
    found = tuple(ASKED[task] for task in tasks)
    return tuple(replace(one, points=points) for one in found) if points else found
