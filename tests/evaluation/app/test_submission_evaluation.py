"""Editions that the portal evaluates: what follows an acceptance, what numbers rest on, what holds them back."""

from dataclasses import replace

import pytest
from django.utils import timezone

from evaluation.app.attacker_training.handlers import _Turn
from evaluation.app.attacks import handlers as attacks
from evaluation.app.attacks.stored_attackers import REPORT
from evaluation.app.audio_measures.selectors import WordCount, count_utterance_errors
from evaluation.app.models import EvaluationRun, Hypothesis, SpeakerVector
from evaluation.app.objective_results.selectors import read_originals
from evaluation.app.submission_evaluation.services import start_originals
from evaluation.attackers.training.recipe import TRAINING_ENGINE
from evaluation.formats.results import AttackModel, Speech
from evaluation.objective_results.leaderboard_entries import ORIGINAL, ORIGINAL_LABEL
from evaluation.objective_results.values import Basis
from portal.challenges.models import Utterance
from portal.core.health import write_heartbeat
from portal.jobs.models import Job, JobState
from portal.jobs.runner import execute
from portal.jobs.selectors import with_estimates
from portal.jobs.services import run_again
from portal.jobs.turns import find_next
from portal.jobs.workers import Capacity
from portal.leaderboard.selectors import build_leaderboard
from portal.leaderboard.services import change_recipe
from portal.submissions.models import Submission
from portal.submissions.selectors import explain_hold, list_stopped
from portal.submissions.services import accept_submission, evaluate_again
from speech.encoders import registry as encoders
from speech.recognizers import registry
from tests.portal.attack_submissions import SPECTRUM, expected_metrics, make_unprotected_submission, store_samples
from tests.portal.factories import RATE_HZ, make_corpus, make_edition, make_organizer, recipe_of
from tests.portal.objective_runs import (
    OWN_RECIPE,
    add_documents,
    find_objective_run,
    read_values_of_submission,
    tones_edition,
    tones_scores,
)
from tests.portal.trainings import TINY, epoch_values, final_values, needs_torch

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("quick_figures", "quick_measures", "few_resamples"),
]
RECOGNIZER = registry.DEFAULT
TRIALS = "tones_trials_f"
METRICS = {SPECTRUM: ("eer", "kaldi", "average_test"), RECOGNIZER: ("wer", "tglarge", "average_test")}


@pytest.fixture(autouse=True)
def recognizer(monkeypatch):
    """The default recogniser, as if all its parts were here: what it understood is kept before it is asked."""
    monkeypatch.setattr(registry, "explain_missing", lambda _: "")
    return registry.find_engine(RECOGNIZER)


def edition_by(who, *, speakers=4, **changes):
    """An edition that the portal evaluates, with the attacker that every machine has."""
    table = f'by = "{who}"\nattackers = ["{SPECTRUM}"]\nrecognizer = "{RECOGNIZER}"\n'
    text = OWN_RECIPE.replace('attack_model = "semi-informed"', 'attack_model = "lazy-informed"')
    edition = tones_edition(speakers=speakers, **changes)
    edition.recipe_text = text.replace("[[metrics]]", f"[evaluation]\n{table}\n[[metrics]]", 1)
    edition.save()
    return edition


def understood(engine, wrong=()):
    """Keep what the recogniser hears as people write it: every word, but for the first of some utterances."""
    rows = {one.audio: f"{one.transcript.capitalize()}." for one in Utterance.objects.all()}
    for submission in Submission.objects.all():
        for file in submission.files.select_related("utterance"):
            words = file.utterance.transcript.lower().split()
            rows[file.audio] = " ".join(["noise", *words[1:]] if file.utterance.name in wrong else words)
    Hypothesis.objects.bulk_create(Hypothesis(engine=engine.key, audio=key, text=text) for key, text in rows.items())


def make_speech(edition, state="received"):
    """Anonymised speech that differs from the original, each recording by itself."""
    submission = make_unprotected_submission(edition, state=state)
    for place, file in enumerate(submission.files.order_by("pk")):
        submission.files.filter(pk=file.pk).update(audio=store_samples([place + 1, 300] * 4000))
    return submission


def work():
    """Every job in its turn, as a worker would, until none can run."""
    while jobs := [one for one in Job.objects.filter(state=JobState.WAITING).exclude(kind="mail") if _ready(one)]:
        for job in jobs:
            execute(job.pk)


def _ready(job):
    return job.after is None or job.after.state == JobState.SUCCEEDED


def evaluate(submission):
    accept_submission(submission=submission)
    work()
    submission.refresh_from_db()
    return submission


def make_evaluated():
    """Speech that the portal alone has attacked and recognised, with one word wrong."""
    submission = make_speech(edition_by("portal"))
    understood(registry.find_engine(RECOGNIZER), ["tones-s0-002"])
    return evaluate(submission)


