"""Small launched tests of recordings of one's own that are compared: tones by condition, the original among them."""

from itertools import count

from django.utils import timezone

from listening.app.models import Study
from listening.app.studies.services import ask_questions
from listening.questions import list_slots, load_preset
from tests.listening.factories import original_of, store_stimulus

_number = count(1)
CODES = ("codec", "noisy")  # beside the original


def open_test(questions, **fields):
    """Return an open test of own recordings, of which there are none yet."""
    number = next(_number)
    defaults = {"name": f"comparing-{number}", "title": f"Comparing {number}", "state": Study.State.OPEN}
    defaults |= {"languages": ["en", "fr"], "certificate": {"passes": True}, "launched_at": timezone.now()}
    defaults |= dict.fromkeys(("originals_per_evaluator", "practice_trials", "gold_trials"), 0)
    study = Study.objects.create(**defaults | fields)
    ask_questions(study, questions)
    return study


def make_comparing_study(
    preset, *, trials=2, evaluators=2, seconds=None, codes=CODES, questions=None, make=store_stimulus, **fields
):
    """Return an open test that asks the questions of a preset about tones, `trials` of them in each block.

    The reference is the original; A, B and the numbered samples are the conditions in turn, X the same as A.

    Args:
        make: gives file, size and duration of a stimulus for its frequency in Hz and its length in s.
    """
    asked = questions or load_preset(preset).questions
    study = open_test(asked, evaluators=evaluators, trials_per_evaluator=trials, **fields)
    original = original_of(study)
    conditions = [original, *(study.conditions.create(code=code, kind="folder") for code in codes)]
    slots = list_slots(asked[0].screen, len(conditions))
    blocks = [study.blocks.create(number=number) for number in range(1, evaluators + 1)]
    for position in range(1, trials + 1):
        item = study.items.create(name=f"item{position}")
        stimuli = [
            study.stimulus_files.create(
                condition=one, item=item, source=f"absent/{one}", **make(200 + 40 * position + 100 * place, seconds)
            )
            for place, one in enumerate(conditions)
        ]
        presentation = study.presentations.create(key=f"trial-{position}", condition=original)
        rated = [slot for slot in slots if slot not in "rx"]
        for slot in reversed(slots):  # the order of the rows tells nothing
            place = 0 if slot == "r" else position + (rated.index(slot) if slot in rated else 0)
            presentation.samples.create(slot=slot, stimulus=stimuli[place % len(stimuli)])
        for block in blocks:
            block.trials.create(position=position, presentation=presentation)
    return study
