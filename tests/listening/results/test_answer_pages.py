"""The results page of comparisons and choices: sentences, figures and tables of each question, with their numbers."""

import re

import pytest
from django.core.files.storage import default_storage
from django.template.loader import render_to_string
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from listening.app.models import Answer, Play
from listening.app.results.inputs import collect_inputs, session_key
from listening.app.results.selectors import parsed_results
from listening.app.results.services import publish_results, write_flags
from listening.app.withdrawal.services import withdraw
from listening.questions import load_preset
from tests.listening.results.answered import make_answered
from tests.listening.results.compared import analyse_compared, make_compared

pytestmark = pytest.mark.django_db


def analysed(tasks=("preference",), **fields):
    study = make_compared(tasks, **fields)
    analyse_compared(study)
    return study


def address(study, name="results", *parts):
    return reverse(f"studies:{name}", args=[study.name, *parts])


def client_of(study):
    client = Client()
    client.force_login(study.created_by)
    return client


def words_of(response):
    return " ".join(re.sub("<[^>]+>", " ", response.content.decode()).split())


def page_of(study):
    response = client_of(study).get(address(study))
    assert response.status_code == 200
    return response


def section_of(study):
    [section] = page_of(study).context["page"]["answered"]
    return section


def sentences_of(section):
    said = render_to_string("listening/results/_answer_sentences.html", {"said": section["said"]})
    return re.split(r"(?<=\.) ", re.sub(r"[ \n]+", " ", said).strip())


def section_of_answers(study):
    """The section of a study whose answers are analysed as they are now."""
    study.analyses.all().delete()
    analyse_compared(study)
    return section_of(study)


def estimate(study, **equal):
    [row] = parsed_results(study.analyses.get().results).records("common", "estimates", **equal)
    return row


def test_the_condition_that_won_stands_first_whatever_its_name():
    study = make_compared(codes=("codec", "vocoder"))
    flip = {1: 2, 2: 1, 3: 3}
    for answer in Answer.objects.all():
        answer.rating = flip[answer.rating]
        answer.save()
    analyse_compared(study)
    row = estimate(study, measure="share of wins")
    assert row["value"] < 0.5
    sentence = sentences_of(section_of(study))[0]
    assert sentence.startswith(f"vocoder was preferred to codec in {round(100 - 100 * row['value'])} %")
    assert "of comparisons: significant, p " in sentence


def test_order_that_decides_is_told():
    study = make_compared(codes=("codec", "vocoder"))
    assert "heard first" not in " ".join(sentences_of(section_of_answers(study)))
    for answer in Answer.objects.all():
        first = Play.objects.filter(session=answer.session_id, trial=answer.trial_id).order_by("pk").first()
        answer.rating = 1 if first.slot == "a" else 2
        answer.save()
    [said] = [one for one in sentences_of(section_of_answers(study)) if "heard first" in one]
    assert said.startswith("What was heard first won 100 %")


def test_abx_below_chance_is_no_discrimination():
    study = make_compared(["identity"], codes=("codec", "vocoder"))
    for answer in Answer.objects.all():
        heard = dict(answer.trial.presentation.samples.values_list("slot", "stimulus__condition__code"))
        answer.rating = 2 if heard["x"] == heard["a"] else 1
        answer.save()
    [said] = sentences_of(section_of_answers(study))
    assert said.startswith("X was identified in 0 %")
    assert "not significantly above guessing" in said


@pytest.mark.parametrize(
    ("task", "measure", "start"),
    [
        ("preference", "share of wins", "Of 4 conditions, original was preferred most often."),
        ("basic-audio-quality", "difference", "Of 3 conditions beside the original, codec is rated highest for basic "),
        ("degradation", "difference", "Of 3 conditions beside the original, codec is least degraded: "),
    ],
)
def test_several_conditions_open_with_the_best_and_the_pairs_that_differ(task, measure, start):
    study = analysed([task])
    pairs = [
        row
        for row in parsed_results(study.analyses.get().results).records("common", "estimates", measure=measure)
        if row["against"]
    ]
    apart = sum(row["adjusted"] < 0.05 for row in pairs)
    first, second, *_ = sentences_of(section_of(study))
    assert first.startswith(start)
    assert second.startswith("All 6 pairs" if apart == 6 else "None of" if not apart else f"{apart} of 6 pairs")
    alike = [f"{row['condition']} – {row['against']}" for row in pairs if row["adjusted"] >= 0.05]
    assert all((name in second) == (len(alike) <= 3) for name in alike)