@pytest.fixture
def evaluated(once):
    return once(make_evaluated)


def test_accepted_speech_is_attacked_recognised_and_ranked_by_the_portal(evaluated, client):
    submission, edition = evaluated, evaluated.system.edition
    assert submission.state == Submission.State.EVALUATED
    kinds = [run.kind for run in submission.evaluation_runs.order_by("pk")]
    assert kinds == ["measures", "measures", "measures", "attack", "recognition", "objective"]
    values = read_values_of_submission(submission)
    assert values.unrankable == ()
    engines = "Long-term spectrum, version 1 and Moonshine tiny (English), version 0.1.0"
    assert values.computed_by == f"the portal with {engines}"
    originals = {one.name: one.audio for one in Utterance.objects.all()}
    anonymised = {file.utterance.name: file.audio for file in submission.files.select_related("utterance")}
    for attack, enrolled in ((AttackModel.IGNORANT, originals), (AttackModel.LAZY_INFORMED, anonymised)):
        found = values.number("eer", "kaldi", data_set=TRIALS, attack_model=attack)
        enrol, tested = (lambda one, of=of: of[one.name] for of in (enrolled, anonymised))
        assert found.value == pytest.approx(100 * expected_metrics(edition.corpus, TRIALS, enrol, tested).kaldi_eer)
        assert (found.basis, found.reported) == (Basis.SCORES, None)
    wer = values.number("wer", "tglarge", data_set="tones_asr")
    # One of forty words is another; capitals and full stops of the originals are no errors.
    assert (wer.value, wer.basis, wer.n) == (2.5, Basis.TRANSCRIPTS, 40)
    assert values.number("wer", "tglarge", data_set="tones_asr", speech=Speech.ORIGINAL).value == 0.0
    said = dict(Utterance.objects.values_list("name", "transcript"))
    words = count_utterance_errors([submission], said, edition.recipe)[submission.pk, Speech.ANONYMISED]
    assert (words["tones-s0-002"], words["tones-s0-003"]) == (WordCount(1, 5), WordCount(0, 5))
    assert {one.attack_model for one in values.score_sets} == {"unprotected", "ignorant", "lazy-informed"}
    board = build_leaderboard(edition)
    original, entry = board.entries
    assert original.privacy is not None
    assert entry.privacy is not None
    eer = values.average("eer", "kaldi", split="test", attack_model=AttackModel.LAZY_INFORMED).value
    assert (entry.privacy.value, entry.utilities["wer"].value) == (eer, 2.5)
    assert (original.key, original.utilities["wer"].value) == (ORIGINAL, 0.0)
    assert (
        original.privacy.value
        == values.average("eer", "kaldi", split="test", attack_model=AttackModel.UNPROTECTED).value
    )
    assert not board.table.unrankable
    client.force_login(edition.organizers.get())
    for page in ("", "attacks/"):
        text = client.get(f"/systems/{submission.system.name}/{page}").text
        assert ("Long-term spectrum" in text, "Uploaded scores" in text) == (True, False)


def test_original_stands_on_the_leaderboard_before_any_system_does(recognizer, client):
    edition = edition_by("portal")
    submission = make_speech(edition)
    understood(recognizer)
    jobs = start_originals(submission=submission)
    assert start_originals(submission=submission) == []  # once for a recipe
    assert [job.engine for job in jobs] == [SPECTRUM, RECOGNIZER]
    assert jobs[1].title == f"Recognition by Moonshine tiny (English) · original speech of {edition}"
    for job in jobs:
        assert METRICS[job.engine] not in read_originals(edition)
        execute(job.pk)
        assert METRICS[job.engine] in read_originals(edition)
    board = build_leaderboard(edition)
    [alone] = board.entries
    client.force_login(edition.organizers.get())
    page = client.get(f"/editions/{edition.name}/leaderboard/")
    assert "No system has been evaluated yet" in page.text
    assert ORIGINAL_LABEL in page.text.partition("<table")[2]
    evaluate(submission)
    original, _ = build_leaderboard(edition).entries
    # Of submissions naturalness is predicted, and scores are stored.
    assert alone == replace(original, averages={}, tests={})


def test_job_of_the_originals_goes_to_a_worker_that_has_its_engine(recognizer):
    edition = edition_by("portal")
    [attack, recognition] = start_originals(submission=make_speech(edition))
    without = Capacity(engines=(SPECTRUM,))
    assert find_next("cpu", without) == attack.pk
    Job.objects.filter(pk=attack.pk).update(state=JobState.FAILED)
    assert find_next("cpu", without) is None
    assert find_next("cpu", Capacity(engines=(RECOGNIZER,))) == recognition.pk
    write_heartbeat("a worker", kind="worker", queues=["cpu"], engines=[SPECTRUM])
    [told] = with_estimates([Job.objects.get(pk=recognition.pk)])
    assert told.wait.startswith(f"No running worker has the engine “{RECOGNIZER}”")
    # What failed is made again by itself.
    [again] = start_originals(submission=Submission.objects.get())
    assert again.engine == SPECTRUM


