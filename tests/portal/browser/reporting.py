"""What a team reports of its own speech, in the layout of the challenge: scores, and results of an untrained attack."""

import csv
import re
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from anonymization.methods.contract import Parameter
from anonymization.methods.mcadams.method import mcadams
from anonymization.methods.mcadams.parameters import McAdamsParameters
from anonymization.methods.voices.pseudo_speakers import draw_pseudo_speaker, pseudo_speaker_key
from common.arrays import Floats
from evaluation.formats.results import CATEGORIES, Speech
from evaluation.formats.scores import write_scores
from evaluation.metrics.catalogue import find_metric
from evaluation.metrics.detection import detection_metrics
from evaluation.objective_results.results.expected import ResultKind, detection_name, expected_lines
from evaluation.objective_results.results.results_2022 import make_reported_number
from portal.demo.archives import RATE_HZ, DemoSubmission, DemoUtterance
from speech.audio.files import read_pcm16
from speech.encoders.long_term_spectrum import score_trials, speaker_vector
from tests.evaluation.formats.writing import write_result_file, write_single_files

PAIRS = (
    (Speech.ORIGINAL, Speech.ORIGINAL),
    (Speech.ORIGINAL, Speech.ANONYMISED),
    (Speech.ANONYMISED, Speech.ANONYMISED),
)


def read_manifest(folder):
    """The utterances that the manifest of a part of the demo corpus lists."""
    with (folder / "utterances.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return [
        DemoUtterance(
            name=row["utterance_id"],
            speaker=row["speaker"],
            gender=row["gender"].lower(),
            data_set=row["data_set"],
            role=row["role"],
            samples=read_pcm16(folder / row["path"])[0],
        )
        for row in rows
    ]


def anonymise(utterances, alphas, seed):
    """Every utterance by B2, each speaker with one McAdams coefficient from the range `alphas` for each role."""
    alpha = Parameter("alpha", "", alphas[0], alphas[1], "McAdams coefficient")
    submission = DemoSubmission(utterances, {})
    for one in utterances:
        key = pseudo_speaker_key(seed=seed, role=one.role, split="test", speaker=one.speaker)
        voice = McAdamsParameters(alpha=draw_pseudo_speaker(key, (alpha,)).parameters["alpha"])
        submission.speech[one.name] = mcadams(one.samples, RATE_HZ, voice)
    return submission


def add_results(submission, recipe, stamp):
    """Attack the speech and add the results directory ``exp/results-<stamp>`` in the layout of the challenge."""
    vectors = {
        Speech.ORIGINAL: {one.name: speaker_vector(one.samples, RATE_HZ) for one in submission.utterances},
        Speech.ANONYMISED: {name: speaker_vector(samples, RATE_HZ) for name, samples in submission.speech.items()},
    }
    with TemporaryDirectory() as place:
        folder = Path(place) / f"results-{stamp}"
        folder.mkdir()
        (folder / "config.info").write_text("attacker: long-term spectrum, untrained\n", encoding="utf-8")
        reported_numbers = []
        for trials in recipe.sets("trial"):
            for pair in PAIRS:
                reported_numbers += _attack(submission, vectors, recipe, trials, pair, folder)
        write_single_files(folder, reported_numbers, recipe, ResultKind.ORIGINAL)
        with (folder / "results.txt").open("w", encoding="utf-8", newline="\n") as out:
            write_result_file(reported_numbers, ResultKind.ORIGINAL, recipe, out)
        for path in sorted(file for file in folder.rglob("*") if file.is_file()):
            submission.files[f"exp/{path.relative_to(place).as_posix()}"] = path.read_bytes()


def _attack(submission, vectors, recipe, trials, pair, folder):
    """Score one test, write its score file and report its numbers."""
    enrolment_speech, speech = pair
    enrolment: dict[str, list[Floats]] = {}
    for one in submission.utterances:
        if one.data_set == trials.enrolment and one.gender == trials.gender:
            enrolment.setdefault(one.speaker, []).append(vectors[enrolment_speech][one.name])
    tests = {one.name: one.speaker for one in submission.utterances if one.data_set == trials.name}
    pairs = [(model, test) for model in sorted(enrolment) for test in sorted(tests)]
    rows = score_trials(enrolment, {name: vectors[speech][name] for name in tests}, pairs)
    path = folder / detection_name(recipe, trials, enrolment_speech, speech) / "scores"
    path.parent.mkdir()
    with path.open("w", encoding="utf-8", newline="\n") as out:
        write_scores(rows, out)
    scores = np.array([np.float32(f"{np.float32(score):.6g}") for _, _, score in rows], np.float64)
    is_target = np.array([tests[test] == model for model, test, _ in rows])
    measured = detection_metrics(scores[is_target], scores[~is_target])
    wanted = (line.identities for line in expected_lines(recipe, ResultKind.ORIGINAL) if line.name == path.parent.name)
    for identity in (identity for identities in wanted for identity in identities):
        yield make_reported_number(identity, _value(measured, identity))


def _value(measured, identity):
    if identity.metric == "zebra_category":
        return float(CATEGORIES.index(measured.zebra.category))
    return measured.values()[find_metric(identity.metric, identity.estimator).key]


def overstate(submission, test, reported):
    """Report another EER of one test in every result file, such as ``EER: 20%``, as if typed by hand.

    Args:
        test: as result files name it, such as ``ASV-demo_enrolls_anon-demo_trials_f_anon``.
    """
    for path, content in submission.files.items():
        if path.endswith(f"/{test}/EER"):
            submission.files[path] = re.sub(rb"EER: \S+%", reported.encode(), content)
        elif path.endswith("/results.txt"):
            block = rf"^({re.escape(test)}\n +)EER: \S+%"
            submission.files[path] = re.sub(block.encode(), rb"\g<1>" + reported.encode(), content, flags=re.MULTILINE)
