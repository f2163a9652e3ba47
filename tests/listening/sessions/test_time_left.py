"""The time left follows from the form, the sound that is still to be heard, and the evaluator's own pace."""

import random
from math import prod
from types import SimpleNamespace

import pytest
from django.utils import timezone

from listening.app.models import Stimulus
from listening.app.sessions.selectors import describe_state, load_block
from tests.listening.factories import make_session, make_study
from tests.listening.form_factories import make_board_study, make_transcription_study

pytestmark = pytest.mark.django_db
FORMS = {
    "ratings": lambda: make_study(trials=20),
    "ratings on pages": lambda: make_study(trials=20, pages="separate"),
    "voice map": lambda: make_board_study(boards=4, samples=6),
    "transcription": lambda: make_transcription_study(trials=9),
}
LENGTHS = {"ratings": (2, 12), "ratings on pages": (2, 12), "voice map": (2, 5), "transcription": (3, 15)}


def shown_s(effort):
    """As `timeLeft_s` of the page computes it from what the portal tells."""
    bounded = [min(3, max(1 / 3, pace)) for pace in effort["paces"]]
    return effort["left_s"] * prod(bounded) ** (1 / (len(bounded) + 0.5))


def true_s(form, planned, person):
    """How long somebody takes: hears, thinks, writes or moves; not by the formula of the estimate."""
    lengths = [sample.seconds for sample in planned.samples]
    chance = person.chance.uniform(0.8, 1.25)
    if form == "voice map":
        return chance * person.slowness * (sum(lengths) * 3.5 + 5 * len(lengths))
    if form == "transcription":
        return chance * person.slowness * (sum(lengths) * 2.2 + 16)
    return chance * (sum(lengths) * 1.3 + person.slowness * 4 * len(planned.tasks))


@pytest.mark.parametrize("slowness", [0.6, 1.0, 2.0])
@pytest.mark.parametrize("form", FORMS)
def test_criterion_29_time_left_is_within_thirty_percent_at_half_way(form, slowness):
    person = SimpleNamespace(slowness=slowness, chance=random.Random(29))
    study = FORMS[form]()
    for one in study.stimulus_files.all():
        Stimulus.objects.filter(pk=one.pk).update(duration_s=person.chance.uniform(*LENGTHS[form]), facts={})
    session = make_session(study)
    trials = list(load_block(session).trials.values())
    half = len(trials) // 2
    for planned in trials[:half]:
        seconds = true_s(form, planned, person)
        share = len(planned.tasks) if form == "ratings on pages" else 1
        for task in planned.tasks:
            session.answers.create(
                trial=planned.trial, task=task, received_at=timezone.now(), client_ms=int(1000 * seconds / share)
            )
    truth = sum(true_s(form, planned, person) for planned in trials[half:])
    shown = shown_s(describe_state(session, timezone.now())["effort"])
    assert abs(shown - truth) <= 0.3 * truth, (shown, truth)


def test_time_left_follows_the_person_with_each_trial_and_an_interruption_little():
    session = make_session(make_study(trials=6))
    first, untimed, *others = load_block(session).trials.values()
    shown = [shown_s(describe_state(session, timezone.now())["effort"])]
    for planned, ms in ((first, 3_600_000), (untimed, None), *((one, 27_600) for one in others[:3])):
        for task in planned.tasks:
            session.answers.create(trial=planned.trial, task=task, rating=5, received_at=timezone.now(), client_ms=ms)
        shown.append(shown_s(describe_state(session, timezone.now())["effort"]))
    paces = [1, 3 ** (1 / 1.5), 3 ** (1 / 1.5), 6 ** (1 / 2.5), 12 ** (1 / 3.5), 24 ** (1 / 4.5)]
    assert shown == pytest.approx([13.8 * left * pace for left, pace in zip((6, 5, 4, 3, 2, 1), paces, strict=True)])
