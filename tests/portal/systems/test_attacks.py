"""Pages of the portal's attacks and recognisers: what they show to whom, the forms, and what they cost."""

import csv
import io
import json
from datetime import timedelta

import pytest
from django.utils import timezone

from evaluation.app.models import EvaluationRun
from evaluation.app.runs.context import EvaluationContext
from evaluation.formats.results import AttackModel
from portal.jobs.models import Job, JobState
from portal.submissions.models import Submission
from portal.systems.attacks.ladder import Ladder, Rung, read_ladders
from speech.encoders import registry as attackers
from speech.recognizers import registry as recognizers
from tests.pages import read_page
from tests.portal.attack_runs import FALLING, make_attack_run, make_recognition_run
from tests.portal.factories import (
    add_files,
    make_corpus,
    make_edition,
    make_organizer,
    make_submission,
    make_team,
    make_team_system,
    recipe_of,
)
from tests.portal.objective_runs import make_objective_run, number, tones_edition

SPECTRUM = attackers.engines()["long-term-spectrum"].title
IGNORANT, LAZY, SEMI_INFORMED = AttackModel.IGNORANT, AttackModel.LAZY_INFORMED, AttackModel.SEMI_INFORMED


# The ladder in words -------------------------------------------------------------------------------


def ladder(*rungs, unprotected=None, speakers=40):
    return Ladder("set_f", "Encoder", tuple(rungs), unprotected, speakers)


def rung(attack, eer, low=None, high=None, *, trained=False):
    return Rung(attack, "Trained" if trained else "Encoder", eer, low, high, trained)


def said(*ladders):
    reading = read_ladders(ladders)
    return reading.summary, [note.sentence for note in reading.notes], reading.is_unlike


@pytest.mark.parametrize(
    ("less", "more", "speakers", "reasons", "others"),
    [
        ((IGNORANT, 20, 18, 22), (LAZY, 30, 28, 32), 40, ["never was trained on such speech"], ["overlap", "few"]),
        ((IGNORANT, 20, None, None), (LAZY, 30, None, None), 4, ["4 enrolled speakers are few"], ["overlap"]),
    ],
)
def test_step_up_has_the_reasons_that_its_numbers_give(less, more, speakers, reasons, others):
    summary, [note], is_unlike = said(ladder(rung(*less), rung(*more), speakers=speakers))
    assert is_unlike
    assert "That holds not here" in summary
    assert [words for words in reasons if words not in note] == []
    assert [words for words in others if words in note] == []


def test_trained_attacker_that_is_weaker_is_told_from_one_that_is_not_settled():
    weaker = ladder(rung(LAZY, 20, 18, 22), rung(SEMI_INFORMED, 30, 28, 32, trained=True))
    unsettled = ladder(rung(LAZY, 20, 10, 30), rung(SEMI_INFORMED, 25, 15, 35, trained=True))
    _, [first, second], _ = said(weaker, unsettled)
    assert "its training is too small or too short" in first
    assert "too short" not in second
    assert "intervals overlap" in second


# Pages ---------------------------------------------------------------------------------------------


@pytest.fixture
def edition(db):
    return tones_edition(speakers=4, organizers=[make_organizer()])


@pytest.fixture
def system(edition):
    """An evaluated submission with the scores of its team's own attacker."""
    system = make_team_system(make_team(edition))
    submission = add_files(make_submission(system))
    make_objective_run(submission, [number(edition, "eer", "kaldi", "tones_trials_f", 7.77)])
    return system


def submission_of(system):
    return system.submissions.get()


def owner_of(system):
    return system.team.memberships.get().user


def organizer_of(system):
    return system.edition.organizers.get()


def publish(system, **fields):
    type(system.edition).objects.filter(pk=system.edition_id).update(published_at=timezone.now(), **fields)


def get(client, user, system, path=""):
    if user is None:
        client.logout()
    else:
        client.force_login(user)
    return client.get(f"/systems/{system.name}/{path}")


def rows_of(response):
    return list(csv.DictReader(io.StringIO(response.content.decode())))


def cells_of(table):
    """By data set and attack model what stands in the column of each attacker."""
    heads = [column.label for column in table.columns[3:]]
    return {
        (group.head.text, row.cells[0].text): {
            head: cell.text for head, cell in zip(heads, row.cells[2:], strict=True) if cell.text
        }
        for group in table.groups
        for row in group.rows
    }


# Who sees what -------------------------------------------------------------------------------------

PUBLIC = ("attacks/", "attacks/numbers.csv", "attacks/numbers.json", "recognition/", "recognition/rates.csv")


def closed_to_others(system):
    attack = EvaluationRun.objects.get(kind="attack")
    return (
        "attacks/progress",
        "recognition/progress",
        "recognition/utterances.csv",
        f"attacks/{attack.pk}/results.zip",
        f"attacks/{attack.pk}/scores/{attack.score_sets.earliest('pk').pk}/",
    )


