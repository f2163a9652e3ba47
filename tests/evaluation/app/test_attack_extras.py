"""Gender preservation and the inversion attack of an own attack: where people read them."""

import csv
import io
import json

import pytest

from evaluation.app.attacks.selectors import list_attacks
from evaluation.formats.results import Gender, Speech
from evaluation.metrics.inversion import WORTH
from portal.core.labels import decimals
from tests.pages import read_page
from tests.portal.api.calls import Api
from tests.portal.attacking import attack, unprotected
from tests.portal.factories import make_organizer
from tests.portal.objective import tones_edition

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("quick_figures", "few_resamples")]

EXTRAS = {
    ("gender_preservation", "all", "anonymised"),
    ("gender_preservation", "f", "anonymised"),
    ("gender_preservation", "m", "anonymised"),
    ("gender_preservation", "all", "original"),
    ("inversion_recovery_rate", "all", "anonymised"),
    ("inversion_chance", "all", "anonymised"),
}


def test_extras_stand_on_page_files_and_api(client):
    organizer = make_organizer()
    submission = unprotected(tones_edition(speakers=8, organizers=[organizer]))
    attack(submission)
    [found] = list_attacks(submission)
    numbers = {one: number for one, number in found.numbers.items() if one.data_set == "tones_enrolls"}
    assert {(one.metric, str(one.gender), str(one.speech)) for one in numbers} == EXTRAS
    by_speech = {
        one.speech: number.value
        for one, number in numbers.items()
        if (one.metric, one.gender) == ("gender_preservation", Gender.ALL)
    }
    assert by_speech[Speech.ANONYMISED] == by_speech[Speech.ORIGINAL]  # the same recordings
    [recovered] = [number for one, number in numbers.items() if one.metric == "inversion_recovery_rate"]
    assert recovered.n == 32
    assert recovered.value > 75  # nothing was changed, so most lead back; a guess is right in a quarter
    assert [one for one in found.missing if "tones_enrolls" in one.what] == []

    client.force_login(organizer)
    address = f"/systems/{submission.system.name}/attacks/"
    page = client.get(address)
    [group] = page.context["extras"].groups
    [row] = group.rows
    assert group.head.text == "tones_enrolls"
    assert [cell.text for cell in row.cells][:2] == [found.engine.title, "32"]
    assert [cell.text for cell in row.cells][-2:] == [decimals(recovered.value, 1), "25.0"]
    assert WORTH in read_page(page)
    rows = csv.DictReader(io.StringIO(client.get(f"{address}numbers.csv").content.decode()))
    told = {(row["metric"], row["gender"], row["speech"]) for row in rows if row["data_set"] == "tones_enrolls"}
    listed = json.loads(client.get(f"{address}numbers.json").content)["numbers"]
    [by_api] = Api(organizer).get(f"systems/{submission.system.name}/attacks").json()["results"]
    assert told == {
        (one["metric"], one["gender"], one["speech"]) for one in listed if one["data_set"] == "tones_enrolls"
    }
    assert told == EXTRAS
    by_metric = {one["metric"] for one in by_api["numbers"] if one["data_set"] == "tones_enrolls"}
    assert by_metric == {metric for metric, _, _ in EXTRAS}


def test_extra_that_few_speakers_do_not_allow_is_told_as_missing():
    submission = unprotected(tones_edition(speakers=3))
    attack(submission)
    [found] = list_attacks(submission)
    told = {one.what: one.reason for one in found.missing if "tones_enrolls" in one.what}
    assert list(told) == ["Gender preservation of tones_enrolls"]
    assert "two or more speakers of each of two genders, found 2 of f, 1 of m" in told.popitem()[1]
    assert {one.metric for one in found.numbers if one.data_set == "tones_enrolls"} == {
        "inversion_recovery_rate",
        "inversion_chance",
    }