def test_with_both_the_numbers_of_the_team_stand_beside_those_that_rank(recognizer):
    edition = edition_by("both")
    submission = add_documents(make_speech(edition), tones_scores(edition.corpus))
    understood(recognizer)
    evaluate(submission)
    values = read_values_of_submission(submission)
    lazy = values.number("eer", "kaldi", data_set=TRIALS, attack_model=AttackModel.LAZY_INFORMED)
    assert lazy.basis is Basis.SCORES
    assert lazy.reported is not None
    assert (lazy.reported_in, lazy.agrees) == ("from the scores", None)
    # Nobody but the team attacked semi-informed.
    semi = values.number("eer", "kaldi", data_set=TRIALS, attack_model=AttackModel.SEMI_INFORMED)
    pitch = values.average("pitch_correlation", "praat", split="test")
    assert pitch.is_recomputed
    assert (semi.basis, semi.reported) == (Basis.REPORTED, semi.value)
    [entry] = [one for one in build_leaderboard(edition).entries if one.key != ORIGINAL]
    assert entry.privacy is not None
    assert not entry.is_reported
    assert (
        entry.privacy.value
        == values.average("eer", "kaldi", split="test", attack_model=AttackModel.LAZY_INFORMED).value
    )


def test_missing_engine_holds_the_evaluation_and_it_goes_on_once_the_engine_is_there(recognizer, monkeypatch, client):
    edition = edition_by("portal")
    submission = make_speech(edition)
    understood(recognizer)
    monkeypatch.setattr(registry, "explain_missing", lambda _: "The model is not here. Fetch it with this command.")
    evaluate(submission)
    assert submission.state == Submission.State.FAILED
    assert submission.evaluated_at is None
    assert not [one for one in build_leaderboard(edition).entries if one.key != ORIGINAL]
    why = "The model is not here. Fetch it with this command. Then run the job again; what was finished is kept."
    assert submission.events.last().note == explain_hold(submission) == why
    assert list_stopped(edition) == [(submission, why)]
    organizer = edition.organizers.get()
    client.force_login(organizer)
    for address in (
        f"/editions/{edition.name}/leaderboard/",
        f"/submissions/{submission.pk}/",
        f"/systems/{submission.system.name}/",
    ):
        assert "The model is not here. Fetch it with this command." in client.get(address).text
    monkeypatch.setattr(registry, "explain_missing", lambda _: "")
    run_again(Job.objects.get(kind="hypotheses", state=JobState.FAILED), by=organizer)
    work()
    submission.refresh_from_db()
    assert submission.state == Submission.State.EVALUATED
    assert read_values_of_submission(submission).unrankable == ()


def test_voices_of_a_part_of_a_set_give_no_number(recognizer):
    edition = edition_by("portal", speakers=6)
    submission = make_speech(edition)
    understood(recognizer)
    evaluate(submission)
    of_set = {"data_set": TRIALS}
    voices = ("gain_of_voice_distinctiveness", "de_identification")
    values = read_values_of_submission(submission)
    assert all(values.number(metric, "official", **of_set) for metric in voices)
    lost = submission.files.filter(utterance__data_sets__name=TRIALS).order_by("pk").first()
    SpeakerVector.objects.filter(audio=lost.audio).delete()
    attack = EvaluationRun.objects.filter(kind="attack").latest("pk")
    for run in (attack, find_objective_run(submission)):
        assert run.job is not None
        Job.objects.filter(pk=run.job.pk).update(state=JobState.WAITING, claim=None, attempt=0)
        ended = execute(run.job.pk)
        assert ended is not None
        assert ended.state == JobState.SUCCEEDED
    values = read_values_of_submission(submission)
    assert not any(values.number(metric, "official", **of_set) for metric in voices)
    assert values.number(voices[0], "official", data_set="tones_trials_m")


def test_two_speakers_give_neither_interval_nor_voice_distinctiveness_but_the_reason(evaluated):
    values = read_values_of_submission(evaluated)
    assert values.number("gain_of_voice_distinctiveness", "official", data_set=TRIALS) is None
    few = f"{TRIALS} has 2 speakers; it takes 3 to say how voices differ"
    assert few in {one.reason for one in values.missing}
    rates = [one for one in values.numbers.values() if one.identity.metric == "eer" and not one.is_average]
    assert rates
    assert not any(one.low is not None and one.low == one.high for one in rates)


