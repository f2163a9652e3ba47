"""Studies from edition to launch: services, forms and pages as an organizer meets them."""

import re

import pytest
from django.core.exceptions import ValidationError
from django.urls import reverse
from django.utils import timezone

from listening.app.models import Study
from listening.app.studies import services, sizes
from listening.app.studies.designing import make_design
from listening.app.studies.forms import StudyForm
from listening.app.studies.pages import planner
from listening.app.studies.planning import judge_plan
from listening.app.studies.services import make_study
from portal.core.models import AuditEvent
from tests.listening.edition_factories import add_system, make_draft, make_edition_with_speech, make_prepared
from tests.listening.rated import questions_of
from tests.pages import read_page
from tests.portal.factories import make_organizer, make_team

pytestmark = pytest.mark.django_db


def page(name, study):
    return reverse(f"studies:{name}", args=[study.name])


def posted(study, **changes):
    """What a browser sends of the form of a study, with changes; None leaves a field out."""
    form = StudyForm(study=study)
    data = {name: form[name].value() for name in form.fields}
    data = {name: value for name, value in data.items() if value not in (None, False, "")}
    return {name: value for name, value in (data | changes).items() if value is not None}


def save(client, study, **changes):
    return client.post(page("edit", study), posted(study, **changes))


@pytest.fixture
def organizer(client):
    user = make_organizer()
    client.force_login(user)
    return user


@pytest.fixture
def edition(client, once):
    edition = once(make_edition_with_speech)
    client.force_login(edition.organizers.get())
    return edition


@pytest.fixture
def study(edition):
    return make_draft(edition)


def test_form_of_a_new_study_proposes_all_but_who_answers_for_it(client, edition):
    form = client.get(reverse("studies:new"), {"edition": edition.name}).context["form"]
    assert {name for name, field in form.fields.items() if getattr(field, "needed_for", "")} == {
        "responsible",
        "keep_months",
    }
    sent = {name: form[name].value() or "" for name in form.fields if name not in ("edition", "name")}
    assert (sent["title"], sent["size"], sent["keep_months"]) == (f"Listening test of {edition}", "small", 12)
    response = client.post(reverse("studies:new"), sent | {"edition": edition.pk, "responsible": "A university"})
    study = Study.objects.get()
    assert response.url == study.get_absolute_url()
    assert study.name == f"listening-test-of-{edition.title.lower().replace(' ', '-')}"
    assert (study.responsible, study.keep_months, study.contact) == ("A university", 12, edition.organizers.get().email)


def test_page_names_accepted_systems_that_a_study_leaves_out_before_its_launch(client, edition, study):
    add_system(edition, "T08-p1", state="refused")
    assert "that are not in this listening test" not in client.get(study.get_absolute_url()).content.decode()
    system = add_system(edition, "T09-p1").system
    system.team = make_team(edition)
    system.save()
    assert "T09-p1. <a" in read_page(client.get(study.get_absolute_url()))
    Study.objects.update(state="open")
    assert "that are not in this listening test" not in client.get(study.get_absolute_url()).content.decode()


def test_small_study_is_one_that_can_be_designed(organizer, monkeypatch):
    monkeypatch.setattr("listening.design.allocation._STEPS", 100)  # a search that ends without is the slow one
    edition = make_edition_with_speech(organizer=organizer, speakers=4, utterances=3)
    study = make_study(edition=edition, by=None, name="few", title="Few", preset="voiceprivacy-2022", size="small")
    assert judge_plan(study).problems == []
    assert make_design(study, None)["passes"]


def test_title_that_reads_as_another_studys_is_told_before_the_study_is_made(client, study):
    edition = study.edition
    asked = {"edition": edition.pk, "preset": "voiceprivacy-2022", "size": "small", "title": study.title.upper()}
    page = client.post(reverse("studies:new"), asked)
    assert (page.status_code, Study.objects.count()) == (422, 1)
    assert page.context["form"].errors["title"] == [
        f"The listening test {study.name} has this title. Choose another one."
    ]


def test_size_of_a_new_study_is_explained_by_what_was_found(client, organizer, monkeypatch):
    monkeypatch.setattr("listening.design.allocation._STEPS", 100)  # a search that ends without is the slow one
    edition = make_edition_with_speech(organizer=organizer, speakers=4, utterances=4)
    asked = {"edition": edition.pk, "title": "Few", "name": "few", "preset": "voiceprivacy-2022", "size": "small"}
    page = client.post(reverse("studies:new"), asked, follow=True).content.decode()
    study = Study.objects.get(name="few")
    largest = sizes.list_sizes(study.form, "small")[0]
    most = f"{largest['evaluators']} × {largest['trials_per_evaluator']}"
    assert f"{study.evaluators} evaluators × {study.trials_per_evaluator} trials; the preset has {most}." in page


def test_new_study_says_everything_that_is_wrong(client, edition, study):
    response = client.post(reverse("studies:new"), {"name": "A B"})
    assert response.status_code == 422
    text = response.content.decode()
    assert "Give the study a title." in text
    assert "Choose what evaluators are asked." in text
    taken = {"edition": edition.pk, "title": "A", "name": study.name, "preset": "voiceprivacy-2022", "size": "small"}
    assert f"Another study is called {study.name}." in client.post(reverse("studies:new"), taken).content.decode()


