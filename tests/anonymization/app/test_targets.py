"""Runs whose voices are those of target speakers: asked for in the form, planned, made, shown, and told to trainers."""

import csv
import io

import pytest
from django.core.files.storage import default_storage

from anonymization.app.models import AnonymizationRun
from anonymization.app.services import start_anonymization
from anonymization.app.voice_assignment import TargetRequest, find_pseudo_speaker, find_targets
from anonymization.methods.contract import MethodError
from portal.challenges.models import Role, Utterance
from portal.jobs.models import JobState
from portal.jobs.runner import execute
from portal.submissions.models import Submission, SubmittedFile
from portal.submissions.services import create_baseline
from tests.pages import read_page
from tests.portal.archives import anonymised, hand_in, zip_of
from tests.portal.factories import make_corpus, make_edition, make_organizer, make_team, make_user

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("target_spectrum")]
FORM = "/systems/new/tones/"


@pytest.fixture
def corpus():
    """Four speakers who enrol and are tried, and two more who lend their voices and are trained on."""
    corpus = make_corpus("tones", speakers=6, utterances=1)
    lenders = corpus.data_sets.create(name="lenders", role=Role.TRAINING, split="train")
    for name in ("tones-s4", "tones-s5"):
        own = Utterance.objects.filter(speaker__name=name)
        lenders.utterances.add(*own)
        for data_set in corpus.data_sets.exclude(pk=lenders.pk):
            data_set.utterances.remove(*own)
    return corpus


@pytest.fixture
def organizer(client):
    client.force_login(make_organizer())
    return client


def start(corpus, name="tones_trials_f", *, selection="random", seed=1, **settings):
    submission = create_baseline(name=f"filtered-{selection}-{seed}", title="Filter by a target", corpus=corpus)
    lenders = TargetRequest(corpus.data_sets.get(name="lenders"), selection)
    [run] = start_anonymization(
        submission=submission,
        data_sets=[corpus.data_sets.get(name=name)],
        method="filtered",
        seed=seed,
        targets=lenders,
        **settings,
    )
    return run


# Planned -------------------------------------------------------------------------------------------


def test_run_keeps_pool_selection_and_the_target_of_each_speaker(corpus):
    run = start(corpus, selection="same-gender")
    run.refresh_from_db()
    assert (run.target_set.name, run.target_selection, run.level) == ("lenders", "same-gender", "speaker")
    assert run.targets == {"tones-s0": "tones-s4", "tones-s2": "tones-s4"}
    assert {name: len(keys) for name, keys in run.target_recordings.items()} == {"tones-s4": 2, "tones-s5": 2}
    assert find_targets(run.submission, run.data_set) == dict.fromkeys(
        run.data_set.utterances.values_list("name", flat=True), "tones-s4"
    )


def test_run_at_utterance_level_keeps_the_target_of_each_utterance(corpus):
    run = start(corpus, "tones_enrolls", level="utterance")
    names = set(run.data_set.utterances.values_list("name", flat=True))
    assert set(run.targets) == names
    assert find_targets(run.submission, run.data_set) == run.targets
    for utterance in run.data_set.utterances.select_related("speaker"):
        assert find_pseudo_speaker(run, utterance).target == run.targets[utterance.name]


def test_targets_are_refused_in_words(corpus):
    data_set = corpus.data_sets.get(name="tones_trials_f")
    submission = create_baseline(name="filtered", title="Filter by a target", corpus=corpus)
    asked = {"submission": submission, "data_sets": [data_set], "seed": 1}
    with pytest.raises(MethodError, match="filtered gives the voices of target speakers: choose the data set"):
        start_anonymization(method="filtered", **asked)
    with pytest.raises(MethodError, match="mcadams-2022 draws its voices and takes no targets"):
        start_anonymization(method="mcadams-2022", targets=TargetRequest(data_set), **asked)
    empty = corpus.data_sets.create(name="empty", role=Role.TRAINING)
    with pytest.raises(MethodError, match="has no audio, so that nobody in it can be a target"):
        start_anonymization(method="filtered", targets=TargetRequest(empty), **asked)
    assert not AnonymizationRun.objects.exists()


