"""Pages of trainings of networks: list, form, a training with its curves and its card, its files, who sees what."""

import csv
import io
import json
import zipfile

import pytest
from django.core.files.storage import default_storage

from anonymization.app.models import NetworkTraining
from anonymization.app.network_training import services
from anonymization.app.network_training.selectors import find_change
from portal.challenges.models import Role
from portal.core.models import AuditEvent
from portal.jobs.models import Job
from tests.pages import read_page
from tests.portal.api.calls import Api
from tests.portal.factories import make_corpus, make_edition, make_operator, make_organizer, make_team, make_user
from tests.portal.network_trainings import LOSSES, add_training_set, make_material, make_network_training

pytestmark = pytest.mark.django_db
LIST = "/anonymizers/trainings/"
FORM = f"{LIST}new/tones/"


@pytest.fixture(autouse=True)
def ready(monkeypatch):
    monkeypatch.setattr(services, "find_missing", lambda **_: "")


@pytest.fixture
def organizer(client):
    client.force_login(make_organizer())
    return client


def asked(data_set, **changes):
    sets = {"data_sets": [data_set.pk], "recipe": "f0-regressor", "seeds": "3 1", "licence": "CC0", "changes": ""}
    return sets | changes


def errors_of(response):
    assert response.status_code == 422
    return {name: " ".join(found) for name, found in response.context["form"].errors.items()}


def test_form_starts_a_training_as_it_was_asked_for(organizer):
    data_set = make_material(licence="CC BY 4.0")
    page = read_page(organizer.get(FORM))
    for said in ("12 utterances · 3 speakers", "steps=600", "no worker has one now", 'value="CC BY 4.0"'):
        assert said in page
    answer = organizer.post(FORM, asked(data_set, changes="steps=8, batch=4"))
    training = NetworkTraining.objects.get()
    assert answer.headers["Location"] == training.get_absolute_url()
    assert (training.data_sets, training.licence) == (["tones_train"], "CC0")
    assert training.changes == {"steps": "8", "batch": "4"}
    assert [one.seed for one in training.seeds.all()] == [3, 1]
    first, second = Job.objects.order_by("created_at")
    assert (first.corpus, first.queue, second.after) == ("tones", "cpu", first)
    assert first.created_by == training.created_by is not None


def test_form_says_all_that_is_wrong_and_starts_nothing(organizer):
    data_set = make_material()
    trials = data_set.corpus.data_sets.filter(role=Role.TRIAL).first()
    silent = add_training_set(data_set.corpus, name="silent", audio=False)
    wrong = (
        ({"recipe": "huge"}, "recipe", "Choose a network of this list."),
        ({"data_sets": []}, "data_sets", "Choose at least one training set."),
        ({"data_sets": [trials.pk]}, "data_sets", "is for evaluation only"),
        ({"data_sets": [silent.pk]}, "data_sets", "silent has no audio"),
        ({"data_sets": [10**30]}, "data_sets", "Choose training sets of this list."),
        ({"seeds": "one"}, "seeds", "Seeds are whole numbers"),
        ({"seeds": "1 2 3 4 5 6"}, "seeds", "Give 1 to 5 different seeds"),
        ({"changes": "steps 5"}, "changes", "found “steps”. Expected NAME=VALUE, found “5”."),
        ({"changes": "steps=0 depth=2"}, "changes", "steps: expected at least 1, found 0. Expected a value of"),
        ({"changes": "steps=0 foo"}, "changes", "found “foo”. steps: expected at least 1, found 0."),
        ({"licence": "x" * 401}, "licence", "at most 400"),
    )
    for changes, field, said in wrong:
        assert said in errors_of(organizer.post(FORM, asked(data_set, **changes)))[field], changes
    together = errors_of(organizer.post(FORM, asked(data_set, seeds="x", changes="steps=none", data_sets=[])))
    assert set(together) == {"seeds", "changes", "data_sets"}
    assert not NetworkTraining.objects.exists()


