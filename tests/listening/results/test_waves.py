"""A test goes on in waves until the intervals of its main numbers are as narrow as wanted; no number is shown."""

import numpy as np
import pytest
from django.urls import reverse
from django.utils import timezone
from scipy.stats import t as student

from listening.app.models import Answer, Study
from listening.app.results.waves import end_waves, measure_half_width
from listening.app.studies.services import launch_study
from tests.listening.own_factories import make_own_prepared
from tests.listening.session_factories import make_finished_session
from tests.portal.factories import make_organizer

pytestmark = pytest.mark.django_db


def launch(**fields):
    organizer = make_organizer()
    study = make_own_prepared(organizer, **{"evaluators": 12, "half_width": 0.1, "most_evaluators": 16} | fields)
    launch_study(study=study, by=organizer, now=timezone.now())
    return Study.objects.get(pk=study.pk)


def rate_all(study):
    """Let everybody for whom there is a block rate: one person in three a point lower than the others."""
    for number in range(study.blocks.filter(is_finished=False).count()):
        make_finished_session(study, lambda *_, number=number: 4 - (number % 3 == 0))
    return Study.objects.get(pk=study.pk)


def make_rated():
    return rate_all(launch())


@pytest.fixture
def rated(once):
    """A launched test in which everybody of the first wave has rated."""
    return once(make_rated)


def blocks(study):
    return study.blocks.count()


def test_next_wave_begins_once_the_first_has_ended_and_is_not_precise_enough():
    study = launch()
    assert end_waves() == 0
    study = rate_all(study)
    assert end_waves() == 1
    study.refresh_from_db()
    assert blocks(study) == 12 + 3
    assert study.waves == [{"evaluators": 12, "blocks": 12, "half_width": measure_half_width(study)}]
    assert study.certificate["passes"]


def test_waves_stop_at_the_most_evaluators(rated):
    study = rated
    for expected in (15, 16, 16):
        end_waves()
        assert blocks(study) == expected
        study = rate_all(study)
    assert [wave["blocks"] for wave in study.waves] == [12, 15, 16]


def test_no_wave_follows_once_it_is_precise_enough():
    study = rate_all(launch(half_width=5.0))
    end_waves()
    assert end_waves() == 0
    assert blocks(study) == 12


def test_test_without_a_wanted_width_is_left_alone():
    study = rate_all(launch(half_width=None, most_evaluators=None))
    assert end_waves() == 0
    assert blocks(study) == 12


def test_width_is_half_of_the_widest_interval_of_a_condition(rated):
    by_listener = {}
    for session, rating in Answer.objects.filter(session__study=rated).values_list("session", "rating"):
        by_listener.setdefault(session, []).append(rating)
    means = np.array([np.mean(ratings) for ratings in by_listener.values()])
    # Items do not differ, so only listeners vary: the interval of the mean of their means, on 2 degrees (of 3 items).
    expected = student.ppf(0.975, 2) * means.std(ddof=1) / np.sqrt(len(means))
    assert measure_half_width(rated) == pytest.approx(expected, rel=1e-6)


def test_monitor_shows_the_width_reached_and_no_mean(rated, client):
    end_waves()
    client.force_login(rated.created_by)
    page = client.get(reverse("studies:monitor", args=[rated.name])).content.decode()
    [wave] = Study.objects.get(pk=rated.pk).waves
    assert f"With 12 evaluators the widest is ±&nbsp;{wave['half_width']:.3f}" in " ".join(page.split())
    assert "3.67" not in page


def test_most_evaluators_are_more_than_those_at_first(client):
    organizer = make_organizer()
    study = make_own_prepared(organizer)
    client.force_login(organizer)
    page = reverse("studies:edit", args=[study.name])
    form = client.get(page).context["form"]
    given = {name: value for name, value in form.initial.items() if value not in (None, [])} | {"half_width": "0.2"}
    reply = client.post(page, given | {"most_evaluators": study.evaluators})
    [error] = reply.context["form"].errors["most_evaluators"]
    assert error == "A wanted half width needs more evaluators at most than the 4 at first, found 4."