# Made ----------------------------------------------------------------------------------------------


def test_job_gives_every_utterance_the_voice_of_its_target_and_says_what_is_shared(corpus):
    run = start(corpus)
    job = execute(run.job.pk)
    assert (job.state, job.failure) == (JobState.SUCCEEDED, "")
    files = SubmittedFile.objects.filter(submission=run.submission)
    assert files.count() == run.data_set.utterances.count() == 2
    originals = set(run.data_set.utterances.values_list("audio", flat=True))
    assert not originals & set(files.values_list("audio", flat=True))
    run.refresh_from_db()
    assert run.report["voices"]["n_voices"] == len(set(run.targets.values()))


def test_run_with_an_utterance_that_came_later_fails_with_a_sentence(corpus):
    run = start(corpus)
    run.data_set.utterances.add(Utterance.objects.get(name="tones-s1-000"))
    job = execute(run.job.pk)
    assert job.state == JobState.FAILED
    assert "1 of 3 speakers of" in job.failure
    assert "have no target in this run" in job.failure
    assert "tones-s1" in job.failure


# Asked for and shown -------------------------------------------------------------------------------


def asked(corpus, **changes):
    sets = [corpus.data_sets.get(name="tones_trials_f").pk]
    return {"method": "filtered", "seed": 7, "data_sets": sets, "name": "mine"} | changes


def test_form_starts_a_run_with_the_targets_that_were_chosen(organizer, corpus):
    lenders = corpus.data_sets.get(name="lenders")
    page = read_page(organizer.get(FORM))
    assert '<select name="filtered__target_set"' in page
    assert '<option value="one-per-source">One for each speaker</option>' in page
    chosen = {"filtered__target_set": lenders.pk, "filtered__target_selection": "constant", "filtered__taps": "8"}
    assert organizer.post(FORM, asked(corpus, **chosen)).headers["Location"] == "/systems/mine/"
    run = AnonymizationRun.objects.get()
    assert (run.target_set, run.target_selection, run.options["taps"]) == (lenders, "constant", 8.0)
    shown = read_page(organizer.get("/systems/mine/runs/tones_trials_f/"))
    assert "<dt>Targets</dt><dd>One for all, from the 2 speakers of lenders</dd>" in shown
    assert f'<td data-label="Target">{run.targets["tones-s0"]}</td>' in shown
    rows = list(csv.reader(io.StringIO(organizer.get("/systems/mine/runs/tones_trials_f/voices.csv").content.decode())))
    assert rows[0] == ["utterance", "target"]
    assert dict(rows[1:]) == find_targets(run.submission, run.data_set)


def test_who_organizes_nothing_sees_no_targets(client, corpus):
    start(corpus)
    client.force_login(make_user())
    response = client.get("/systems/filtered-random-1/runs/tones_trials_f/voices.csv")
    assert response.status_code == 404


# Uploaded ------------------------------------------------------------------------------------------


def select_demo_submissions(corpus, targets):
    team = make_team(make_edition(corpus, scores_required=False))
    return hand_in(team, zip_of({**anonymised(corpus), "archive/targets.csv": targets.encode()}))


def test_problems_of_an_archives_targets_are_warnings_and_stop_who_would_use_them(corpus):
    submission = select_demo_submissions(corpus, "utterance,target\ntones-s0-001,v7\ntones-s0-001,v8\n")
    with default_storage.open(submission.report) as report:
        assert "contradiction" in report.read().decode()
    assert submission.state != Submission.State.REFUSED
    with pytest.raises(MethodError, match=r"targets.csv, line 3: expected one target for tones-s0-001"):
        find_targets(submission, corpus.data_sets.get(name="tones_trials_f"))
