"""The form of a new challenge: what is proposed from a corpus, what is kept on the way, and all faults at once."""

import re
from urllib.parse import urlencode

import pytest
from django.utils.html import strip_tags

from evaluation.protocols.evaluation_table import Evaluation
from portal.challenges.models import Corpus, Edition
from portal.core.labels import Missing
from portal.core.models import AuditEvent
from portal.editions import selectors
from portal.editions.selectors import EngineOffer
from portal.jobs.models import Job
from tests.portal.factories import make_corpus, make_job, make_organizer

pytestmark = pytest.mark.django_db
ATTACKERS = {"ge2e": "GE2E", "long-term-spectrum": "Long-term spectrum"}


@pytest.fixture(autouse=True)
def engines(monkeypatch):
    """What runs here is the same on every machine of a test."""
    lacking = [Missing(["WeSpeaker"], "its file is missing")]
    offers = {
        "offer_attackers": EngineOffer(ATTACKERS, lacking),
        "offer_recognizers": EngineOffer({"whisper-base": "Whisper base"}, (), {"whisper-base": ("en",)}),
        "offer_trainings": EngineOffer({"small": "Small"}),
    }
    for name, offer in offers.items():
        monkeypatch.setattr(selectors, name, lambda offer=offer: offer)
        monkeypatch.setattr(f"portal.editions.new_challenge.forms.{name}", lambda offer=offer: offer)


@pytest.fixture
def organizer(client):
    organizer = make_organizer()
    client.force_login(organizer)
    return organizer


@pytest.fixture
def corpus():
    return make_corpus(speakers=4)


def address(corpus="tones", protocol="proposed"):
    return f"/editions/new/?{urlencode({'corpus': corpus, 'protocol': protocol})}"


def shown(client, **changes):
    """What the form of a corpus sends where nothing but this is changed; None leaves a field out."""
    form = client.get(address()).context["form"]
    values = {field.html_name: field.value() for field in form} | changes
    return {name: value for name, value in values.items() if value not in (None, False)}


def test_only_the_title_has_to_be_typed(client, organizer, corpus):
    assert client.post("/editions/new/", shown(client, title="Voices of Örebro, 2030!")).status_code == 302
    edition = Edition.objects.get()
    assert (edition.name, edition.corpus, edition.protocol) == ("voices-of-orebro-2030", corpus, "")
    assert (edition.audio_required, edition.scores_required, edition.is_listed) == (True, False, False)
    recipe = edition.recipe
    assert (recipe.edition, recipe.title) == ("voices-of-orebro-2030", "Voices of Örebro, 2030!")
    assert recipe.evaluation == Evaluation("portal", ("ge2e",), "whisper-base")
    one = recipe.data_sets["tones_trials_f"]
    assert (one.gender, one.utterances, one.speakers, one.targets, one.nontargets) == ("f", 4, 2, 4, 4)
    assert recipe.data_sets["tones_asr"].parts == ("tones_trials_f", "tones_trials_m")
    assert [one.metric for one in recipe.track.ranking.utilities] == ["wer"]
    assert AuditEvent.objects.get(action="edition.created").actor == organizer


def test_choices_make_the_recipe(client, organizer, corpus):
    sent = shown(
        client,
        title="Mine",
        utilities=["pitch_correlation"],
        ranked_by=["pitch_correlation"],
        by="both",
        attacker="long-term-spectrum",
        further=["ge2e"],
        recognizer="none",
        minimum_eers="0; 12.5 25 %",
        minimum_pitch="",
        weight__tones_trials_f="3",
    )
    assert client.post("/editions/new/", sent).status_code == 302
    edition = Edition.objects.get()
    recipe, track = edition.recipe, edition.recipe.track
    assert edition.scores_required
    assert recipe.evaluation == Evaluation("both", ("long-term-spectrum", "ge2e"))
    assert dict(track.average("eer").weights["test"]) == {"tones_trials_f": 0.75, "tones_trials_m": 0.25}
    assert (track.ranking.minimum_eers, track.ranking.gates) == ((0, 12.5, 25), ())
    assert [rule.key for rule in recipe.metrics if rule.primary] == ["eer", "pitch_correlation"]


def test_all_faults_are_told_at_once_and_nothing_is_stored(client, organizer, corpus):
    sent = shown(
        client,
        title="",
        name="Not A Name",
        data_sets=None,
        ranked_by=["wer"],
        utilities=["pitch_correlation"],
        minimum_eers="40, 10",
        minimum_pitch="7",
        language="english",
        organizers="nobody@nowhere.example",
        submissions_open_at="2026-12-02T12:00",
        submissions_close_at="2026-12-01T12:00",
    )
    before = AuditEvent.objects.count()
    response = client.post("/editions/new/", sent)
    assert response.status_code == 422
    faults = {"title", "name", "data_sets", "ranked_by", "minimum_eers", "minimum_pitch", "language"}
    assert set(response.context["form"].errors) == faults | {"organizers", "submissions_close_at"}
    page = response.content.decode()
    named = re.findall(r'<li><a href="#(id_[a-z_]+)', page)
    assert len(named) == len(response.context["form"].errors)
    assert named == sorted(named, key=lambda one: page.index(f' id="{one}"'))
    assert (Edition.objects.count(), AuditEvent.objects.count()) == (0, before)


