"""Versions of an edition's recipe: who moves, that publications keep theirs, and who sees what."""

import pytest
from django.db.models import F
from django.test import Client
from django.utils import timezone

from evaluation.app.models import EvaluationRun, MetricValue
from evaluation.protocols.ranking.policy import make_policy
from portal.challenges.models import Edition
from portal.challenges.selectors import export_recipe, find_version, shown_edition
from portal.challenges.services import InvalidEdition, change_edition, copy_edition
from portal.jobs.models import Job, JobState
from portal.jobs.runner import execute
from portal.leaderboard import services
from portal.leaderboard.changes import list_version_changes
from portal.leaderboard.recipe_versions.pages import compare_versions
from portal.leaderboard.selectors import build_leaderboard
from portal.submissions.models import Submission
from portal.submissions.selectors import list_jobs
from tests.pages import read_page
from tests.portal.attacked import make_retrained
from tests.portal.factories import make_organizer, make_submission, make_team, make_team_system, make_user
from tests.portal.leaderboards import make_leaderboard, put_on_leaderboard
from tests.portal.objective import add_audio, add_documents, evaluate, tones_edition, tones_scores, tones_words

pytestmark = pytest.mark.django_db
WEIGHTS = "weights.test = { libri_test_asr = 0.5, vctk_test_asr = 0.5 }"
LIBRI_ONLY = "weights.test = { libri_test_asr = 1.0 }"


@pytest.fixture
def organizer():
    return make_organizer()


@pytest.fixture
def edition(organizer):
    """T01-p1 has WER 8.25, T04-p1 9.0, which is better on LibriSpeech and worse on VCTK."""
    edition = make_leaderboard(organizers=[organizer])
    put_on_leaderboard(make_team_system(make_team(edition, name="Dogwood"), "p1"), eer=26.0, wer=9.0)
    runs = EvaluationRun.objects.filter(submission__system__team__name="Dogwood")
    for data_set, value in (("libri_test_asr", 5.0), ("vctk_test_asr", 13.0)):
        MetricValue.objects.filter(run__in=runs, metric="wer", data_set=data_set).update(value=value)
    return edition


def client_of(user):
    client = Client()
    client.force_login(user)
    return client


def libri_only(edition):
    """The recipe with the WER of LibriSpeech alone."""
    text = export_recipe(edition)
    assert WEIGHTS in text
    return text.replace(WEIGHTS, LIBRI_ONLY)


def propose(edition, organizer, text=""):
    return services.propose_version(
        edition=edition, text=text or libri_only(edition), note="VCTK is read speech.", by=organizer
    )


def adopt(edition, organizer, number=2):
    services.adopt_version(edition=edition, number=number, now=timezone.now(), by=organizer)
    return Edition.objects.get(pk=edition.pk)


def first_ranks(edition):
    """The ranks of the first condition by label."""
    return {row.entry.label: row.rank for row in build_leaderboard(edition).table.tables[0].ranked}


def test_published_leaderboard_keeps_its_version_until_it_is_published_again(edition, organizer, mailoutbox):
    services.publish_leaderboard(edition=edition, now=timezone.now(), by=organizer)
    before = first_ranks(edition)
    propose(edition, organizer)
    adopted = adopt(edition, organizer)
    assert (adopted.published_number, shown_edition(adopted).shown_number, first_ranks(adopted)) == (1, 1, before)
    address = f"/editions/{edition.name}/leaderboard/"
    assert Client().get(f"{address}leaderboard.json").json()["recipe_version"]["number"] == 1
    system = adopted.systems.get(team__name="Dogwood")
    values = f"/api/systems/{system.name}/values"
    average = [one for one in Client().get(values).json()["numbers"] if one["data_set"] == "average_test"]
    assert [one["value"] for one in average if one["metric"] == "wer"] == [9.0]
    assert "publish it again</a>" in read_page(client_of(organizer).get(address))
    assert "T04-p1" in read_page(client_of(organizer).get(f"{address}publish/again/"))
    mailoutbox.clear()
    assert client_of(organizer).post(f"{address}publish/again/").status_code == 302
    found = Client().get(f"{address}leaderboard.json").json()
    assert (found["recipe_version"]["number"], first_ranks(Edition.objects.get(pk=edition.pk))["T04-p1"]) == (2, 1)
    assert "Recipe version 2" in read_page(Client().get(address))
    assert "version 1" in read_page(Client().get(f"{address}recipe/2/"))


