"""What the monitor, its flags and the raw export say of comparisons, choices and sliders."""

import csv
import io

import numpy as np
import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from listening.app.models import Answer, PresentationSample
from listening.app.monitor.rules import Record, findings
from listening.app.monitor.selectors import measure_coverage
from listening.app.monitor.services import flag_sessions
from tests.listening.factories import make_session
from tests.listening.results.compared import compare, make_compared, make_comparing

pytestmark = pytest.mark.django_db
TASK = "preference"


def kinds(record):
    return set(findings(record))


def get(study, name, *more):
    client = Client()
    client.force_login(study.created_by)
    response = client.get(reverse(f"studies:{name}", args=[study.name, *more]))
    assert response.status_code == 200
    return response


def table(study, name):
    return list(csv.DictReader(io.StringIO(b"".join(get(study, "export-csv", name).streaming_content).decode())))


@pytest.mark.parametrize(
    ("task", "slots"),
    [("identity", "ab"), ("degradation", "a"), ("basic-audio-quality", "1234")],
)
def test_coverage_counts_every_condition_that_was_compared_and_no_reference(task, slots):
    study = make_compared([task], evaluators=3, items=2)
    expected = {}
    for sample in PresentationSample.objects.filter(presentation__study=study, slot__in=list(slots)):
        code = sample.stimulus.condition.code or "original"
        expected[code] = expected.get(code, 0) + 3
    coverage = measure_coverage(study)
    assert {row.name: (row.total.usable, row.total.planned) for row in coverage.rows} == {
        code: (count, count) for code, count in expected.items()
    }
    assert coverage.heard == coverage.items == study.presentations.count()


def test_choices_have_no_variance_and_no_patterns():
    choices = [1, 1, 1, 1, 1, 1, 1, 2] * 4
    assert kinds(Record(points={}, planned=len(choices), ratings={TASK: choices})) == set()
    assert kinds(Record(points={TASK: 10}, planned=len(choices), ratings={TASK: choices})) != set()


def test_session_that_chooses_one_label_throughout_is_flagged_for_that_alone():
    study = make_comparing(["emotion"], evaluators=1, items=3)
    session = compare(make_session(study), how=lambda *_: (2, {}))
    flag_sessions(timezone.now(), [session.pk])
    assert "straight-lining" in set(session.flags.values_list("kind", flat=True))
    assert not session.flags.filter(kind__in=["low-variance", "alternating"]).exists()


@pytest.mark.parametrize(("spread", "flagged"), [(0, {"straight-lining"}), (3, {"low-variance"}), (25, set())])
def test_sliders_that_hardly_move_are_flagged(spread, flagged):
    numbers = np.random.default_rng(4)
    study = make_comparing(["basic-audio-quality"], evaluators=1, items=8)

    def rate(_, heard):
        return None, {"ratings": {slot: int(numbers.normal(50, spread)) for slot in heard if slot != "r"}}

    session = compare(make_session(study), how=rate)
    flag_sessions(timezone.now(), [session.pk])
    patterns = {"straight-lining", "low-variance", "alternating"}
    assert patterns & set(session.flags.values_list("kind", flat=True)) == flagged


def test_export_tells_the_label_of_a_choice():
    study = make_compared(["preference"], evaluators=1, items=2)
    labels = {"1": "A", "2": "B", "3": "No preference"}
    rows = table(study, "answers")
    assert len(rows) == 12
    assert all(row["label"] == labels[row["rating"]] for row in rows)


def test_export_has_a_row_for_each_slider_with_its_condition():
    study = make_compared(["basic-audio-quality"], evaluators=2, items=2)
    expected = set()
    for answer in Answer.objects.select_related("trial"):
        heard = dict(answer.trial.presentation.samples.values_list("slot", "stimulus__condition__code"))
        for slot, rating in answer.data["ratings"].items():
            place = (str(answer.session_id), str(answer.trial.position), slot)
            expected.add((*place, heard[slot] or "original", str(rating)))
    rows = table(study, "sliders")
    assert {
        tuple(row[name] for name in ("session", "position", "slot", "system", "rating")) for row in rows
    } == expected
    assert len(rows) == len(expected) == 2 * 2 * 4


def test_export_of_an_open_test_tells_no_condition():
    study = make_compared(["basic-audio-quality"], evaluators=1, items=2, closed=False)
    rows = table(study, "sliders")
    assert {row["system"] for row in rows} == {""}
    assert all(row["item"].startswith("locked-") for row in rows)
