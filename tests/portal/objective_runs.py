"""Submissions with objective numbers for tests of results and leaderboards: rows as the job leaves them."""

import io

import numpy as np

from evaluation.app.models import EvaluationRun
from evaluation.app.objective_results.selectors import read_objective_values
from evaluation.app.runs.kinds import OBJECTIVE
from evaluation.app.runs.selectors import list_newest_finished
from evaluation.app.runs.services import make_row
from evaluation.formats.results import AttackModel, Gender, NumberIdentity, Speech
from evaluation.objective_results.values import Basis, Number, average_identity, required_numbers, with_speech
from portal.core.storage import store_bytes
from portal.intake.contents import classify
from portal.jobs.models import Job, JobState
from portal.jobs.runner import execute
from portal.submissions.models import SubmittedDocument
from portal.submissions.services import accept_submission
from tests.portal.factories import add_files, make_corpus, make_edition, make_job


def make_objective_run(submission, numbers, *, missing=(), state="succeeded"):
    """A finished run with these `Number`s; `missing` as (what, reason, is_ranked)."""
    said = [{"what": what, "reason": reason, "is_ranked": is_ranked} for what, reason, is_ranked in missing]
    fields = {"title": f"Objective numbers of {submission}", **submission.system.place_of_work}
    numbers = list(numbers)
    unlike = sum(number.agrees is False for number in numbers)
    job = make_job(state, kind="objective", result={"missing": said, "disagreements": unlike}, **fields)
    run = EvaluationRun.objects.create(
        submission=submission,
        kind=EvaluationRun.Kind.OBJECTIVE,
        job=job,
        recipe_version="1",
        code_version="1.2.3",
        recipe=f"objective-{submission.system.edition.recipe.edition}",
    )
    run.values.model.objects.bulk_create(make_row(run, number) for number in numbers)
    return run


def number(edition, metric, estimator, data_set, value, *, attack="semi-informed", speech=Speech.ANONYMISED, **fields):
    """One number of a data set or of ``average_<split>``, with the speech that the edition's recipe tests it with."""
    recipe = edition.recipe
    known = recipe.data_sets.get(data_set)
    gender = Gender(known.gender) if known and known.role == "trial" else Gender.ALL
    identity = with_speech(
        recipe, NumberIdentity(data_set, gender, metric, estimator), attack_model=AttackModel(attack), speech=speech
    )
    defaults = {"basis": Basis.VALUES if data_set.startswith("average_") else Basis.SCORES, "n": 100}
    return Number(identity, value, **defaults | fields)


def ranked_numbers(edition, *, eer, wer, pitch=0.5, gain=-5.0, interval=1.0, basis=Basis.VALUES):
    """Everything that a recipe averages and gates by: all data sets at these values, and their averages."""
    recipe, track = edition.recipe, edition.ranked_track
    of_metric = {"eer": eer, "wer": wer, "pitch_correlation": pitch, "gain_of_voice_distinctiveness": gain, "uar": 40.0}
    numbers = [
        Number(identity, of_metric[identity.metric], Basis.SCORES, 100)
        for identity, _ in required_numbers(recipe, track)
    ]
    for average in track.averages:
        for split in average.weights:
            identity = average_identity(
                recipe, average, split, attack_model=AttackModel.SEMI_INFORMED, speech=Speech.ANONYMISED
            )
            value = of_metric[average.metric]
            numbers.append(Number(identity, value, basis, 6, low=value - interval, high=value + interval))
    return numbers


def add_documents(submission, files):
    """Give a submission these documents, content by path."""
    for path, content in files.items():
        kind = SubmittedDocument.Kind(classify(path).value)
        submission.documents.create(path=path, kind=kind, key=store_bytes(content, ""), bytes=len(content))
    return submission


def find_objective_run(submission):
    """The objective run of a submission that counts; None where it has none."""
    return next(iter(list_newest_finished(OBJECTIVE, [submission])), None)


def read_values_of_submission(submission):
    """All objective numbers of one submission."""
    return read_objective_values([submission])[submission.pk]


def evaluate(submission):
    """Accept a submission and run what follows, as a worker would; its state is then as that left it."""
    accept_submission(submission=submission)
    run_waiting_jobs()
    submission.refresh_from_db()
    return submission


def run_waiting_jobs():
    """Every waiting job in the order of its creation, mails left aside."""
    waiting = Job.objects.filter(state=JobState.WAITING, kind__in=["measure", "objective"]).order_by("created_at")
    return [ended for job in waiting if (ended := execute(job.pk))]


# Real score files for a corpus of tones ------------------------------------------------------------

