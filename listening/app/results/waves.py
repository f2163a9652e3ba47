"""Waves of a test of own recordings: further evaluators until its main numbers are precise enough.

A wave has ended when every block is finished. Then the widest 95 % interval of the main numbers is measured and kept:
of means, and of shares of wins and of right answers. Where it is wider than the organizer wants, the next wave begins,
with a quarter of the evaluators of the first. Only widths are looked at and shown, never a number itself: when a test
ends must not depend on which condition is ahead.
"""

from __future__ import annotations

from contextlib import suppress
from math import ceil

from django.db import transaction

from common.errors import NotPossible, ProblemsError
from listening.analysis.answers.choices import RIGHT
from listening.analysis.answers.pairs import MEAN_RATING, WINS
from listening.analysis.answers.scales import MEAN
from listening.analysis.answers.tables import make_answer_tables
from listening.analysis.reading.inputs import Settings
from listening.app.models import Study
from listening.app.results.inputs import collect_inputs, count_people
from listening.app.studies.designing import extend_design
from listening.app.studies.selectors import lock_study

PARTS = 4  # of the first wave, one of which is the next one
MAIN = (MEAN, MEAN_RATING, WINS, RIGHT)


def end_waves() -> int:
    """Measure every open test whose wave has ended since it was measured last, and return how many there were."""
    waiting = Study.objects.filter(state=Study.State.OPEN, half_width__gt=0).exclude(blocks__is_finished=False)
    return sum(_end_wave(study) for study in waiting)


def _end_wave(study: Study) -> bool:
    held = {"evaluators": count_people(study), "blocks": study.blocks.count()}
    if study.waves and held.items() <= study.waves[-1].items():
        return False
    width = measure_half_width(study)
    room = min(ceil(study.evaluators / PARTS), (study.most_evaluators or 0) - held["blocks"])
    with suppress(NotPossible, ProblemsError):  # paused or closed meanwhile, or another scheduler was first
        if room > 0 and (width is None or width > (study.half_width or 0)):
            extend_design(study, room, by=None)
        with transaction.atomic():
            now = lock_study(study, (Study.State.OPEN,), "extended")
            now.waves = [*now.waves, held | {"half_width": width}]
            now.save(update_fields=["waves"])
    return True


def measure_half_width(study: Study) -> float | None:
    """Return half of the widest interval of the main numbers; None where one of them has no interval yet."""
    inputs = collect_inputs(study)
    if inputs.answers is None:
        return None
    rows = make_answer_tables(inputs.answers, inputs.study.answered, Settings())[0].records()
    main = [row for row in rows if row["measure"] in MAIN]
    if not main or any(row["value_low"] is None for row in main):
        return None
    return max((float(row["value_high"]) - float(row["value_low"])) / 2 for row in main)