def test_numbers_are_public_once_the_leaderboard_is_and_nothing_else(client, system):
    make_attack_run(submission_of(system))
    make_recognition_run(submission_of(system))
    rival = make_team(system.edition).memberships.get().user
    publish(system)
    for who in (None, rival):
        assert [get(client, who, system, path).status_code for path in PUBLIC] == [200] * len(PUBLIC)
        for path in (*closed_to_others(system), "attacks/new/", "recognition/new/"):
            assert get(client, who, system, path).status_code == (302 if who is None else 404), path


def test_public_pages_hold_no_text_speaker_or_recording(client, system):
    make_recognition_run(submission_of(system))
    make_attack_run(submission_of(system))
    publish(system)
    for path in ("recognition/", "attacks/", ""):
        text = read_page(get(client, None, system, path))
        held = ("tones-s0-002", "LISTENER", "<audio", "scores/", "results.zip", "utterances.csv", "cancel", "hx-get")
        assert [words for words in held if words in text] == [], path


def test_public_page_of_a_frozen_leaderboard_shows_what_was_measured_by_then(client, system):
    make_attack_run(submission_of(system), eers=FALLING | {LAZY: (11.0, 10.0, 12.0)})
    Job.objects.filter(kind="attack").update(finished_at=timezone.now() - timedelta(days=2))
    Submission.objects.update(evaluated_at=timezone.now() - timedelta(days=2))
    publish(system, frozen_at=timezone.now() - timedelta(days=1))
    make_attack_run(submission_of(system), eers=FALLING | {LAZY: (22.0, 20.0, 24.0)})
    place = ("tones_trials_f", "lazy-informed")
    system.refresh_from_db()
    public = cells_of(get(client, None, system, "attacks/").context["table"])[place]
    own = cells_of(get(client, owner_of(system), system, "attacks/").context["table"])[place]
    assert (public, own[SPECTRUM]) == ({SPECTRUM: "11.0"}, "22.0")


# Files ---------------------------------------------------------------------------------------------


def test_files_hold_every_number_with_the_name_of_its_attacker(client, system):
    make_attack_run(submission_of(system))
    rows = rows_of(get(client, owner_of(system), system, "attacks/numbers.csv"))
    key = attackers.engines()["long-term-spectrum"].key
    found = [
        row for row in rows if (row["data_set"], row["metric"], row["estimator"]) == ("tones_trials_f", "eer", "kaldi")
    ]
    assert [(row["attacker"], row["attack_model"], float(row["value"]), float(row["low"])) for row in found] == [
        (key, str(attack), eer, low) for attack, (eer, low, _) in FALLING.items()
    ]
    told = json.loads(get(client, owner_of(system), system, "attacks/numbers.json").content)
    assert [one["key"] for one in told["attackers"]] == [key]
    assert len(told["numbers"]) == len(rows)
    figures = get(client, owner_of(system), system, "attacks/").context
    addresses = [figure.image for figure in figures["det_figures"] + figures["voice_figures"]]
    assert [client.get(address).status_code for address in addresses] == [200] * 4


# Recognition ---------------------------------------------------------------------------------------


def test_words_of_test_sets_are_not_shown_to_a_team_that_the_portal_evaluates(client, db):
    corpus = make_corpus("tones", speakers=4)
    corpus.data_sets.filter(name="tones_trials_m").update(split="dev")
    edition = make_edition(corpus, protocol="", recipe_text=recipe_of(corpus))
    system = make_team_system(make_team(edition))
    add_files(make_submission(system))
    make_recognition_run(submission_of(system), sets=["tones_trials_f", "tones_trials_m"])
    files = {file.data_set.name: file for file in submission_of(system).files.select_related("data_set", "utterance")}
    kept, given = files["tones_trials_f"], files["tones_trials_m"]

    def pages(who):
        compared = [read_page(get(client, who, system, f"files/{one.pk}/")) for one in (kept, given)]
        rows = rows_of(get(client, who, system, "recognition/utterances.csv"))
        told = {name: {bool(row["reference"]) for row in rows if row["data_set"] == name} for name in files}
        shown = [one.utterance.transcript in page for one, page in zip((kept, given), compared, strict=True)]
        return shown, told["tones_trials_f"], told["tones_trials_m"]

    assert pages(owner_of(system)) == ([False, True], {False}, {True})
    assert pages(edition.organizers.get()) == ([True, True], {True}, {True})
    page = get(client, owner_of(system), system, "recognition/?data_set=tones_trials_f")
    assert {(one.may_read, len(one.steps)) for one in page.context["utterances"]} == {(False, 0)}
    text = read_page(page)
    assert text.count("What was said is not given to teams of this edition:") == 1
    assert "a word that was not said" not in text  # signs that no text has are not explained
    assert "SENTENCE NEW 2 OF LISTENER" in text
    assert not any(one.row.reference in text for one in page.context["utterances"] if one.row.errors)


# Forms ---------------------------------------------------------------------------------------------


