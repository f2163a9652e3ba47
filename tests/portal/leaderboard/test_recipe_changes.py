"""A recipe that is changed after the first submission: all is evaluated again, and what is published stays."""

import pytest
from django.test import Client
from django.utils import timezone

from common.errors import NotPossible
from evaluation.app.models import EvaluationRun, MetricValue
from evaluation.app.objective_results.services import settle_objective
from evaluation.protocols.ranking.policy import make_policy
from evaluation.protocols.recipes import parse_recipe
from portal.challenges.models import Edition
from portal.challenges.selectors import export_recipe
from portal.jobs.models import Job, JobState
from portal.jobs.runner import execute
from portal.leaderboard import services
from portal.leaderboard.selectors import build_leaderboard
from portal.submissions.models import Submission
from portal.submissions.services import evaluate_again, release
from tests.pages import read_page
from tests.portal.factories import client_of, make_submission, make_team, make_team_system, make_user
from tests.portal.leaderboards import make_leaderboard, put_on_leaderboard
from tests.portal.objective_runs import (
    add_audio,
    add_documents,
    evaluate,
    make_objective_run,
    ranked_numbers,
    run_waiting_jobs,
    tones_edition,
    tones_scores,
    tones_words,
)

pytestmark = pytest.mark.django_db
WEIGHTS = "weights.test = { libri_test_asr = 0.5, vctk_test_asr = 0.5 }"
LIBRI_ONLY = "weights.test = { libri_test_asr = 1.0 }"


@pytest.fixture
def edition(organizer):
    """Systems of teams, a baseline and the original speech; published."""
    edition = make_leaderboard(organizers=[organizer], name="vpc")
    put_on_leaderboard(make_team_system(make_team(edition, name="Dogwood"), "p1"), eer=26.0, wer=9.0)
    return services.publish_leaderboard(edition=edition, now=timezone.now(), by=organizer)


@pytest.fixture
def address(edition):
    return f"/editions/{edition.name}/leaderboard/"


def change(edition, organizer, text=""):
    """The edition after its recipe was changed: by default to the WER of LibriSpeech alone."""
    text = text or export_recipe(edition).replace(WEIGHTS, LIBRI_ONLY)
    services.change_recipe(edition=edition, text=text, now=timezone.now(), by=organizer)
    return Edition.objects.get(pk=edition.pk)


def change_policy(edition, organizer, **changes):
    policy = make_policy(edition.recipe, edition.track, changes)
    services.change_policy(edition=edition, policy=policy, now=timezone.now(), by=organizer)
    return Edition.objects.get(pk=edition.pk)


def publish_again(edition, organizer):
    services.publish_leaderboard(edition=edition, now=timezone.now(), by=organizer)
    return Edition.objects.get(pk=edition.pk)


def compute_again(edition, wer=5.0):
    """Give every submission numbers by the recipe of now, as the jobs that wait would."""
    Job.objects.filter(kind="objective", state=JobState.WAITING).update(state=JobState.CANCELLED)
    for submission in Submission.objects.filter(system__edition=edition).select_related("system"):
        submission.system.edition = edition
        numbers = ranked_numbers(edition, eer=26.0, wer=wer)
        run = make_objective_run(submission, numbers)
        run.job.result["recipe_number"] = edition.recipe_number
        run.job.save()


def read_wers(edition):
    """The average WER of each system on the leaderboard that everybody sees."""
    entries = build_leaderboard(edition).entries
    return {one.label: one.utilities["wer"].value for one in entries if one.kind == "system"}


def read_published(address):
    """Everything that everybody reads of a leaderboard, but for what was changed since."""
    found = Client().get(f"{address}leaderboard.json").json()
    return [
        {key: value for key, value in found.items() if key not in ("changes", "as_of")},
        Client().get(f"{address}leaderboard.csv").content,
        Client().get(f"{address}leaderboard.tex").content,
        Client().get(f"{address}recipe.toml").content,
        Client().get("/api/systems/vpc-t04-p1/values").json(),
    ]