@pytest.mark.parametrize(
    ("changes", "field", "said"),
    [
        ({"recognizer": "none"}, "recognizer", "remove the word error rate"),
        ({"language": "de"}, "recognizer", "the language of the speech is de"),
        ({"weight__tones_trials_f": "0", "weight__tones_trials_m": "0"}, "weight__tones_trials_f", "above 0"),
    ],
)
def test_choices_that_do_not_fit_together_are_told(client, organizer, corpus, changes, field, said):
    response = client.post("/editions/new/", shown(client, title="Mine", **changes))
    assert response.status_code == 422
    assert said in response.context["form"].errors[field][0]
    assert not Edition.objects.exists()


def test_rules_are_shown_for_what_was_chosen_and_nothing_is_stored(client, organizer, corpus):
    response = client.post("/editions/new/", shown(client, minimum_eers="7", preview="on"))
    assert (response.status_code, response.context["form"].errors) == (200, {})
    assert "minimum_eers = [7]" in response.context["form"].made_recipe
    assert "at least its limit (7 %)" in response.content.decode()
    assert not Edition.objects.exists()


@pytest.mark.parametrize(
    ("corpus_name", "protocol", "said"),
    [
        ("tones", "2022", "holds none of the 17"),
        ("bare", "proposed", "Nothing can be evaluated on bare. It has no trial set."),
    ],
)
def test_rules_that_do_not_fit_the_speech_are_refused_at_the_first_step(
    client, organizer, corpus, corpus_name, protocol, said
):
    Corpus.objects.create(name="bare", layout="manifest", source="/speech", is_shared=True)
    page = client.get(address(corpus_name, protocol))
    assert page.status_code == 422
    assert said in page.context["form"].errors["corpus"][0]
    sent = shown(client, title="Mine") | {"corpus": corpus_name, "protocol": protocol}
    assert "corpus" in client.post("/editions/new/", sent).context["form"].errors
    assert not Edition.objects.exists()


def test_shipped_rules_ask_for_a_track_where_there_are_several(client, organizer):
    form = client.get(address("", "2026")).context["form"]
    assert [str(option.data["value"]) for option in form["track"]] == ["track1", "track2"]
    assert "track" not in client.get(address("", "2022")).context["form"].fields
    sent = {"title": "Two", "protocol": "2026", "corpus": "", "track": "track2", "organizers": organizer.email}
    sent |= {"submissions_per_team": 5, "largest_archive_gb": 1}
    assert client.post("/editions/new/", sent).status_code == 302
    assert (Edition.objects.get().track, Edition.objects.get().name) == ("track2", "two")
    page = " ".join(strip_tags(client.get("/editions/two/").content.decode()).split())
    assert "trial, test, mixed genders, Spanish" in page
    assert "Surprise languages, measured and in no average: Chinese, Japanese." in page
    assert "emotion, test" in page
    assert "emotion, test, English" not in page  # nobody says its language
    assert "libri_" not in page  # those are of the other track
    assert "tracks.track1" not in page


def test_import_on_the_way_comes_back_to_the_form(client, organizer, tmp_path, settings):
    settings.IMPORT_ROOTS = [tmp_path]
    (tmp_path / "speech").mkdir()
    sent = {"folder": str(tmp_path / "speech"), "name": "fresh", "next": "challenge"}
    assert client.post("/corpora/import/", sent).url == "/editions/new/?corpus=fresh"
    page = client.get("/editions/new/?corpus=fresh").content.decode()
    assert "Import of fresh" in page
    assert 'hx-trigger="every 3s"' in page
    Job.objects.update(state="failed", failure="No layout was found.")
    page = client.get("/editions/new/?corpus=fresh").content.decode()
    assert ("No layout was found." in page, "hx-trigger" in page) == (True, False)
    make_job(kind="import-corpus", parameters={"name": "other"}, created_by=make_organizer())
    assert "Import of other" not in client.get("/editions/new/?corpus=other").content.decode()


def test_unknown_corpus_of_the_address_is_named(client, organizer, corpus):
    assert "no corpus “robots”" in client.get("/editions/new/?corpus=robots").content.decode()
    assert "no corpus" not in client.get(f"/editions/new/?corpus={corpus.name}").content.decode()