def test_new_numbers_by_the_adopted_version_do_not_change_what_is_published(edition, organizer):
    services.publish_leaderboard(edition=edition, now=timezone.now(), by=organizer)
    propose(edition, organizer)
    adopted = adopt(edition, organizer)
    run = EvaluationRun.objects.get(submission__system__team__name="Dogwood", kind="objective")
    run.job.result["recipe_version"] = 2  # as if it had been evaluated after the adoption
    run.job.save()
    MetricValue.objects.filter(run=run, data_set="average_test", metric="wer").update(value=5.0)
    [row] = [one for one in build_leaderboard(adopted).table.tables[0].ranked if one.entry.label == "T04-p1"]
    assert (row.utility.value, row.rank) == (9.0, 2)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"unprotected", "ignorant", ', '"ignorant", ', "Speech was attacked by these only."),
        ("utterances = 1496, words", "utterances = 1495, words", "data_sets.libri_test_asr: expected the utterances"),
        ('metric = "wer"\nestimator = "tglarge"', 'metric = "uar"', "Nothing that was submitted gives it."),
        ("weights.test = { libri_test_asr = 0.5", "weights.test = { libri_test_asr = 0.6", "add up to 1, found 1.1"),
        ("[tracks.main]", "[tracks.main", "line "),
        ("", "", "change something"),
    ],
)
def test_version_that_cannot_be_computed_is_refused(edition, organizer, old, new, said):
    text = export_recipe(edition).replace(old, new) if old else export_recipe(edition)
    answer = client_of(organizer).post(
        f"/editions/{edition.name}/leaderboard/recipe/new/", {"recipe_text": text, "note": "Try."}
    )
    assert said in read_page(answer)
    assert not edition.recipe_versions.exists()


def test_draft_is_for_organizers_and_adopted_versions_are_for_who_sees_the_leaderboard(edition, organizer):
    services.publish_leaderboard(edition=edition, now=timezone.now(), by=organizer)
    propose(edition, organizer)
    start = f"/editions/{edition.name}/leaderboard/recipe/"
    others = (make_user(), make_organizer(), edition.teams.first().memberships.first().user)
    for path in ("2/", "2/recipe.toml", "2/moves.csv", "2/adopt/", "new/"):
        assert [client_of(user).get(start + path).status_code for user in others] == [404] * 3, path
    assert [client_of(user).post(f"{start}2/withdraw/").status_code for user in others] == [404] * 3
    assert "draft" not in read_page(Client().get(start))
    adopted = adopt(edition, organizer)
    page = read_page(Client().get(f"{start}2/"))
    assert ("What changes in the recipe" in page, "Who moves" in page) == (True, False)
    assert Client().get(f"{start}2/moves.csv").status_code == 302
    services.publish_version(edition=adopted, now=timezone.now(), by=organizer)
    assert Client().get(f"{start}2/moves.csv").status_code == 200


def test_edition_with_versions_keeps_its_recipe_fields(edition, organizer):
    adopted = (propose(edition, organizer), adopt(edition, organizer))[1]
    with pytest.raises(InvalidEdition, match="Propose a version of the recipe"):
        change_edition(edition=adopted, by=organizer, protocol="2024", recipe_text="")
    copied = copy_edition(edition=adopted, by=organizer, name="copy", title="Copy")
    assert (copied.recipe_number, LIBRI_ONLY in copied.recipe_text) == (1, True)