OWN_RECIPE = """
edition = "tones"
title = "Tones"
anonymised_suffix = "_anon"
baselines = []
attack_models = ["unprotected", "ignorant", "lazy-informed", "semi-informed"]
uncertain = []

[data_sets]
tones_enrolls = { role = "enrolment", split = "test", gender = "all" }
tones_trials_f = { role = "trial", split = "test", gender = "f", enrolment = "tones_enrolls", original_value = 5.0 }
tones_trials_m = { role = "trial", split = "test", gender = "m", enrolment = "tones_enrolls" }
tones_asr = { role = "recognition", split = "test", gender = "all" }

[results]
detection = ["eer", "cllr", "rocch", "linkability", "population", "individual"]
recognition = ["tglarge"]
trial_set = ["pitch"]
distinctiveness = ["de_identification", "gain"]
ranked_recognition = "tglarge"
lm_weights = [7, 17]
word_insertion_penalties = ["0.0"]

[[metrics]]
key = "eer"
estimator = "kaldi"
primary = true
[[metrics]]
key = "eer"
estimator = "rocch"
primary = false
[[metrics]]
key = "min_cllr"
estimator = "pav"
primary = false
[[metrics]]
key = "linkability"
primary = false
[[metrics]]
key = "zebra_individual"
primary = false

[tracks.main]
languages = ["en"]

[[tracks.main.averages]]
metric = "eer"
estimator = "kaldi"
label = "Weighted average EER"
weights.test = { tones_trials_f = 0.5, tones_trials_m = 0.5 }
[[tracks.main.averages]]
metric = "wer"
estimator = "tglarge"
label = "Average WER"
weights.test = { tones_asr = 1.0 }
[[tracks.main.averages]]
metric = "pitch_correlation"
estimator = "praat"
label = "Weighted average pitch correlation"
weights.test = { tones_trials_f = 0.5, tones_trials_m = 0.5 }
[[tracks.main.averages]]
metric = "gain_of_voice_distinctiveness"
estimator = "official"
label = "Weighted average gain of voice distinctiveness"
weights.test = { tones_trials_f = 0.5, tones_trials_m = 0.5 }

[tracks.main.ranking]
split = "test"
attack_model = "semi-informed"
privacy = { metric = "eer", estimator = "kaldi" }
minimum_eers = [10, 20, 30]
policy = "cumulative"
inclusive = true
note_within = 0.05
utilities = [{ metric = "wer", estimator = "tglarge", better = "lower" }]
ties = "equal rank"
several_systems = "the best"
late = "unranked"
[[tracks.main.ranking.gates]]
metric = "pitch_correlation"
estimator = "praat"
minimum = 0.3
inclusive = false
groups = [["tones_trials_f", "tones_trials_m"]]
"""
STAMP = "exp/results-2026-01-02-03-04-05"
TEST = f"{STAMP}/ASV-tones_enrolls_anon-tones_trials_f_anon"  # semi-informed
TRIAL_SETS = ("tones_trials_f", "tones_trials_m")
# How well each test separates speakers: distance of the means of targets and nontargets.
SEPARATION = {
    ("", "", ".orig"): 6.0,
    ("", "_anon", ".orig"): 0.1,
    ("_anon", "_anon", ".orig"): 0.7,
    ("_anon", "_anon", ""): 2.0,
}


def tones_scores(corpus, *, every_attack=True, seed=1):
    """Score files of a corpus of tones by path: of every attack model, or of the semi-informed one alone."""
    random = np.random.default_rng(seed)
    files = {}
    for (enrolled, tested, kind), apart in SEPARATION.items():
        if kind == ".orig" and not every_attack:
            continue
        for data_set in TRIAL_SETS:
            lines = [
                f"{model} {utterance.name} {random.normal(apart * (model == utterance.speaker.name)):.6g}\n"
                for model, utterance in trial_pairs(corpus, data_set)
            ]
            files[f"{STAMP}{kind}/ASV-tones_enrolls{enrolled}-{data_set}{tested}/scores"] = "".join(lines).encode()
    return files


def trial_pairs(corpus, data_set):
    """The trials of a set of a corpus of tones: every model of the gender against every utterance."""
    utterances = corpus.data_sets.get(name=data_set).utterances.select_related("speaker").order_by("name")
    models = sorted({utterance.speaker.name for utterance in utterances})
    return [(model, utterance) for utterance in utterances for model in models]


def tones_words(corpus, *, wrong=()):
    """Hypotheses of the recognition set; of the utterances `wrong` the first word is another one."""
    lines = []
    for data_set in TRIAL_SETS:
        for utterance in corpus.data_sets.get(name=data_set).utterances.all():
            words = utterance.transcript.split()
            lines.append(" ".join([utterance.name, *(["WRONG", *words[1:]] if utterance.name in wrong else words)]))
    return {"hypotheses/tones_asr_anon.txt": ("\n".join(sorted(lines)) + "\n").encode()}


def tones_matrices(speakers):
    """Similarity matrices of both trial sets: original, crossed and anonymised voices."""
    files = {}
    for data_set in TRIAL_SETS:
        for pair, diagonal in (("osp_osp", 0.9), ("osp_psp", 0.2), ("psp_psp", 0.6)):
            matrix = np.full((speakers, speakers), 0.2)
            np.fill_diagonal(matrix, diagonal)
            packed = io.BytesIO()
            np.save(packed, matrix)
            name = f"{STAMP}/similarity_matrices_DeID_Gvd/{data_set}/similarity_matrix_{pair}.npy"
            files[name] = packed.getvalue()
    return files


def tones_edition(*, speakers=8, utterances=2, **fields):
    """An edition by a recipe of its own on a corpus of tones, audio and scores required."""
    corpus = make_corpus("tones", speakers=speakers, utterances=utterances)
    return make_edition(corpus, protocol="", recipe_text=OWN_RECIPE, **fields)


def add_audio(submission):
    """Every utterance of the corpus as it is: its pitch correlation is 1."""
    return add_files(submission)
