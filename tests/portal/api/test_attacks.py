"""Own attacks and recognition over the API: what there is, who starts and stops them, who reads their numbers."""

import pytest
from django.utils import timezone

from tests.portal.api.calls import Api
from tests.portal.attack_runs import make_attack_run, make_recognition_run
from tests.portal.attack_submissions import SPECTRUM
from tests.portal.factories import make_organizer, make_submission, make_team, make_team_system, make_user
from tests.portal.objective_runs import add_audio, tones_edition

pytestmark = pytest.mark.django_db


@pytest.fixture
def people():
    return {"organizer": make_organizer(), "owner": make_user(), "rival": make_user(), "stranger": make_user()}


@pytest.fixture
def submission(people):
    edition = tones_edition(speakers=4, organizers=[people["organizer"]])
    make_team(edition, owner=people["rival"])
    return add_audio(make_submission(make_team_system(make_team(edition, owner=people["owner"]))))


def publish(submission):
    submission.system.edition.published_at = timezone.now()
    submission.system.edition.save()


def test_organizer_starts_and_stops_an_attack_and_the_team_watches(submission, people):
    organizer, owner = Api(people["organizer"]), Api(people["owner"])
    path = f"submissions/{submission.pk}/attacks"
    answer = organizer.post(path, {"engine": SPECTRUM, "data_sets": ["tones_trials_m"]})
    assert answer.status_code == 201, answer.content
    run = answer.json()
    assert [job["kind"] for job in run["jobs"]] == ["vectors", "vectors", "attack"]
    assert (run["engine"]["name"], run["state"], run["finished_at"]) == (SPECTRUM, "waiting", None)
    assert owner.get(path).json()["results"] == [run]
    assert organizer.post(path, {"engine": SPECTRUM}).status_code == 409
    action = f"submissions/{submission.pk}/runs/{run['id']}"
    assert owner.post(f"{action}/cancel").status_code == 404
    stopped = organizer.post(f"{action}/cancel").json()
    assert {job["state"] for job in stopped["jobs"]} == {"cancelled"}
    assert organizer.post(f"{action}/cancel").status_code == 409
    assert {job["state"] for job in organizer.post(f"{action}/continue").json()["jobs"]} == {"waiting"}


@pytest.mark.parametrize(
    ("body", "status", "sentence"),
    [({"engine": SPECTRUM, "data_sets": ["nothing"]}, 409, "Expected trial sets among"), ({"seed": -1}, 400, "seed")],
)
def test_wishes_that_cannot_be_met_are_told(submission, people, body, status, sentence):
    answer = Api(people["organizer"]).post(f"submissions/{submission.pk}/attacks", body)
    assert answer.status_code == status
    assert sentence in answer.json()["detail"]


def test_numbers_are_seen_by_the_rule_of_objective_ones(submission, people):
    make_attack_run(submission, SPECTRUM, missing=[("A test", "a reason of its own")], with_files=False)
    make_recognition_run(submission)
    name = submission.system.name
    publish(submission)
    own = Api(people["owner"]).get(f"systems/{name}/attacks").json()["results"]
    public = Api().get(f"systems/{name}/attacks").json()["results"]
    assert [one["numbers"] for one in own] == [one["numbers"] for one in public]
    assert own[0]["missing"] == [{"what": "A test", "reason": "a reason of its own", "is_ranked": False}]
    assert "a reason of its own" not in str(public)
    assert Api().get(f"submissions/{submission.pk}/attacks").status_code == 401
    eers = {
        one["attack_model"]: one["value"]
        for one in public[0]["numbers"]
        if (one["metric"], one["estimator"], one["data_set"]) == ("eer", "kaldi", "tones_trials_f")
    }
    assert eers == {"unprotected": 1.0, "ignorant": 48.0, "lazy-informed": 35.0}
    [words] = Api().get(f"systems/{name}/recognitions").json()["results"]
    assert {(row["speech"], row["error_rate"]) for row in words["rows"]} == {("anonymised", 25.0), ("original", 5.0)}


def test_run_of_another_kind_or_submission_is_no_run_here(submission, people):
    run = make_attack_run(submission, SPECTRUM, state="running", with_files=False)
    other = make_submission(submission.system)
    organizer = Api(people["organizer"])
    assert organizer.post(f"submissions/{other.pk}/runs/{run.pk}/cancel").status_code == 404
    assert organizer.post(f"submissions/{submission.pk}/runs/{run.pk}/cancel").status_code == 200
