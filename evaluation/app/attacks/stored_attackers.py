"""Attackers that the portal trained: on which speech, where they lie, and how an attack loads them.

A training run has several seeds (`evaluation.app.attacker_training`); what came of each lies in the storage under
`seed_folder`: while it is trained the state after its newest epoch, then the attacker itself.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.core.files.storage import default_storage

from common.errors import InputError
from evaluation.app.models import EvaluationRun, TrainingEpoch
from evaluation.attackers.back_ends import Plda
from evaluation.attackers.training.trained_attacker import (
    BACK_END,
    TrainedAttacker,
    attacking_encoder,
    load_trained,
    read_back_end,
)
from evaluation.attackers.trial_scores import PRESETS
from evaluation.formats.results import Speech
from speech.encoders.contract import Device, SpeakerEncoder

# What a finished attacker consists of.
ENCODER_FILES = ("model.safetensors", "recipe.json", "values.csv")
MODEL_FILE, DESCRIPTION_FILE = ENCODER_FILES[:2]
BACK_END_FILE = BACK_END  # where its recipe compares by PLDA
# Under this name the values of the last epoch of a seed hold what was measured once it was trained: the fields of
# `evaluation.attackers.training.trained_attacker.FinalValues`. The other names are those of `EpochRecord.values`.
REPORT = "report"
COSINE = "2024"  # the way of comparing that needs no fitted back end


def list_seeds(run: EvaluationRun) -> list[int]:
    """Return the seeds that a training was asked for."""
    return [int(seed) for seed in run.parameters["seeds"]]


def speech_of_training(parameters: Mapping[str, Any]) -> Speech:
    """Return the speech that an attacker was trained on, of the parameters of its training or of its attack."""
    return Speech(parameters.get("trained_on", Speech.ANONYMISED))


def has_back_end(training: EvaluationRun) -> bool:
    """Return whether the attackers of a training compare by LDA and PLDA of their own."""
    return training.parameters["recipe"].get("back_end") == "plda"


def list_files(training: EvaluationRun) -> tuple[str, ...]:
    """Return the files of a finished attacker of a training."""
    return (*ENCODER_FILES, BACK_END_FILE) if has_back_end(training) else ENCODER_FILES


def list_trained_seeds(run: EvaluationRun) -> list[int]:
    """Return the seeds of a run whose attacker is ready to be used."""
    rows = TrainingEpoch.objects.filter(run=run, values__has_key=REPORT)
    known = set(rows.values_list("seed", flat=True))
    return [seed for seed in list_seeds(run) if seed in known]


def read_own_eer(attack: EvaluationRun) -> float | None:
    """Return the EER of a trained attacker on held-out speech of its own training speakers, in per cent.

    None where it was not measured, and of an attacker that was not trained here.
    """
    if "trained" not in attack.parameters:
        return None
    epochs = TrainingEpoch.objects.filter(run=attack.parameters["trained"], seed=attack.parameters.get("seed", 0))
    report: dict[str, Any] = next((one.values[REPORT] for one in epochs.order_by("-epoch") if REPORT in one.values), {})
    share = report.get("own_eer")
    return None if share is None else 100 * float(share)


def seed_folder(run: EvaluationRun, seed: int) -> str:
    """Return where everything of a seed lies in the storage."""
    return f"derived/attackers/{run.pk}/seed-{seed}"


def checkpoint_key(run: EvaluationRun, seed: int, epoch: int) -> str:
    """Return where the state after an epoch lies while the seed is being trained."""
    return f"{seed_folder(run, seed)}/epoch-{epoch}.pt"


def encoder_key(run: EvaluationRun, seed: int, name: str = MODEL_FILE) -> str:
    """Return where a file of the finished attacker lies."""
    return f"{seed_folder(run, seed)}/{name}"


def engine_key(run: EvaluationRun, seed: int) -> str:
    """Under which the vectors of this attacker are kept."""
    return f"trained-{run.pk}-s{seed}"


def list_scorings(training: EvaluationRun) -> tuple[str, ...]:
    """Return the presets by which a trained attacker attacks: its own way, and beside PLDA the cosine of the same
    vectors."""
    return ("", COSINE) if has_back_end(training) else ("",)


def describe_scoring(training: EvaluationRun, preset: str = "") -> str:
    """Return how an attack by an attacker of a training compares vectors, such as ``PLDA``."""
    if (PRESETS[preset].back_end if preset else training.parameters["recipe"].get("back_end")) == "plda":
        return "PLDA"
    return "cosine" if preset in ("", COSINE) else f"cosine as in {preset}"


def name_attacker(training: EvaluationRun, seed: int, preset: str = "") -> str:
    """Return the name of an attacker; one that compares otherwise than its training intends has a name of its own."""
    is_usual = describe_scoring(training, preset) == describe_scoring(training)
    return engine_key(training, seed) if is_usual else f"{engine_key(training, seed)}-{preset}"


def attack_parameters(training: EvaluationRun, seed: int, preset: str = "") -> dict[str, Any]:
    """Return what an attack by a trained attacker keeps of it; `evaluation.app.runs.kinds.describe_engine` reads it."""
    return {
        "engine_key": engine_key(training, seed),
        "trained": training.pk,
        "seed": seed,
        "preset": preset,
        "trained_on": str(speech_of_training(training.parameters)),
        "recipe": training.recipe,
        "scoring": describe_scoring(training, preset),
    }


def load_attacker(run: EvaluationRun, seed: int, device: Device = "cpu") -> TrainedAttacker:
    """Return the attacker of a seed, with what it was trained on and what it reached.

    Raises:
        InputError: the seed is not trained, its files are gone or damaged, or torch is missing.
    """
    with _fetched(run, seed, ENCODER_FILES) as folder:
        return load_trained(folder, device)


def load_back_end(run: EvaluationRun, seed: int) -> Plda | None:
    """Return what compares the vectors of a seed's attacker; None where it is the cosine.

    Raises:
        InputError: as `load_attacker`.
    """
    if not has_back_end(run):
        return None
    with _fetched(run, seed, (DESCRIPTION_FILE, BACK_END_FILE)) as folder:
        return read_back_end(folder)


@contextmanager
def _fetched(run: EvaluationRun, seed: int, names: Iterable[str]) -> Iterator[Path]:
    """Yield a folder with some files of a seed's attacker."""
    if seed not in list_trained_seeds(run):
        raise InputError(f"Training {run.pk} has no finished attacker with seed {seed}; wait until its job has ended.")
    with tempfile.TemporaryDirectory(prefix="attacker-") as place:
        folder = Path(place)
        for name in names:
            try:
                with default_storage.open(encoder_key(run, seed, name)) as stored:
                    (folder / name).write_bytes(stored.read())
            except FileNotFoundError as error:
                raise InputError(
                    f"{encoder_key(run, seed, name)} is missing in the portal's files: restore it from a backup, or "
                    "train again."
                ) from error
        yield folder


def load_encoder(run: EvaluationRun, seed: int, device: Device = "cpu") -> SpeakerEncoder:
    """Return the encoder of a seed, to attack with: centred where its recipe asks for it.

    Raises:
        InputError: as `load_attacker`.
    """
    return attacking_encoder(load_attacker(run, seed, device))
