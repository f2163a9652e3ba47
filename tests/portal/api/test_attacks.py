"""Own attacks and recognition over the API: what there is, who starts and stops them, who reads their numbers."""

import pytest
from django.utils import timezone

from evaluation.app.models import EvaluationRun
from evaluation.formats.results import AttackModel
from speech.encoders import registry
from speech.recognizers import registry as recognizers
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


def test_engines_are_listed_with_what_they_need(client):
    found = client.get("/api/engines/").json()["results"]
    known = {(one["kind"], one["name"]): one for one in found}
    wanted = {("attack", name) for name in registry.engines()} | {
        ("recognition", name) for name in recognizers.engines()
    }
    assert set(known) == wanted
    assert known["attack", SPECTRUM]["missing"] == ""
    assert [one["name"] for one in found if one["is_default"]] == [registry.DEFAULT, recognizers.DEFAULT]
    assert all(one["licence"] and one["description"] for one in found)


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
    [
        ({"engine": "nobody"}, 409, "Expected the name of an encoder"),
        ({"engine": SPECTRUM, "data_sets": ["nothing"]}, 409, "Expected trial sets among"),
        ({"trained": 999}, 409, "no training run 999"),
        ({"seed": -1}, 400, "seed"),
    ],
)
def test_wishes_that_cannot_be_met_are_told(submission, people, body, status, sentence):
    answer = Api(people["organizer"]).post(f"submissions/{submission.pk}/attacks", body)
    assert answer.status_code == status
    assert sentence in answer.json()["detail"]


def test_numbers_are_seen_by_the_rule_of_objective_ones(submission, people):
    make_attack_run(submission, SPECTRUM, missing=[("A test", "a reason of its own")], with_files=False)
    make_recognition_run(submission)
    name = submission.system.name
    for kind in ("attacks", "recognitions"):
        seen = {who: Api(user).get(f"systems/{name}/{kind}").status_code for who, user in people.items()}
        assert seen == {"organizer": 200, "owner": 200, "rival": 404, "stranger": 404}
        assert Api().get(f"systems/{name}/{kind}").status_code == 401
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


def test_trained_attacker_that_is_not_strong_enough_is_called_so_in_api_and_page(client, people, submission):
    training = EvaluationRun.objects.create(
        submission=submission, kind="training", recipe="x", parameters={"recipe": {}}
    )
    make_attack_run(submission)
    make_attack_run(submission, trained=training, eers={AttackModel.SEMI_INFORMED: (74.0, 70.0, 78.0)})
    publish(submission)
    name = submission.system.name
    frozen, trained = Api().get(f"systems/{name}/attacks").json()["results"]
    assert frozen["reliability"] == []
    first = trained["reliability"][0]
    assert (first["word"], first["data_set"]) == ("not reliable", "tones_trials_f")
    assert first["reasons"] == [
        "It is weaker than an attacker that was not trained on such speech: 74.0 % against 35.0 %."
    ]
    assert "its EER on its own training speakers" in first["unknown"]
    page = client.get(f"/systems/{name}/attacks/").content.decode()
    assert "is not reliable. It is weaker than an attacker that was not trained" in page