def test_no_anchor_is_said_to_be_the_best():
    study = make_compared(["basic-audio-quality"])
    study.conditions.filter(code="codec").update(code="anchor-7k")
    first, second, *_ = sentences_of(section_of_answers(study))
    assert first.startswith("Of 2 conditions beside the original and anchors, vocoder is rated highest for basic ")
    assert "of 6 pairs" in second or "All 6 pairs" in second


def analysed_mushra():
    """The first listener rated the hidden reference low."""
    study = make_compared(["basic-audio-quality"], items=2)
    for answer in study.sessions.order_by("pk").first().answers.all():
        heard = dict(answer.trial.presentation.samples.values_list("slot", "stimulus__condition__code"))
        answer.data["ratings"] |= {slot: 40 for slot, code in heard.items() if code == "" and slot != "r"}
        answer.save()
    analyse_compared(study)
    return study


@pytest.fixture
def mushra(once):
    return once(analysed_mushra)


def test_median_and_quartiles_of_mushra_stand_in_one_further_table_and_in_the_latex_file(mushra):
    study = mushra
    further = section_of(study)["further"]
    rows = [{of.key: cell.text for of, cell in zip(further.columns, row.cells, strict=True)} for row in further.rows]
    assert len(rows) == 3 * 4
    expected = estimate(study, measure="upper quartile", condition="codec")["value"]
    [row] = [row for row in rows if (row["measure"], row["condition"]) == ("upper quartile", "codec")]
    assert float(row["value"]) == pytest.approx(expected, abs=0.01)
    printed = client_of(study).get(address(study, "results-latex")).content.decode()
    assert "Measure & Condition & Value" in printed
    assert "median & codec & " in printed


def test_choices_open_with_the_most_frequent_label_of_each_condition():
    study = make_compared(["emotion"], items=2, codes=("codec", "vocoder"))
    Answer.objects.update(rating=3)
    for number, answer in enumerate(Answer.objects.filter(trial__presentation__condition__code="codec")):
        answer.rating = 2 + number % 2
        answer.save()
    analyse_compared(study)
    said = "Chosen most often: happy or sad (50 %) of codec, sad (100 %) of vocoder."
    assert sentences_of(section_of(study)) == [said]


@pytest.mark.parametrize("task", ["identity", "emotion", "basic-audio-quality"])
def test_question_figure_and_table_stand_open_below_its_heading(task):
    study = analysed([task], items=2)
    section = section_of(study)
    response = page_of(study)
    assert f" listeners and {Answer.objects.count()} answers;" in words_of(response)  # each trial counts once
    page = response.content.decode()
    body = page[page.index(f'<h2 id="{task}"') :]
    places = [
        body.index(part)
        for part in (section["question"], sentences_of(section)[0][:20], '<figure class="figure">', "<table")
    ]
    assert places == sorted(places)
    assert "<details" not in body[: places[2]]
    shown = page[page.index(f'<section aria-labelledby="{task}"') :]  # figures keep their size on a phone and scroll
    assert shown.count('<div class="table-scroll plate-scroll"') == shown.count("<figure")
    [*cells] = [[cell.text for cell in row.cells] for row in section["tables"][0].rows]
    rows = parsed_results(study.analyses.get().results).records(
        "common", "estimates", measure=section["tables"][0].name.lower()
    )
    assert len(cells) == len(rows)
    assert ("d′" in [table.name for table in section["tables"]]) is (task == "identity")


@pytest.mark.parametrize("task", ["quality", "transcription"])
def test_no_words_of_privacy_and_systems_on_the_pages_of_own_recordings(task):
    study = analysed([task], items=2)
    client = client_of(study)
    published = client.post(address(study, "publish-results"), {"analysis": study.analyses.get().pk}, follow=True)
    assert "The results are published." in words_of(published)
    for name in ("results", "analyse", "publish-results", "unpublish-results"):
        words = words_of(client.get(address(study, name))).lower()
        assert "leaderboard" not in words, name
        assert "unprotected" not in words, name
        assert "the team" not in words, name


def test_choices_about_systems_of_an_edition_have_the_same_page():
    study = make_answered(tasks=["emotion"], trials=4)
    analyse_compared(study)
    client = Client()
    client.force_login(study.edition.organizers.get())
    page = client.get(address(study))
    [section] = page.context["page"]["answered"]
    assert sentences_of(section)[0].startswith("Chosen most often: ")
    assert (page.context["page"]["is_crossed"], page.context["page"]["compared"]) == (False, 2)
    assert client.get(address(study, "results-system", study.systems.first().code)).status_code == 404