def test_one_draft_at_a_time_and_a_withdrawn_one_stays_listed(edition, organizer):
    propose(edition, organizer)
    with pytest.raises(services.LeaderboardError, match="is a draft already"):
        propose(edition, organizer)
    client, start = client_of(organizer), f"/editions/{edition.name}/leaderboard/recipe/"
    assert client.post(f"{start}2/withdraw/").status_code == 302
    assert "withdrawn" in read_page(client.get(start))
    with pytest.raises(services.LeaderboardError):
        adopt(edition, organizer)
    assert propose(edition, organizer).number == 3


def test_frozen_unpublished_leaderboard_takes_no_version(edition, organizer):
    propose(edition, organizer)
    services.freeze_leaderboard(edition=edition, at=timezone.now(), now=timezone.now(), by=organizer)
    with pytest.raises(services.LeaderboardError, match="frozen"):
        adopt(edition, organizer)


def test_pages_of_versions_ask_few_questions(edition, organizer, django_assert_max_num_queries):
    propose(edition, organizer)
    client, start = client_of(organizer), f"/editions/{edition.name}/leaderboard/recipe/"
    for path in ("", "2/", "2/adopt/"):
        with django_assert_max_num_queries(20):
            assert client.get(start + path).status_code == 200


def run_waiting_versions():
    """The waiting jobs that compute by a version, as a worker would run them."""
    waiting = Job.objects.filter(state=JobState.WAITING, kind="objective-version").order_by("created_at")
    return [execute(job.pk) for job in waiting]


@pytest.mark.usefixtures("quick_figures", "few_resamples")
def test_files_are_computed_again_with_intervals_beside_the_numbers_of_now(organizer):
    edition = tones_edition(organizers=[organizer])
    submission = add_audio(make_submission(make_team_system(make_team(edition), "p1")))
    words = tones_words(edition.corpus, wrong=["f01-01", "f02-01"])
    add_documents(submission, tones_scores(edition.corpus) | words)
    assert evaluate(submission).state == "evaluated"
    before = build_leaderboard(edition).entries[-1]
    text = export_recipe(edition).replace("tones_trials_f = 0.5, tones_trials_m = 0.5", "tones_trials_f = 1.0", 1)
    version = propose(edition, organizer, text)
    page = read_page(client_of(organizer).get(f"/editions/{edition.name}/leaderboard/recipe/2/"))
    assert "0 of 1 submissions are computed again by this version" in page
    by_hand = compare_versions(edition, find_version(edition, 1), version).after.entries[-1].privacy
    assert [job.state for job in run_waiting_versions()] == [JobState.SUCCEEDED]
    again = compare_versions(edition, find_version(edition, 1), version).after.entries[-1].privacy
    assert again.value == pytest.approx(by_hand.value)
    assert (by_hand.interval, again.interval is None, again.value == before.privacy.value) == (None, False, False)
    assert build_leaderboard(edition).entries[-1] == before
    submission.refresh_from_db()
    assert (submission.state, EvaluationRun.objects.filter(submission=submission, kind="version").count()) == (
        "evaluated",
        1,
    )
    assert "objective-version" not in {job.kind for job in list_jobs(submission)}
    assert build_leaderboard(adopt(edition, organizer)).entries[-1].privacy == again


def test_average_of_retrained_recognisers_follows_the_weights_of_the_version(edition, organizer):
    submission = Submission.objects.get(system__team__name="Dogwood")
    run = make_retrained(submission, "libri_test_asr", "vctk_test_asr")
    of_libri = MetricValue.objects.filter(run=run, data_set="libri_test_asr")
    of_libri.update(value=F("value") - 2)
    MetricValue.objects.filter(run=run, data_set="average_test").update(value=F("value") - 1)

    def retrained(one):
        [entry] = [entry for entry in build_leaderboard(one).entries if entry.label == "T04-p1"]
        return entry.averages["retrained"]

    assert (retrained(edition).value, retrained(edition).interval) == (17.0, (16.0, 20.0))
    propose(edition, organizer)
    again = retrained(adopt(edition, organizer))
    assert (again.value, again.interval) == (16.0, None)