def test_job_that_no_worker_takes_is_told(recognizer):
    submission = make_speech(edition_by("portal"))
    accept_submission(submission=submission)
    submission.refresh_from_db()
    assert "no worker serves the queue cpu. The operator has to start one that does." in explain_hold(submission)
    write_heartbeat("a worker", kind="worker", queues=["cpu", "light"], processes=1)
    assert explain_hold(submission) == ""


@needs_torch
def test_attacker_is_trained_on_the_anonymised_training_set_and_ranks(monkeypatch):
    learnt_on = {}

    def learn(turn, utterances, device):
        learnt_on[device] = {one.source for one in utterances}
        values = epoch_values(1, 1, TINY) | {REPORT: final_values(0.5) | {"own_eer": 0.31}}
        turn.run.epochs.create(seed=turn.seed, epoch=1, seconds=1.0, values=values)

    monkeypatch.setattr(_Turn, "go", learn)
    monkeypatch.setattr(attacks, "load_encoder", lambda *_: encoders.load(SPECTRUM, "cpu"))
    # Who starts one worker for all queues has no graphics card by that.
    write_heartbeat("a worker", kind="worker", queues=["cpu", "gpu", "light"], processes=1)
    corpus = make_corpus(speakers=4)
    training = corpus.data_sets.create(name="tones_train", role="training", split="train")
    for name in ("learnt-0", "learnt-1"):
        person = corpus.speakers.create(name=name, gender="f")
        training.utterances.add(corpus.utterances.create(speaker=person, name=name, samples=9600, rate_hz=RATE_HZ))
    edition = make_edition(corpus, recipe_text=recipe_of(corpus, training="small"), protocol="")
    submission = make_speech(edition)
    evaluate(submission)
    assert submission.state == Submission.State.EVALUATED
    runs = list(submission.evaluation_runs.exclude(kind="measures").order_by("pk"))
    assert [run.kind for run in runs] == ["attack", "training", "attack", "objective"]
    assert (runs[1].job.kind, runs[1].job.queue, runs[1].job.engine) == ("train-attacker", "cpu", TRAINING_ENGINE)
    assert set(Job.objects.filter(parameters__run=runs[2].pk).values_list("kind", "engine")) == {
        ("vectors", TRAINING_ENGINE),
        ("attack", ""),
    }
    assert learnt_on == {"cpu": {"learnt-0", "learnt-1"}}
    values = read_values_of_submission(submission)
    assert (values.missing, values.unrankable) == ((), ())
    semi = values.average("eer", "kaldi", split="test", attack_model=AttackModel.SEMI_INFORMED)
    [entry] = [one for one in build_leaderboard(edition).entries if one.key != ORIGINAL]
    assert entry.privacy
    assert entry.privacy.value == semi.value
    # What only the attack knows of its attacker stands on the leaderboard too, for each set that is averaged.
    assert any(one.startswith("tones_trials_f: It fails on the speakers that it") for one in entry.weak_attack)
    # What failed for want of a card is tried again on what there is.
    EvaluationRun.objects.filter(pk=runs[1].pk).update(parameters=runs[1].parameters | {"device": "cuda"})
    Job.objects.filter(pk=runs[1].job_id).update(state=JobState.FAILED)
    evaluate_again(submission=submission, by=make_organizer())
    work()
    runs[1].refresh_from_db()
    assert (runs[1].parameters["device"], runs[1].job.state) == ("any", JobState.SUCCEEDED)


def test_edition_page_leads_to_a_baseline_of_this_edition_with_all_of_its_data_sets(client):
    edition = edition_by("portal")
    client.force_login(edition.organizers.get())
    page = client.get(f"/editions/{edition.name}/").text
    assert f"/systems/new/tones/?edition={edition.name}" in page
    form = client.get(f"/systems/new/tones/?edition={edition.name}").context["form"]
    assert form["edition"].initial == edition.pk
    assert set(form["data_sets"].initial) == set(edition.corpus.data_sets.values_list("pk", flat=True))


def test_changed_recipe_is_computed_from_the_portals_own_runs(evaluated):
    submission = evaluated
    edition, by = submission.system.edition, make_organizer()
    before = read_values_of_submission(submission)
    text = edition.recipe_text.replace("tones_trials_f = 0.5, tones_trials_m = 0.5", "tones_trials_f = 1.0", 1)
    submission.system.edition = change_recipe(edition=edition, text=text, now=timezone.now(), by=by)
    assert read_values_of_submission(submission).run is None
    work()
    after = read_values_of_submission(submission)
    ranks = {"split": "test", "attack_model": AttackModel.LAZY_INFORMED}
    [old, new] = (one.average("eer", "kaldi", **ranks) for one in (before, after))
    of_set = after.number("eer", "kaldi", data_set=TRIALS, attack_model=AttackModel.LAZY_INFORMED)
    assert (new.value, new.has_interval) == (of_set.value, old.has_interval)
    assert after.rests_on == before.rests_on
