"""Makes what the teams of the demo challenge submit: anonymised speech, scores, results and hypotheses, as a zip.

Everything is computed here and now by the portal's own code: the demo corpus through B2 with McAdams coefficients of a
given range, attacked by the untrained attacker of `speech.encoders.long_term_spectrum`. Only the recogniser is
simulated, and its estimator is called so: it hears no speech, it makes errors in the transcripts. A word is misheard
with a probability that grows with what was done to the voice, (1 − α)² of McAdams coefficient α, and differs between
utterances, whose sentences are easy or hard for whatever system. So each utterance has a word error rate that goes with
its distortion, as a real recogniser's does; its numbers say nothing about real ones.
"""

from __future__ import annotations

import csv
import hashlib
import io
import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import cast

import numpy as np
import numpy.typing as npt

from anonymization.methods.contract import Parameter
from anonymization.methods.mcadams.method import mcadams
from anonymization.methods.mcadams.parameters import McAdamsParameters
from anonymization.methods.voices.pseudo_speakers import Role, draw_pseudo_speaker, pseudo_speaker_key
from evaluation.formats.results import CATEGORIES, NumberIdentity, ReportedNumber, Speech
from evaluation.formats.scores import write_scores
from evaluation.metrics.catalogue import find_metric
from evaluation.metrics.detection import DetectionMetrics, detection_metrics
from evaluation.protocols.recipes import DataSet, Recipe
from evaluation.scoring.results.expected import ResultKind, detection_name, expected_lines
from evaluation.scoring.results.results_2022 import make_reported_number, write_result_file, write_single_files
from speech.audio.files import read_pcm16
from speech.encoders.long_term_spectrum import Floats, score_trials, speaker_vector

ERROR_OF_ORIGINAL = 0.02
ERROR_OF_DISTORTION = 0.7
LARGEST_ERROR = 0.9
SPREAD_OF_SENTENCES = 0.7  # standard deviation of the logarithm of how hard a sentence is
DELETED, INSERTED = 0.25, 0.15  # shares of the errors; the others are substitutions
Samples = npt.NDArray[np.int16]
RATE_HZ = 16_000
PAIRS = (
    (Speech.ORIGINAL, Speech.ORIGINAL),
    (Speech.ORIGINAL, Speech.ANONYMISED),
    (Speech.ANONYMISED, Speech.ANONYMISED),
)


def recognise(words: Sequence[str], error: float, vocabulary: Sequence[str], draws: np.random.Generator) -> list[str]:
    """The words with errors: each one is wrong with this probability, left out, followed by another or replaced."""
    heard: list[str] = []
    for word in words:
        kind = draws.random() if draws.random() < error else 1.0
        other = vocabulary[int(draws.integers(len(vocabulary)))]
        if kind >= 1.0:
            heard.append(word)
        elif kind < DELETED:
            continue
        elif kind < DELETED + INSERTED:
            heard += [word, other]
        else:
            heard.append(other)
    return heard


def hypotheses(transcripts: Mapping[str, str], alphas: Mapping[str, float], seed: int) -> bytes:
    """A Kaldi ``text`` of what is recognised.

    Args:
        transcripts: by utterance, words at spaces.
        alphas: McAdams coefficient of each utterance; 1 for original speech.
        seed: of the system; how hard a sentence is does not depend on it.
    """
    vocabulary = sorted({word for text in transcripts.values() for word in text.split()})
    lines = []
    for name in sorted(transcripts):
        hardness = np.exp(SPREAD_OF_SENTENCES * _draws(f"sentence {name}").standard_normal())
        error = (ERROR_OF_ORIGINAL + ERROR_OF_DISTORTION * (1 - alphas[name]) ** 2) * hardness
        chance = min(LARGEST_ERROR, float(error))
        heard = recognise(transcripts[name].split(), chance, vocabulary, _draws(f"{seed} {name}"))
        lines.append(" ".join([name, *heard]))
    return ("\n".join(lines) + "\n").encode()


def _draws(key: str) -> np.random.Generator:
    return np.random.default_rng(list(hashlib.sha256(f"recogniser {key}".encode()).digest()))


@dataclass(frozen=True, slots=True)
class DemoUtterance:
    """One recording of the demo corpus."""

    name: str
    speaker: str
    gender: str
    data_set: str
    role: str
    samples: Samples
    transcript: str = ""


@dataclass(slots=True)
class DemoSubmission:
    """What one team hands in, before it is packed.

    Attributes:
        speech: the anonymised samples of each utterance.
        files: every other file by its path in the archive.
        alphas: the McAdams coefficient of each utterance.
    """

    utterances: list[DemoUtterance]
    speech: dict[str, Samples]
    files: dict[str, bytes] = field(default_factory=dict)
    alphas: dict[str, float] = field(default_factory=dict)


def read_demo_corpus(folder: Path) -> list[DemoUtterance]:
    """The utterances that the manifest of the demo corpus lists."""
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
            transcript=row["transcript"],
        )
        for row in rows
    ]


def anonymise(utterances: list[DemoUtterance], alphas: tuple[float, float], seed: int) -> DemoSubmission:
    """Every utterance by B2, each speaker with one McAdams coefficient from the range `alphas` for each role."""
    alpha = Parameter("alpha", "", *alphas, "McAdams coefficient")
    submission = DemoSubmission(utterances, {})
    for one in utterances:
        key = pseudo_speaker_key(seed=seed, role=cast("Role", one.role), split="test", speaker=one.speaker)
        voice = draw_pseudo_speaker(key, (alpha,))
        chosen = submission.alphas[one.name] = voice.parameters["alpha"]
        submission.speech[one.name] = mcadams(one.samples, RATE_HZ, McAdamsParameters(alpha=chosen))
    return submission