def post(client, user, system, path, **fields):
    client.force_login(user)
    return client.post(f"/systems/{system.name}/{path}", fields)


def test_attack_is_started_once_by_the_form_and_followed(client, system):
    organizer = organizer_of(system)
    started = post(client, organizer, system, "attacks/new/", engine="long-term-spectrum", data_sets=["tones_trials_f"])
    assert (started.status_code, started["Location"]) == (302, f"/systems/{system.name}/attacks/")
    again = post(client, organizer, system, "attacks/new/", engine="long-term-spectrum", data_sets=["tones_trials_f"])
    assert (again.status_code, again["Location"]) == (302, started["Location"])
    assert EvaluationRun.objects.filter(kind="attack").count() == 1
    page = get(client, organizer, system, "attacks/")
    assert "is under way already" in read_page(page)
    assert "hx-get" in read_page(page)
    assert "Cancel" in read_page(page)


def test_recognition_is_started_by_the_form(client, system, monkeypatch):
    monkeypatch.setattr(recognizers, "explain_missing", lambda _: "")
    name = recognizers.DEFAULT
    started = post(client, organizer_of(system), system, "recognition/new/", engine=name, data_sets=["tones_trials_f"])
    assert (started.status_code, started["Location"]) == (302, f"/systems/{system.name}/recognition/")
    assert EvaluationRun.objects.get(kind="recognition").engine == name
    assert "No running worker takes jobs of the queue “computing”." in read_page(
        get(client, organizer_of(system), system, "recognition/")
    )


@pytest.mark.parametrize(("spoken", "proposed"), [("en", recognizers.DEFAULT), ("fr", "whisper-base")])
def test_recogniser_is_proposed_that_knows_the_languages(client, system, monkeypatch, spoken, proposed):
    monkeypatch.setattr(recognizers, "explain_missing", lambda _: "")
    monkeypatch.setattr(EvaluationContext, "language_of", lambda *_: spoken)
    form = get(client, organizer_of(system), system, "recognition/new/").context["form"]
    assert form["engine"].value() == proposed


# Runs ----------------------------------------------------------------------------------------------


def test_running_attack_tells_how_far_it_is_and_can_be_cancelled_by_organizers(client, system):
    run = make_attack_run(submission_of(system), state="running")
    job = Job.objects.get(parameters__data_set="tones_trials_f")
    Job.objects.filter(pk=job.pk).update(stage="Vectors of original tones_trials_f", done=3, total=8)
    for who, may_cancel in ((owner_of(system), False), (organizer_of(system), True)):
        for path in ("attacks/", "attacks/progress"):
            text = read_page(get(client, who, system, path))
            assert "Vectors of original tones_trials_f" in text
            assert "3 of 8" in text
            assert ("/cancel" in text) == may_cancel
    cancel = f"engine-runs/{run.pk}/cancel"
    assert post(client, owner_of(system), system, cancel).status_code == 404
    assert post(client, organizer_of(system), system, cancel).status_code == 302
    job.refresh_from_db()
    assert job.cancel_requested_at is not None


def test_failed_attack_says_why_and_goes_on(client, system):
    run = make_attack_run(submission_of(system), state="failed")
    failed = Job.objects.filter(state="failed").earliest("created_at")
    Job.objects.filter(pk=failed.pk).update(failure="The weights are missing.", failure_remedy="Fetch them.")
    text = read_page(get(client, organizer_of(system), system, "attacks/"))
    assert "The weights are missing. Fetch them." in text
    assert post(client, organizer_of(system), system, f"engine-runs/{run.pk}/continue").status_code == 302
    failed.refresh_from_db()
    assert failed.state == JobState.WAITING
    ended = post(client, organizer_of(system), system, f"engine-runs/{run.pk}/continue")
    assert ended.status_code == 302


def test_run_of_another_system_or_kind_is_no_run_of_this_one(client, system):
    other = make_team_system(make_team(system.edition))
    make_submission(other)
    foreign = make_attack_run(submission_of(other), state="running")
    objective = EvaluationRun.objects.filter(kind="objective").earliest("pk")
    for run in (foreign.pk, objective.pk, 999_999):
        assert post(client, organizer_of(system), system, f"engine-runs/{run}/cancel").status_code == 404


# What it costs -------------------------------------------------------------------------------------


def test_pages_cost_the_same_queries_however_many_attackers(client, system, django_assert_num_queries):
    engines = ["long-term-spectrum", "ge2e", "wespeaker-resnet34"]
    for engine in engines:
        make_attack_run(submission_of(system), engine, with_files=False)
        make_recognition_run(
            submission_of(system), {"long-term-spectrum": "moonshine-tiny"}.get(engine, "whisper-base")
        )
    client.force_login(owner_of(system))
    for path, queries in (("attacks/", 12), ("recognition/", 12), ("", 14)):
        with django_assert_num_queries(queries):
            assert client.get(f"/systems/{system.name}/{path}").status_code == 200