def test_edition_of_somebody_else_cannot_be_chosen(client, organizer):
    foreign = make_edition_with_speech()
    sent = {"edition": foreign.pk, "title": "A", "name": "a", "preset": "voiceprivacy-2022", "size": "small"}
    response = client.post(reverse("studies:new"), sent)
    assert response.status_code == 422
    assert not Study.objects.exists()


def test_change_of_another_editor_is_told_before_it_is_replaced(client, study):
    page = client.get(reverse("studies:edit", args=[study.name])).content.decode()
    seen = re.search(r'name="state_seen" value="([^"]*)"', page)[1]
    assert save(client, study, title="Title of the first", state_seen=seen).status_code == 302
    refused = save(client, study, title="Old title", state_seen=seen)
    assert refused.status_code == 422
    assert list(refused.context["form"].errors) == ["title"], "nothing else differs"
    assert "It is now “Title of the first”." in refused.content.decode()
    assert save(client, study, title="Title of the first", pay_per_hour="15.00", state_seen=seen).status_code == 302


def test_form_tells_every_problem_at_once(client, study):
    response = save(
        client,
        study,
        languages="english",
        gold_trials=20,
        originals_per_evaluator=9,
        own_questions="no answer",
        parameter_person="9",
    )
    assert response.status_code == 422
    text = response.content.decode()
    for sentence in (
        "Give a whole number from 0 to 12.",
        "Expected a code of a language such as en or fr, found english.",
        "Expected at most the 8 trials of an evaluator.",
        "Line 1: expected a question",
        "The parameter for the person: expected a name",
    ):
        assert sentence in text, sentence


def test_sets_that_no_list_compares_are_refused(client, study):
    other = make_edition_with_speech()
    other.corpus.data_sets.update(corpus=study.edition.corpus)
    other.corpus.utterances.update(corpus=study.edition.corpus)
    strange = study.edition.corpus.data_sets.exclude(pk__in=study.data_sets.all()).get(role="enrolment")
    mixed = [*study.data_sets.values_list("pk", flat=True), strange.pk]
    response = save(client, study, data_sets=mixed)
    assert response.status_code == 422
    assert "Choose the data sets of one subset." in response.content.decode()


def test_change_of_the_plan_takes_the_design_away(client, edition):
    study = make_prepared(edition)
    assert save(client, study, evaluators=5).status_code == 302
    study.refresh_from_db()
    assert (study.state, study.certificate, study.is_designed) == (Study.State.DRAFT, {}, False)
    assert not study.blocks.exists()
    assert not study.presentations.exists()


def test_change_of_systems_takes_the_design_and_only_their_recordings_away(client, edition):
    study = make_prepared(edition)
    kept, gone = study.systems.all()
    originals = study.stimulus_files.filter(condition__code="").count()
    assert save(client, study, systems=[kept.submission_id]).status_code == 302
    assert list(study.systems.all()) == [kept]
    assert study.stimulus_files.filter(condition__code="").count() == originals
    assert not study.stimulus_files.filter(condition=gone.pk).exists()
    assert not study.blocks.exists()


def test_plan_is_fixed_after_the_launch(client, edition):
    study = make_prepared(edition)
    services.launch_study(study=study, by=None, now=timezone.now())
    study.refresh_from_db()
    assert save(client, study, title="Other", seed=7).status_code == 302
    study.refresh_from_db()
    assert (study.title, study.seed) == ("Other", 2022)
    with pytest.raises(ValidationError, match="fixed since the launch"):
        services.change_study(study=study, by=None, seed=7)


def test_texts_keep_their_history(client, study):
    address = f"{page('texts', study)}?kind=consent&language=fr"
    assert "<h3>Avant de commencer</h3>" in client.get(address).content.decode()  # below “As evaluators read it”
    before = study.texts.get(kind="consent", language="fr")
    sent = {"consent-fr-kind": "consent", "consent-fr-language": "fr", "consent-fr-text": "Vous pouvez arrêter."}
    assert client.post(address, sent).status_code == 302
    assert client.post(address, sent).status_code == 302  # the same again is no new version
    versions = study.texts.filter(kind="consent", language="fr")
    assert [(one.version, one.text) for one in versions] == [(2, "Vous pouvez arrêter."), (1, before.text)]
    text = client.get(address).content.decode()
    assert "Version 2" in text
    assert AuditEvent.objects.filter(action="study.text_changed").count() == 1


def test_instructions_follow_the_questions_until_somebody_writes_them(study):
    first = services.newest_text(study, "instructions", "en")
    services.change_questions(study=study, by=None, questions=questions_of(points=5))
    second = services.newest_text(study, "instructions", "en")
    assert (first.version, second.version) == (1, 2)
    services.change_text(study=study, kind="instructions", language="en", text="My own.", by=None)
    services.change_questions(study=study, by=None, questions=questions_of(points=7))
    third = services.newest_text(study, "instructions", "en")
    assert third.text == "My own."