def test_published_leaderboard_stays_to_the_digit_until_it_is_published_again(edition, organizer, address):
    before = read_published(address)
    changed = change(edition, organizer)
    assert read_published(address) == before
    compute_again(changed)
    assert read_published(address) == before
    again = publish_again(changed, organizer)
    [after, _, _, recipe, values] = read_published(address)
    rows = [row for row in after["rankings"][0]["rows"] if row["kind"] == "system"]
    assert {row["averages"]["wer"]["value"] for row in rows} == {5.0}
    assert LIBRI_ONLY in recipe.decode()
    [average] = [one for one in values["numbers"] if (one["metric"], one["data_set"]) == ("wer", "average_test")]
    assert average["value"] == 5.0
    assert (again.recipe_changed_at, again.published_recipe, again.recipe_number) == (None, {}, 2)


def test_what_waits_for_its_release_joins_after_it_is_published_again(edition, organizer, address):
    Edition.objects.update(holds_evaluations=True)
    held = put_on_leaderboard(make_team_system(make_team(edition, name="Elm"), "p1"), eer=26.0, wer=3.0)
    Submission.objects.filter(pk=held.pk).update(is_held=True)
    before = read_published(address)
    changed = change(edition, organizer)
    with pytest.raises(NotPossible, match="published again"):
        release(submission=held, by=organizer)
    shown = Submission.objects.get(system__name="vpc-t04-p1")
    evaluate_again(submission=shown, by=organizer)
    assert read_published(address)[:-1] == before[:-1]  # of the system its state has changed
    compute_again(changed)
    again = publish_again(changed, organizer)
    assert "T05-p1" not in read_wers(again)
    release(submission=held, by=organizer)
    assert read_wers(again)["T05-p1"] == 5.0


def test_every_evaluated_submission_is_evaluated_again_without_a_word_to_its_team(edition, organizer, mailoutbox):
    Job.objects.filter(kind="send-notice").delete()
    evaluated = Submission.objects.filter(state="evaluated").count()
    change(edition, organizer)
    waiting = Job.objects.filter(kind="objective", state=JobState.WAITING)
    assert waiting.count() == evaluated
    execute(waiting.earliest("pk").pk)
    assert set(Submission.objects.values_list("state", flat=True)) == {"evaluated"}
    assert not Job.objects.filter(kind="send-notice").exists()
    assert mailoutbox == []


def test_draft_shows_organizers_the_numbers_of_the_changed_recipe_alone(edition, organizer, address):
    changed = change(edition, organizer)
    client = client_of(organizer)
    page = client.get(f"{address}publish/again/")
    assert sorted(page.context["unmeasured"]) == ["B2", "T01-c1", "T01-p1", "T02-p1", "T03-p1", "T04-p1"]
    compute_again(changed)
    page = client.get(f"{address}publish/again/")
    assert page.context["unmeasured"] == []
    entries = [one for one in page.context["leaderboard"].entries if one.kind == "system"]
    assert {one.utilities["wer"].value for one in entries} == {5.0}
    assert {*read_wers(changed).values()} == {7.0, 7.5, 7.75, 8.25, 9.0}
    assert client_of(make_user()).get(f"{address}publish/again/").status_code == 404


def test_what_is_evaluated_after_the_change_waits_for_the_next_publication(edition, organizer, address):
    changed = change(edition, organizer)
    compute_again(changed)
    team = changed.teams.get(name="Dogwood")
    late = put_on_leaderboard(changed.systems.get(team=team), eer=40.0, wer=1.0)
    new = put_on_leaderboard(make_team_system(team, "c1"), eer=40.0, wer=1.0)
    for run in EvaluationRun.objects.filter(submission__in=[late, new]):
        run.job.result["recipe_number"] = 2
        run.job.save()
    assert ("T04-c1" in read_wers(changed), read_wers(changed)["T04-p1"]) == (False, 9.0)
    assert Client().get("/api/systems/vpc-t04-c1/values").status_code == 401
    own = client_of(team.memberships.first().user)
    for name in ("vpc-t04-p1", "vpc-t04-c1"):
        numbers = own.get(f"/api/systems/{name}/values").json()["numbers"]
        assert {one["value"] for one in numbers if one["metric"] == "wer"} == {1.0}
    assert own.get("/systems/vpc-t04-p1/").status_code == 200
    again = read_wers(publish_again(changed, organizer))
    assert (again["T04-c1"], again["T04-p1"]) == (1.0, 1.0)