def test_withdrawing_ends_what_computes_by_the_version(edition, organizer):
    propose(edition, organizer)
    assert Job.objects.filter(kind="objective-version", state=JobState.WAITING).count() == 6
    services.withdraw_version(edition=edition, number=2, now=timezone.now(), by=organizer)
    assert set(Job.objects.filter(kind="objective-version").values_list("state", flat=True)) == {JobState.CANCELLED}


def test_version_with_another_gate_computes_again(edition, organizer):
    """A minimum of a metric that nothing averages needs numbers that older runs may lack."""
    text = export_recipe(edition)
    gate = '[[tracks.main.ranking.gates]]\nmetric = "gain_of_voice_distinctiveness"\nestimator = "official"\n'
    gate += "minimum = -9\ninclusive = true\n"
    propose(edition, organizer, f'{text}\n{gate}groups = [["libri_test_trials_f"]]\n')
    assert Job.objects.filter(kind="objective-version").count() == 6


def test_version_replaces_the_policy_that_its_text_already_says(edition, organizer):
    policy = make_policy(edition.recipe, edition.track, {"late": "ranked"})
    services.save_draft_policy(edition=edition, policy=policy, by=organizer)
    ranked = services.make_policy_live(edition=edition, by=organizer)
    text = export_recipe(ranked).replace("minimum_eers = [15, 20, 25, 30]", "minimum_eers = [10, 24]")
    propose(ranked, organizer, text)
    changes = list_version_changes(ranked, find_version(ranked, 2), find_version(ranked, 3))
    assert [(one.key, one.after) for one in changes] == [("tracks.main.ranking.minimum_eers", "10, 24")]
    adopted = adopt(ranked, organizer, 3)
    assert (adopted.leaderboard_policy, build_leaderboard(adopted).policy.late) == ({}, "ranked")


def test_raised_condition_says_who_is_in_none_any_more_and_no_lost_rank(edition, organizer):
    """T04-p1 has an EER of 26 % and is the best at 25 %: with 28 % as the only condition it is in none."""
    text = export_recipe(edition).replace("minimum_eers = [15, 20, 25, 30]", "minimum_eers = [28]")
    propose(edition, organizer, text)
    found = compare_versions(edition, find_version(edition, 1), find_version(edition, 2))
    out = found.sentences[-1]
    assert out.startswith("In no condition any more: ")
    assert out.endswith("the lowest limit is 28 %.")
    assert "T04-p1 (EER 26.0 %)" in out
    assert not any("loses rank" in one or "gets rank" in one for one in found.sentences)
    assert found.moved == set()
    page = read_page(client_of(organizer).get(f"/editions/{edition.name}/leaderboard/recipe/2/"))
    assert out in page


def test_system_whose_eer_falls_below_a_limit_leaves_that_condition(edition, organizer):
    """The weights of another version give T04-p1 an EER of 19 %, below a condition of 20 % that both have."""
    runs = EvaluationRun.objects.filter(submission__system__team__name="Dogwood")
    MetricValue.objects.filter(run=runs.get(kind="objective"), metric="eer", data_set="libri_test_trials_f").update(
        value=19.0
    )
    weights = "weights.test = { libri_test_trials_f = 0.25, libri_test_trials_m = 0.25"
    recipe = export_recipe(edition)
    start = recipe.index(weights)
    line = recipe[start : recipe.index("\n", start)]
    text = recipe.replace(line, "weights.test = { libri_test_trials_f = 1.0 }", 1)
    propose(edition, organizer, text)
    found = compare_versions(edition, find_version(edition, 1), find_version(edition, 2))
    [ranking] = [one for one in found.lasting if one.title == "EER of at least 20 %"]
    [left] = [one for one in ranking.systems if one.entry.label == "T04-p1"]
    assert found.move_in_words(left, ranking) == "T04-p1 leaves the condition EER of at least 20 %: EER 19.0 %"
