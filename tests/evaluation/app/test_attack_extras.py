"""Gender preservation and the inversion attack of an own attack: where people read them."""

import pytest

from evaluation.app.attacks.selectors import list_attacks
from tests.portal.attack_submissions import attack, make_unprotected_submission
from tests.portal.objective_runs import tones_edition

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("quick_figures", "few_resamples")]


def test_extra_that_few_speakers_do_not_allow_is_told_as_missing():
    submission = make_unprotected_submission(tones_edition(speakers=3))
    attack(submission)
    [found] = list_attacks(submission)
    told = {one.what: one.reason for one in found.missing if "tones_enrolls" in one.what}
    assert list(told) == ["Gender preservation of tones_enrolls"]
    assert "two or more speakers of each of two genders, found 2 of f, 1 of m" in told.popitem()[1]
    assert {one.metric for one in found.numbers if one.data_set == "tones_enrolls"} == {
        "inversion_recovery_rate",
        "inversion_chance",
    }