def test_texts_of_a_language_that_ships_none_are_the_organizers_to_write(client, edition, study):
    services.change_study(study=study, by=None, languages=["en", "de"])
    assert not study.texts.filter(language="de").exists()
    shown = client.get(f"{page('texts', study)}?kind=thanks&language=de").content.decode()
    assert "Nothing is written in German yet." in shown
    with pytest.raises(ValidationError) as refused:
        services.launch_study(study=make_prepared(edition, languages=["en", "de"]), by=None, now=timezone.now())
    told = " ".join(refused.value.messages)
    assert "The text “consent” is empty in the language de." in told
    assert "The question “naturalness” is not written in the language de." in told
    services.change_text(study=study, kind="thanks", language="de", text="Vielen Dank.", by=None)
    assert "Vielen Dank." in client.get(f"{page('texts', study)}?kind=thanks&language=de").content.decode()


def test_preview_of_a_draft_is_refused_with_a_sentence(client, study):
    response = client.post(page("preview", study))
    assert response.status_code == 409
    assert "A study of the state “draft” cannot be listened to." in response.content.decode().replace("&#x27;", "'")


def test_launched_study_shows_its_link(client, edition):
    study = make_prepared(edition)
    assert client.post(page("launch", study)).status_code == 302
    text = client.get(study.get_absolute_url()).content.decode()
    assert f"http://testserver/listen/join/{study.link_key}/" in text
    Study.objects.update(platform="prolific")
    text = client.get(study.get_absolute_url()).content.decode()
    assert "?PROLIFIC_PID={{%PROLIFIC_PID%}}&amp;STUDY_ID={{%STUDY_ID%}}" in text


def test_planner_tells_of_the_numbers_in_the_form(client, study):
    few = read_page(client.get(page("planner", study), posted(study)))
    assert "There are enough recordings for this plan." in few
    rows = re.findall(r'<th scope="row">([^<]+)</th><td class="num" data-label="Ratings">(\d+)</td>', few)
    assert rows == [("T01-p1", "8"), ("T02-p1", "8")]
    assert "± " not in few
    enough = read_page(client.get(page("planner", study), posted(study, evaluators=10)))
    assert "over ± 25" in enough
    many = read_page(client.get(page("planner", study), posted(study, evaluators=900, trials_per_evaluator=200)))
    assert "No design is possible for this plan" in many
    wrong = client.get(page("planner", study), posted(study, evaluators="many"))
    assert (wrong.status_code, "Give a whole number from 1 to 1000." in read_page(wrong)) == (200, True)


def test_planner_gives_the_interval_hours_and_cost_of_2022(study):
    study.evaluators, study.trials_per_evaluator, study.originals_per_evaluator = 52, 52, 26
    study.practice_trials = study.gold_trials = study.bridge_trials = 0
    shown = planner(study, StudyForm(study=study))
    # 676 ratings of each of two systems: 338 pairs a class, 3.7 points for independent ratings, 1.3 times that here
    heads = [column.heading for column in shown["precision"].columns]
    cells = [cell.text for cell in shown["precision"].rows[0].cells]
    assert (cells[1], heads[2]) == ("676", "EER of verifiability, points")
    width = cells[2]
    assert 4.3 < float(width.removeprefix("± ")) < 5.2
    seconds = 3 * 0.6 + 3 * 4  # A, B, and A again; three answers
    hours = 52 * (6 + 52 * seconds / 60) / 60
    assert [one["value"] for one in shown["stats"]] == [f"{60 * hours / 52:.0f}", f"{hours:.1f}", f"{12 * hours:,.0f}"]
    study.pay_per_hour = 0
    assert planner(study, StudyForm(study=study))["stats"][-1] == {"label": "Pay", "value": "unpaid"}


def test_extension_page_adds_blocks(client, edition):
    study = make_prepared(edition)
    assert "only a launched study" in client.get(page("extend", study)).content.decode()
    assert client.post(page("extend", study), {"blocks": 2}).status_code == 422
    services.launch_study(study=study, by=None, now=timezone.now())
    assert client.post(page("extend", study), {"blocks": 2}).status_code == 302
    assert study.blocks.count() == 6
    assert "4, and 2 added" in client.get(study.get_absolute_url()).content.decode()


def test_new_study_of_pairs_is_made_with_what_it_compares_and_its_unscored_trials(client, organizer):
    edition = make_edition_with_speech(systems=3, organizer=organizer)
    client.force_login(organizer)
    told = {"edition": edition.pk, "title": "Pairs", "preset": "ccr", "size": "small", "against": "T01-p1"}
    page = client.post("/studies/new/", told | {"practice_trials": 1, "gold_trials": 1})
    assert page.status_code == 302, page.context["form"].errors
    study = Study.objects.get(title="Pairs")
    assert (study.against, study.practice_trials, study.gold_trials) == ("T01-p1", 1, 1)
    wrong = client.post("/studies/new/", told | {"title": "Single", "preset": "mos"})
    assert wrong.context["form"].errors == {
        "against": ["Only AB, CCR and ABX compare with one condition alone: leave it out."]
    }