def add_results(submission: DemoSubmission, recipe: Recipe, stamp: str) -> None:
    """Attack the speech and add the results directory ``exp/results-<stamp>`` in the layout of the challenge."""
    vectors = _vectors(submission)
    with TemporaryDirectory() as place:
        folder = Path(place) / f"results-{stamp}"
        folder.mkdir()
        (folder / "config.info").write_text("attacker: long-term spectrum, untrained\n", encoding="utf-8")
        reported_numbers: list[ReportedNumber] = []
        for trials in recipe.sets("trial"):
            for pair in PAIRS:
                reported_numbers += _attack(submission, vectors, recipe, trials, pair, folder)
        write_single_files(folder, reported_numbers, recipe, ResultKind.ORIGINAL)
        with (folder / "results.txt").open("w", encoding="utf-8", newline="\n") as out:
            write_result_file(reported_numbers, ResultKind.ORIGINAL, recipe, out)
        for path in sorted(file for file in folder.rglob("*") if file.is_file()):
            submission.files[f"exp/{path.relative_to(place).as_posix()}"] = path.read_bytes()


def add_hypotheses(submission: DemoSubmission, recipe: Recipe, seed: int) -> None:
    """Add what the simulated recogniser takes the trial utterances for, before and after anonymisation."""
    transcripts = {one.name: one.transcript for one in submission.utterances if one.role == "trial"}
    for one in recipe.sets("recognition"):
        for suffix, alphas in (("", dict.fromkeys(transcripts, 1.0)), (recipe.anonymised_suffix, submission.alphas)):
            path = f"hypotheses/{one.name}{suffix}.txt"
            submission.files[path] = hypotheses(transcripts, alphas, seed if suffix else 0)


def _vectors(submission: DemoSubmission) -> Mapping[Speech, dict[str, Floats]]:
    return {
        Speech.ORIGINAL: {one.name: speaker_vector(one.samples, RATE_HZ) for one in submission.utterances},
        Speech.ANONYMISED: {name: speaker_vector(samples, RATE_HZ) for name, samples in submission.speech.items()},
    }


def _attack(
    submission: DemoSubmission,
    vectors: Mapping[Speech, dict[str, Floats]],
    recipe: Recipe,
    trials: DataSet,
    pair: tuple[Speech, Speech],
    folder: Path,
) -> Iterator[ReportedNumber]:
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


def _value(measured: DetectionMetrics, identity: NumberIdentity) -> float:
    if identity.metric == "zebra_category":
        return float(CATEGORIES.index(measured.zebra.category))
    return measured.values()[find_metric(identity.metric, identity.estimator).key]


def describe(title: str, text: str) -> bytes:
    """A system description of one page, as PDF."""
    from matplotlib.backends.backend_pdf import FigureCanvasPdf
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.27, 11.69))
    FigureCanvasPdf(figure)
    figure.text(0.1, 0.9, title, fontsize=18)
    figure.text(0.1, 0.87, text, fontsize=11, va="top")
    content = io.BytesIO()
    figure.savefig(content, format="pdf", metadata={"Title": title})
    return content.getvalue()


def overstate(submission: DemoSubmission, test: str, reported: str) -> None:
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


def spoil(submission: DemoSubmission, suffix: str) -> None:
    """Seed the problems that organizers know: each of another kind, in another utterance."""
    names = sorted(submission.speech)
    originals = {one.name: one for one in submission.utterances}
    left_out, copied, stereo, cut, silent, clipped, empty, twin = names[:8]
    del submission.speech[left_out]
    submission.speech[copied] = originals[copied].samples
    submission.speech[cut] = submission.speech[cut][: submission.speech[cut].size // 2]
    submission.speech[silent] = np.zeros_like(submission.speech[silent])
    submission.speech[clipped] = np.clip(submission.speech[clipped].astype(np.int32) * 40, -32768, 32767).astype(
        np.int16
    )
    submission.speech[twin] = submission.speech[names[8]]
    for name, content in ((stereo, _wav(submission.speech[stereo], channels=2)), (empty, b"")):
        del submission.speech[name]
        submission.files[f"{originals[name].data_set}{suffix}/wav/{name}.wav"] = content
    submission.files["wavs/somebody-else-0001.wav"] = _wav(originals[names[9]].samples)
    submission.files["__MACOSX/._notes"] = b"left by a file manager"


def pack(submission: DemoSubmission, target: Path, suffix: str) -> None:
    """Write the archive: ``<set><suffix>/wav/<utterance>.wav`` and the other files."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for one in submission.utterances:
            if one.name in submission.speech:
                path = PurePosixPath(f"{one.data_set}{suffix}", "wav", f"{one.name}.wav")
                archive.writestr(str(path), _wav(submission.speech[one.name]))
        for name, content in submission.files.items():
            archive.writestr(name, content)


def _wav(samples: Samples, channels: int = 1) -> bytes:
    import soundfile

    content = io.BytesIO()
    shaped = samples if channels == 1 else np.stack([samples] * channels, axis=1)
    soundfile.write(content, shaped, RATE_HZ, format="WAV", subtype="PCM_16")
    return content.getvalue()