def test_form_offers_decoders_of_trainings_that_one_may_see(organizer):
    data_set = make_material()
    assert "Whose content" not in read_page(organizer.get(FORM))
    [decoder] = make_network_training(make_material("speech").corpus, recipe="content-decoder").seeds.all()
    hidden = make_network_training(make_material("secret", is_shared=False).corpus, recipe="content-decoder")
    unfinished = make_network_training(data_set.corpus, recipe="content-decoder", state="failed")
    other = make_network_training(data_set.corpus)
    page = read_page(organizer.get(f"{FORM}?decoder={decoder.pk}"))
    assert f'<option value="{decoder.pk}" selected>{decoder}, on speech</option>' in page
    assert "Whose content f0-regressor, " in page
    for training in (hidden, unfinished, other):
        [seed] = training.seeds.all()
        assert f'<option value="{seed.pk}"' not in page
        answer = organizer.post(FORM, asked(data_set, decoder=seed.pk))
        assert errors_of(answer) == {"decoder": "Choose a decoder of this list."}
    answer = organizer.post(FORM, asked(data_set, decoder=decoder.pk, recipe="recognizer-map"))
    assert errors_of(answer) == {"decoder": "recognizer-map reads no decoder. Leave the one that ships."}
    organizer.post(FORM, asked(data_set, decoder=decoder.pk))
    training = NetworkTraining.objects.first()
    assert training.decoder == decoder
    assert AuditEvent.objects.get(action="network-training.started").data["decoder"] == str(decoder)
    again = organizer.get(f"{FORM}?like={training.pk}").context["form"]
    assert again["decoder"].value() == decoder.pk
    told = Api(make_organizer()).client.get("/api/network-trainings/").json()["results"]
    decoders = {one["id"]: one["decoder"] for one in told}
    assert decoders.pop(training.pk) == {"training": decoder.training_id, "seed": 1}
    assert set(decoders.values()) == {None}


def test_list_shows_trainings_of_corpora_that_one_may_see_at_one_count_of_queries(organizer, django_assert_num_queries):
    hidden = make_network_training(make_material("secret", is_shared=False).corpus)
    shown = [make_network_training(make_material().corpus, seeds=(1, 2))]
    with django_assert_num_queries(8):
        page = read_page(organizer.get(LIST))
    assert f'href="{shown[0].get_absolute_url()}"' in page
    assert "3.50" in page
    assert "secret" not in page
    assert hidden.get_absolute_url() not in page
    for state in ("failed", "waiting"):
        shown.append(make_network_training(shown[0].corpus, state=state))
    with django_assert_num_queries(8):
        table = organizer.get(LIST).context["listing"]
    assert [row.cells[3].badge for row in table.rows] == ["waiting", "failed", "succeeded"]
    assert [row.cells[2].text for row in table.rows] == ["0 of 1", "0 of 1", "2"]


def test_page_shows_curves_cards_and_files(organizer):
    training = make_network_training(seeds=(1, 2))
    response = organizer.get(training.get_absolute_url())
    page = read_page(response)
    assert [chart.title for chart in response.context["charts"]] == ["Error of F0", "Doubt of voicing"]
    assert len(response.context["charts"][0].lines) == 2
    rows = {row.cells[0].text: [cell.text for cell in row.cells[1:]] for row in response.context["cards"].rows}
    assert rows["F0 off by, semitones"] == ["3.50"] * 2
    assert rows["Correlation of F0"] == ["–"] * 2
    assert rows["Voicing errors, % of frames"] == ["12.5"] * 2
    assert "2 of 2 seeds trained." in page
    assert "of them nothing was learnt" in page
    job = training.seeds.get(seed=2).job
    assert f'href="{training.get_absolute_url()}">f0-regressor, training {training.pk}</a>, seed 2' in read_page(
        organizer.get(job.get_absolute_url())
    )
    assert "hx-get" not in page.partition("<main")[2]
    base = f"{training.get_absolute_url()}2/"
    assert json.loads(organizer.get(f"{base}card.json").content)["seed"] == 2
    told = csv.reader(io.StringIO(organizer.get(f"{base}losses.csv").content.decode()))
    assert list(told) == [[str(value) for value in row] for row in LOSSES]
    packed = organizer.get(f"{base}network.zip")
    with zipfile.ZipFile(io.BytesIO(b"".join(packed.streaming_content))) as found:
        assert set(found.namelist()) == {"weights.safetensors", "losses.csv", "card.json"}
        [seed] = training.seeds.filter(seed=2)
        with default_storage.open(seed.files["weights.safetensors"]) as stored:
            assert found.read("weights.safetensors") == stored.read()
    assert organizer.get(f"{training.get_absolute_url()}3/card.json").status_code == 404