def test_frozen_leaderboard_keeps_its_systems_with_numbers_by_the_changed_recipe(edition, organizer):
    services.freeze_leaderboard(edition=edition, at=timezone.now(), now=timezone.now(), by=organizer)
    edition = Edition.objects.get(pk=edition.pk)
    put_on_leaderboard(make_team_system(edition.teams.get(name="Dogwood"), "c1"), eer=40.0, wer=1.0)
    changed = change(edition, organizer)
    compute_again(changed)
    again = publish_again(changed, organizer)
    compute_again(again, wer=99.0)  # evaluated once more, after the time of the leaderboard
    assert read_wers(again) == dict.fromkeys(["T01-c1", "T01-p1", "T02-p1", "T03-p1", "T04-p1"], 5.0)


def test_submission_that_was_evaluated_during_the_change_is_evaluated_again(organizer):
    edition = tones_edition(organizers=[organizer])
    run = make_objective_run(make_submission(make_team_system(make_team(edition), "p1")), [])
    Edition.objects.update(recipe_number=2)  # as if its job had read the recipe before
    settle_objective(run.job)
    assert Job.objects.filter(kind="objective", state=JobState.WAITING).count() == 1


@pytest.mark.usefixtures("quick_figures", "quick_measures", "few_resamples")
def test_files_are_computed_again_by_the_changed_recipe_with_intervals(organizer):
    edition = tones_edition(organizers=[organizer])
    submission = add_audio(make_submission(make_team_system(make_team(edition), "p1")))
    words = tones_words(edition.corpus, wrong=["f01-01", "f02-01"])
    add_documents(submission, tones_scores(edition.corpus) | words)
    assert evaluate(submission).state == "evaluated"
    services.publish_leaderboard(edition=edition, now=timezone.now(), by=organizer)
    edition = Edition.objects.get(pk=edition.pk)
    before = build_leaderboard(edition).entries[-1]
    text = export_recipe(edition).replace("tones_trials_f = 0.5, tones_trials_m = 0.5", "tones_trials_f = 1.0", 1)
    changed = change(edition, organizer, text)
    assert [job.state for job in run_waiting_jobs()] == [JobState.SUCCEEDED]
    assert build_leaderboard(changed).entries[-1] == before
    after = build_leaderboard(publish_again(changed, organizer)).entries[-1]
    of_set = MetricValue.objects.filter(
        data_set="tones_trials_f", metric="eer", estimator="kaldi", attack_model="semi-informed"
    )
    assert after.privacy.value == pytest.approx(of_set.latest("pk").value)
    assert (after.privacy.interval is None, after.privacy.value == before.privacy.value) == (False, False)
    submission.refresh_from_db()
    assert submission.state == "evaluated"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"unprotected", "ignorant", ', '"ignorant", ', "Speech was attacked by these only."),
        ('metric = "wer"\nestimator = "tglarge"', 'metric = "uar"', "Nothing that was submitted gives it."),
    ],
)
def test_recipe_that_cannot_be_computed_is_refused(edition, organizer, address, old, new, said):
    text = export_recipe(edition).replace(old, new)
    answer = client_of(organizer).post(f"{address}recipe/", {"recipe_text": text})
    assert (answer.status_code, said in read_page(answer)) == (422, True)
    assert not Job.objects.filter(kind="objective", state=JobState.WAITING).exists()
    assert Edition.objects.get(pk=edition.pk).recipe_changed_at is None


def test_changed_conditions_wait_for_the_next_publication(edition, organizer, address):
    before = read_published(address)
    changed = change_policy(edition, organizer, minimum_eers=[12, 24], late="ranked", basis="claims")
    assert read_published(address) == before
    assert not Job.objects.filter(kind="objective", state=JobState.WAITING).exists()
    [said] = Client().get(f"{address}leaderboard.json").json()["changes"]
    assert (said["is_pending"], "Late submissions are ranked." in said["after"]) == (True, True)
    publish_again(changed, organizer)
    shown = build_leaderboard(Edition.objects.get(pk=edition.pk))
    assert shown.policy.minimum_eers == (12, 24)
    files = [
        Client().get(path).content.decode() for path in (f"{address}recipe.toml", f"/editions/{edition.name}/recipe/")
    ]
    assert files[0] == files[1]
    assert make_policy(parse_recipe(files[0], file="vpc.toml")) == shown.policy
