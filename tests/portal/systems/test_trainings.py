"""Pages of trained attackers: the list, the form, the live page, the report, the files, and who sees what."""

import csv
import io
import json
import zipfile

import pytest
from django.core.files.storage import default_storage

from evaluation.app.attacks.stored_attackers import ENCODER_FILES, encoder_key
from evaluation.app.models import EvaluationRun
from evaluation.attackers.training.recipe import PRESETS, VARIANTS, with_variant
from portal.core.storage import replace_named
from tests.pages import read_page
from tests.portal.factories import make_organizer
from tests.portal.trainings import final_values, make_trained_on, make_training, needs_torch, training_set

pytestmark = pytest.mark.django_db
LIST = "/systems/b2-voices/trainings/"
FORM = f"{LIST}new/"


@pytest.fixture
def organizer(client):
    client.force_login(make_organizer())
    return client


@pytest.fixture
def submission():
    return make_trained_on()


def texts_of(table):
    """The headings and the texts of the rows."""
    rows = [[cell.text for cell in row.cells] for row in table.rows]
    return [[column.label for column in table.columns], *rows]


def page_of(run):
    return f"{LIST}{run.pk}/"


def measured(submission, **fields):
    """A finished training with a target classifier whose target error is above chance."""
    given = {"variant": "literal", "epochs": {1: 10, 2: 10}, "state": "succeeded"} | fields
    ended = {1: final_values(0.8, 0.97, 0.3), 2: final_values(0.9, 0.99, 0.5)}
    return make_training(submission, ended=ended, **given)


# The form ------------------------------------------------------------------------------------------


def asked(submission, **changes):
    sets = [training_set(submission).pk]
    return {"data_sets": sets, "preset": "small", "variant": "none", "seeds": "1, 2", "device": "cpu"} | changes


def errors_of(response):
    assert response.status_code == 422
    return " ".join(sentence for found in response.context["form"].errors.values() for sentence in found)


@needs_torch
def test_form_starts_a_training_as_it_was_asked_for(organizer, submission):
    answer = organizer.post(FORM, asked(submission, seeds="4 5,6", epochs="3"))
    run = EvaluationRun.objects.get()
    assert answer.headers["Location"] == page_of(run)
    assert (run.submission, run.parameters["seeds"], run.parameters["device"]) == (submission, [4, 5, 6], "cpu")
    recipe = PRESETS["small"].changed(epochs=3)
    assert run.parameters["recipe"] == json.loads(with_variant(recipe, "none").to_json())
    assert run.job.created_by is not None


@needs_torch
def test_form_says_what_is_wrong_and_starts_nothing(organizer, submission):
    wrong = (
        ({"seeds": "one"}, "Seeds are whole numbers from 0 on"),
        ({"seeds": "1, 1"}, "Give 1 to 10 different seeds"),
        ({"seeds": ""}, "Give 1 to 10 seeds, such as 1, 2, 3."),
        ({"preset": "huge"}, "Choose a recipe of this list."),
        ({"variant": "odd"}, "Choose a variant of this list."),
        ({"data_sets": []}, "Choose at least one training set."),
        ({"data_sets": [10**9]}, "Choose training sets of this list."),
        ({"device": "cloud"}, "Choose a place of this list."),
        ({"epochs": "0"}, "Give at least 1."),
        ({"epochs": "100000"}, "epochs: expected a number from 1 to 1000"),
    )
    answers = [(organizer.post(FORM, asked(submission, **changes)), sentence) for changes, sentence in wrong]
    assert [said for answer, said in answers if answer.status_code != 422 or said not in errors_of(answer)] == []
    assert EvaluationRun.objects.count() == 0


# One training --------------------------------------------------------------------------------------


def test_report_shows_the_probe_beside_the_target_error_and_warns(organizer, submission):
    run = measured(submission)
    response = organizer.get(page_of(run))
    page = read_page(response)
    assert "VER_T is above chance: that is anti-prediction, not removal" in page
    assert "A guess errs in 90.0 % of all cases." in page
    assert "A fresh probe finds more targets than VER_T suggests" in page
    assert texts_of(response.context["results"]) == [
        ["Evaluation", "VER_S", "VER_T", "Fresh probe of targets"],
        [VARIANTS["literal"].title.capitalize(), "85.0 ± 7.1", "98.0 ± 1.4", "40.0 ± 14.1"],
        ["A guess", "99.5", "90.0", "90.0"],
    ]
    assert '<td class="num" data-label="VER_T">98.0 ± 1.4</td>' in page
    assert "231 held-out segments of 231 speakers and 10 targets" in page


def test_numbers_are_there_as_files(organizer, submission):
    run = measured(submission)
    rows = list(csv.DictReader(io.StringIO(organizer.get(f"{page_of(run)}values.csv").content.decode())))
    assert len(rows) == 20
    assert (rows[0]["seed"], rows[0]["epoch"], float(rows[0]["source_error"])) == ("1", "1", pytest.approx(0.96))
    assert rows[0]["learning_rate"] == "0.001"
    found = organizer.get(f"{page_of(run)}values.json").json()
    assert found["report"]["target_probe"]["mean"] == pytest.approx(0.4)
    assert [one["final"]["source_error"] for one in found["seeds"]] == [0.8, 0.9]
    assert len(found["seeds"][0]["epochs"]) == 10
    assert found["recipe"]["target_head"] == "literal"


def test_attacker_is_an_archive_for_organizers_once_it_is_trained(organizer, submission):
    run = measured(submission)
    address = f"{page_of(run)}1/attacker.zip"
    for name in ENCODER_FILES:  # of a training of another test with this number
        default_storage.delete(encoder_key(run, 1, name))
    assert organizer.get(address).status_code == 404
    for name in ENCODER_FILES:
        replace_named(encoder_key(run, 1, name), name.encode())
    answer = organizer.get(address)
    with zipfile.ZipFile(io.BytesIO(b"".join(answer.streaming_content))) as archive:
        assert sorted(archive.namelist()) == sorted(ENCODER_FILES)
        assert archive.read("model.safetensors") == b"model.safetensors"
    assert organizer.get(f"{page_of(run)}7/attacker.zip").status_code == 404