def test_training_under_way_renews_itself_and_can_be_cancelled_and_continued(organizer):
    data_set = make_material()
    organizer.post(FORM, asked(data_set))
    training = NetworkTraining.objects.get()
    address = training.get_absolute_url()
    assert f'hx-get="{address}live"' in read_page(organizer.get(address))
    live = organizer.get(f"{address}live")
    assert "0 of 2 seeds trained." in read_page(live)
    assert organizer.get(f"{address}3/network.zip").status_code == 404
    assert organizer.post(f"{address}cancel").headers["Location"] == address
    assert {job.state for job in Job.objects.all()} == {"cancelled"}
    ended = organizer.get(f"{address}live")
    assert (ended.status_code, ended.headers["HX-Refresh"]) == (286, "true")
    assert "Continue the training" in read_page(organizer.get(address))
    organizer.post(f"{address}continue")
    assert {job.state for job in Job.objects.all()} == {"waiting"}
    again = organizer.post(f"{address}continue", follow=True)
    assert "Only a failed or cancelled run can be continued." in read_page(again)


def test_training_whose_speech_changed_leads_to_another_with_the_same_choices(organizer):
    data_set = make_material()
    add_training_set(data_set.corpus, name="more_train")
    organizer.post(FORM, asked(data_set, changes="steps=8"))
    training = NetworkTraining.objects.get()
    address, form = training.get_absolute_url(), f"{FORM}?like={training.pk}"
    training.begun_with = "of other speech"
    training.save()
    assert form not in read_page(organizer.get(address))
    organizer.post(f"{address}cancel")
    page = read_page(organizer.get(address))
    assert "Continue the training" not in page
    assert "has changed since this training began" in page
    assert f'href="{form}"' in page
    assert "has changed since this training began" in read_page(organizer.post(f"{address}continue", follow=True))
    job = training.seeds.first().job
    for other_failure in (True, False):
        page = read_page(organizer.get(job.get_absolute_url()))
        assert f'<a class="button" href="{form}">Start another training</a>' in page
        assert "Run again" not in page
        assert ("This job cannot run again" in page) is other_failure
        answer = read_page(organizer.post(f"{job.get_absolute_url()}again", follow=True))
        assert "One training cannot learn from both. Start another training." in answer
        Job.objects.filter(pk=job.pk).update(state="failed", failure=find_change(training))
    assert not Job.objects.exclude(state__in=("cancelled", "failed")).exists()
    shown = organizer.get(form).context["form"]
    given = {name: shown[name].value() for name in asked(data_set)}
    assert given == asked(data_set, changes="steps=8")
    for unknown in ("0", "x", "9" * 30, str(make_network_training(make_material("other").corpus).pk)):
        assert organizer.get(f"{FORM}?like={unknown}").context["form"]["seeds"].value() == "1"


def test_only_organizers_who_may_see_the_corpus_reach_a_training(client):
    owner = make_organizer()
    corpus = make_material(is_shared=False, created_by=owner).corpus
    training = make_network_training(corpus)
    address = training.get_absolute_url()
    reads = [
        address,
        f"{address}live",
        f"{address}1/card.json",
        f"{address}1/losses.csv",
        f"{address}1/network.zip",
        FORM,
    ]
    changing = [f"{address}cancel", f"{address}continue", FORM]
    member = make_team(make_edition(make_corpus("other"))).memberships.first()
    people = [make_user(), make_organizer(), make_operator(), *([member.user] if member else [])]
    for person in people:
        client.force_login(person)
        assert {client.get(one).status_code for one in reads} == {404}
        assert {client.post(one, asked(corpus.data_sets.get(role="training"))).status_code for one in changing} == {404}
    client.force_login(owner)
    assert {client.get(one).status_code for one in reads} == {200, 286}
    client.logout()
    assert {client.get(one).status_code for one in reads} == {302}
    assert NetworkTraining.objects.count() == 1


def test_api_lists_trainings_with_their_cards():
    owner = make_organizer()
    training = make_network_training(make_material(is_shared=False).corpus)
    shown = make_network_training(make_material("own", is_shared=False, created_by=owner).corpus, state="failed")
    [found] = Api(owner).client.get("/api/network-trainings/").json()["results"]
    assert (found["id"], found["corpus"], found["state"]) == (shown.pk, "own", "failed")
    training.corpus.created_by = owner
    training.corpus.save()
    _, found = Api(owner).client.get("/api/network-trainings/").json()["results"]
    [seed] = found["seeds"]
    assert (seed["losses"], seed["card"]["seed"], seed["job"]["state"]) == (LOSSES, 1, "succeeded")
