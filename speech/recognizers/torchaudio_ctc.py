"""wav2vec 2.0 base with CTC from torchaudio's pipelines, where torchaudio can be imported and its weights are here.

No package carries these weights and nothing is fetched from the network: a person who has the file puts it into the
folder of models. It writes plain capitals without marks, as LibriSpeech's transcripts do; decoding is greedy, without a
language model. Conventions: as in `speech.recognizers.contract`; emissions have the shape (frames, labels).

Source: A. Baevski et al., "wav2vec 2.0", NeurIPS 2020; A. Graves et al., ICML 2006 (CTC, best path decoding, section
3.2).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from common.arrays import Samples
from common.errors import InputError
from common.packages import missing_packages
from speech.model_files.catalogue import read_engine
from speech.model_files.store import folder
from speech.recognizers.contract import ENGLISH, Device, RecognizerEngine, check_language, check_rate
from speech.recognizers.long_recordings import list_pieces

FILE = "wav2vec2_fairseq_base_ls960_asr_ls960.pth"
LONGEST_S = 30.0
_BLANK, _SPACE = 0, "|"


class CtcRecognizer:
    """A model that gives emissions for one utterance, and the labels that they are of."""

    def __init__(self, model: Any, labels: Sequence[str], device: Device) -> None:
        self._model, self._labels, self._device = model, tuple(labels), device

    def transcribe(self, utterances: Sequence[Samples], rate_hz: int, language: str = ENGLISH) -> list[str]:
        """Return what each utterance says; see `speech.recognizers.contract.Recognizer`."""
        check_rate(rate_hz, ENGINE.title)
        check_language(language, ENGINE)
        return [" ".join(filter(None, map(self._piece, list_pieces(one, LONGEST_S)))) for one in utterances]

    def _piece(self, samples: Samples) -> str:
        import torch

        # One at a time: the model normalises over the whole input, so padding would change the words.
        scaled = torch.from_numpy(samples.astype(np.float32) / 32768)[None].to(self._device)
        with torch.inference_mode():
            emissions, _ = self._model(scaled)
        return best_path(np.asarray(emissions[0].float().cpu().numpy(), dtype=np.float32), self._labels)


def best_path(emissions: NDArray[np.float32], labels: Sequence[str]) -> str:
    """Return the likeliest label of each frame, repetitions merged, blanks left out.

    Args:
        emissions: shape (frames, labels), any monotone function of the probabilities; label 0 is the blank.
        labels: one sign each; ``|`` stands between words.

    >>> best_path(np.eye(4, dtype=np.float32)[[1, 1, 0, 1, 2, 3, 0]], ["-", "A", "|", "B"])
    'AA B'
    """
    path = emissions.argmax(axis=1)
    kept = path[np.concatenate([[True], path[1:] != path[:-1]])] if path.size else path
    return " ".join("".join(labels[label] for label in kept if label != _BLANK).replace(_SPACE, " ").split())


def weights_path() -> Path:
    """Return where the weights are looked for."""
    return folder() / "wav2vec2" / FILE


def missing() -> str:
    """Return why the recogniser cannot run here, as one sentence; empty where it can."""
    if sentence := missing_packages(ENGINE.title, "torch", "torchaudio"):
        return sentence
    if not weights_path().is_file():
        return (
            f"{ENGINE.title} needs the weights {weights_path()}, which are missing: no package contains them, so copy "
            "the file of torchaudio's pipeline WAV2VEC2_ASR_BASE_960H to this place."
        )
    return ""


def load(device: Device) -> CtcRecognizer:
    """Return the recogniser.

    Raises:
        InputError: torchaudio or the weights are missing, or the weights do not fit the model.
    """
    if sentence := missing():
        raise InputError(sentence)
    try:
        from torchaudio.pipelines import WAV2VEC2_ASR_BASE_960H as PIPELINE
    except (ImportError, OSError) as error:
        raise InputError(
            f"{ENGINE.title} needs torchaudio, which cannot be imported here ({error}): its wheels need CUDA libraries."
        ) from error
    try:
        # The file is there, so torch's hub reads it and asks the network for nothing.
        model = PIPELINE.get_model(dl_kwargs={"model_dir": str(weights_path().parent), "weights_only": True})
    except (RuntimeError, KeyError, ValueError, EOFError) as error:
        raise InputError(f"{weights_path()} does not hold the weights of {ENGINE.title}: {error}") from error
    return CtcRecognizer(model.eval().to(device), PIPELINE.get_labels(), device)


ENGINE = read_engine(RecognizerEngine, __file__, "torchaudio-wav2vec2", load=load)