def test_each_of_several_questions_has_a_section_in_the_order_of_asking():
    study = make_compared(questions=load_preset("p835").questions, items=2)
    analyse_compared(study)
    response = page_of(study)
    page = response.context["page"]
    keys = [question.key for question in study.asked]
    assert [section["name"] for section in page["answered"]] == keys
    linked = re.findall(r'<li><a href="#([^"]+)">([^<]+)</a></li>', response.content.decode())
    assert linked[:3] == [(question.key, question.title) for question in study.asked]
    assert all({figure["task"] for figure in section["figures"]} == {section["name"]} for section in page["answered"])


def test_transcripts_of_own_recordings_have_their_word_errors():
    study = analysed(["transcription"], items=2)
    assert "Of 3 conditions, codec has the lowest word error rate, 17 %, and" in words_of(page_of(study))


def test_few_listeners_compare_no_conditions():
    study = analysed(evaluators=3, items=2)
    page = page_of(study).context["page"]
    assert page["opening"]["few"] == "Too few listeners (3) to compare conditions."
    assert not any("preferred most" in one or "significant" in one for one in sentences_of(page["answered"][0]))


def test_files_are_for_everybody_once_published_but_those_of_listeners(mushra):
    study = mushra
    files = [
        address(study, "results-json"),
        address(study, "results-figure", "common", "conditions-basic-audio-quality-mean", "svg"),
    ]
    screening = address(study, "results-csv", "common", "screening")
    visitor, organizer = Client(), client_of(study)
    assert [visitor.get(one).status_code for one in files] == [302] * 2  # to the sign-in
    publish_results(study=study, by=study.created_by, now=timezone.now())
    assert [visitor.get(one).status_code for one in files] == [200] * 2
    assert (visitor.get(screening).status_code, organizer.get(screening).status_code) == (302, 200)
    assert "common/screening" not in visitor.get(files[0]).json()["tables"]


def test_post_screening_of_mushra_is_shown_previewed_and_made_a_rule(mushra):
    study, session, analysis = mushra, mushra.sessions.order_by("pk").first(), mushra.analyses.get()
    assert "names 1 of 12 listeners" in words_of(page_of(study))
    write_flags(study, parsed_results(analysis.results))
    assert [(one.session, one.kind) for one in session.flags.model.objects.filter(session__study=study)] == [
        (session, "reference-low")
    ]
    page = client_of(study).get(address(study, "results-listeners"))
    [rule] = [one for one in page.context["page"]["rules"] if one["name"] == "reference-low"]
    assert (rule["caught"], rule["looked_at"], rule["may_leave_out"]) == (1, 12, True)
    assert "ITU-R BS.1534-3" in rule["words"]
    effect = rule["effect"]
    rows = [{of.key: cell.text for of, cell in zip(effect.columns, row.cells, strict=True)} for row in effect.rows]
    [original] = [row for row in rows if row["condition"] == "original"]
    assert (original["mean_before"], original["mean_after"]) == ("95.00", "100.00")
    given, screen = {"rule": "reference-low", "reason": " "}, address(study, "results-screen")
    assert "notice error" in client_of(study).post(screen, given, follow=True).content.decode()
    told = words_of(client_of(study).post(screen, given | {"reason": "BS.1534-3"}, follow=True))
    assert "it leaves out 1 of the sessions" in told
    [made] = study.exclusion_rules.all()
    assert [one.session for one in made.exclusions.all()] == [session]
    assert study.analyses.first() != analysis


def test_withdrawal_deletes_what_is_about_single_listeners_and_keeps_the_estimates(
    mushra, django_capture_on_commit_callbacks
):
    study, session, analysis = mushra, mushra.sessions.order_by("pk").first(), mushra.analyses.get()
    key, before = analysis.inputs, parsed_results(analysis.results)
    with django_capture_on_commit_callbacks(execute=True):
        withdraw(session, timezone.now())
    analysis.refresh_from_db()
    after = parsed_results(analysis.results)
    assert set(before.tables) - set(after.tables) == {"common/screening"}
    assert after.table("common", "estimates") == before.table("common", "estimates")
    assert before.records("common", "answers_effect")
    assert not after.records("common", "answers_effect")  # of a rule that caught one listener
    assert not default_storage.exists(key)
    answers = collect_inputs(study).answers
    assert session_key(study, session.pk) not in set(answers.session.tolist())
    assert len(answers) == 11 * 2 * 4
    assert "Post-screening" not in words_of(page_of(study)).replace("Post-screening by", "")
