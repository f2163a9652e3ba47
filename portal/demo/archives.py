"""Makes what the teams of the demo challenge submit: speech by the portal's own anonymisers, as a zip.

Speakers get their voices as in runs of the portal: one for each role and split, all of them apart.
"""

from __future__ import annotations

import io
import zipfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, cast

import numpy as np

from anonymization.app.voice_assignment import split_of
from anonymization.methods.contract import Options, PseudoSpeaker, VoiceRequest, complete_options, plans_voices
from anonymization.methods.registry import get_method
from anonymization.methods.voices.pseudo_speakers import Role, plan_requests, plan_voices, pseudo_speaker_key
from common.arrays import Samples
from common.cores import count_cores
from portal.challenges.models import DataSet
from portal.core.storage import load_audio

RATE_HZ = 16_000


@dataclass(frozen=True, slots=True)
class DemoUtterance:
    """One recording of the corpus in one of its data sets."""

    name: str
    speaker: str
    gender: str
    data_set: str
    role: str
    samples: Samples
    split: str = "test"
    rate_hz: int = RATE_HZ


@dataclass(slots=True)
class DemoSubmission:
    """What one team hands in, before it is packed.

    Attributes:
        speech: the anonymised samples of each utterance.
        files: every other file by its path in the archive.
    """

    utterances: list[DemoUtterance]
    speech: dict[str, Samples]
    files: dict[str, bytes] = field(default_factory=dict)


def read_utterances(data_sets: Iterable[DataSet]) -> list[DemoUtterance]:
    """Return the recordings of these data sets."""
    found = []
    for data_set in data_sets:
        for one in data_set.utterances.select_related("speaker").order_by("name"):
            samples, rate_hz = load_audio(one.audio)
            place = (data_set.name, data_set.role, samples, split_of(data_set), rate_hz)
            found.append(DemoUtterance(one.name, one.speaker.name, one.speaker.gender, *place))
    return found


def anonymise(
    utterances: list[DemoUtterance],
    method: str,
    seed: int,
    options: Options | None = None,
    progress: Callable[[int, int], object] = lambda *_: None,
) -> DemoSubmission:
    """Return every utterance by a method, in the voice of its speaker in its role and split."""
    anonymiser = get_method(method)
    speakers: dict[str, set[str]] = defaultdict(set)
    for one in utterances:
        speakers[one.split].add(one.speaker)
    genders = {one.speaker: one.gender.lower() for one in utterances}
    voices: dict[tuple[str, str], Mapping[str, PseudoSpeaker]] = {}
    for role, split in {(one.role, one.split) for one in utterances}:
        place: dict[str, Any] = {"seed": seed, "role": cast("Role", role), "split": split}
        if plans_voices(anonymiser):
            names = sorted(speakers[split])
            requests = [VoiceRequest(pseudo_speaker_key(speaker=name, **place), genders[name]) for name in names]
            voices[role, split] = dict(zip(names, plan_requests(anonymiser, requests), strict=True))
        else:
            voices[role, split] = plan_voices(anonymiser.parameters, speakers=speakers[split], **place).voices
    settled = complete_options(anonymiser, options)
    submission = DemoSubmission(utterances, {})
    distinct = {one.name: one for one in reversed(utterances)}  # of an utterance in several data sets the first

    def speak(one: DemoUtterance) -> tuple[str, Samples]:
        voice = voices[one.role, one.split][one.speaker]
        return one.name, anonymiser.anonymize(one.samples, one.rate_hz, voice, options=settled)

    with ThreadPoolExecutor(count_cores()) as pool:
        for name, samples in pool.map(speak, distinct.values()):
            submission.speech[name] = samples
            progress(len(submission.speech), len(distinct))
    return submission


def describe(title: str, text: str) -> bytes:
    """Return a system description of one page, as PDF."""
    from matplotlib.backends.backend_pdf import FigureCanvasPdf
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.27, 11.69))
    FigureCanvasPdf(figure)
    figure.text(0.1, 0.9, title, fontsize=18)
    figure.text(0.1, 0.87, text, fontsize=11, va="top")
    content = io.BytesIO()
    figure.savefig(content, format="pdf", metadata={"Title": title})
    return content.getvalue()


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
                archive.writestr(str(path), _wav(submission.speech[one.name], one.rate_hz))
        for name, content in submission.files.items():
            archive.writestr(name, content)


def _wav(samples: Samples, rate_hz: int = RATE_HZ, channels: int = 1) -> bytes:
    import soundfile

    content = io.BytesIO()
    shaped = samples if channels == 1 else np.stack([samples] * channels, axis=1)
    soundfile.write(content, shaped, rate_hz, format="WAV", subtype="PCM_16")
    return content.getvalue()
