"""The numbers of a training as files, and what was learnt as an archive."""

from __future__ import annotations

import shutil
import tempfile
import zipfile
from collections.abc import Iterator
from typing import IO, Any

from django.core.files.storage import default_storage
from django.http import Http404

from evaluation.attackers.training.values import MEASURES
from evaluation.models import EvaluationRun
from evaluation.selectors_training import REPORT, epochs_of, report_of, seeds_of, trained_seeds
from evaluation.services_training import ENCODER_FILES, encoder_key
from portal.submissions.models import System

CHUNK_BYTES = 1 << 20


def epoch_rows(run: EvaluationRun) -> Iterator[list[Any]]:
    """A line for each epoch of each seed; error rates are shares, what does not exist is empty."""
    yield ["seed", "epoch", "seconds", *MEASURES]
    for seed, epochs in epochs_of([run])[run.pk].items():
        for epoch in epochs:
            cells = [epoch.values.get(name) for name in MEASURES]
            yield [seed, epoch.epoch, f"{epoch.seconds:.3f}", *("" if cell is None else cell for cell in cells)]


def as_dict(run: EvaluationRun, system: System) -> dict[str, Any]:
    """Everything that a training measured, with its recipe."""
    epochs = epochs_of([run])[run.pk]
    report = report_of(epochs)
    spreads = {name: report.spread(name) for name in ("source_error", "target_error", "target_probe")}
    return {
        "system": system.name,
        "submission_version": run.submission.version,
        "training": run.pk,
        "recipe": run.parameters["recipe"],
        "recipe_version": run.recipe_version,
        "code_version": run.code_version,
        "variant": run.parameters["variant"],
        "data_sets": run.parameters["data_sets"],
        "device": run.parameters["device"],
        "unit": "shares of held-out segments; deviations are those of a sample over the seeds",
        "report": {
            name: None if found is None else {"mean": found.mean, "deviation": found.deviation, "n": len(found.values)}
            for name, found in spreads.items()
        },
        "seeds": [
            {
                "seed": seed,
                "final": next((one.values[REPORT] for one in epochs.get(seed, []) if REPORT in one.values), None),
                "epochs": [
                    {"epoch": one.epoch, "seconds": one.seconds}
                    | {name: value for name, value in one.values.items() if name != REPORT}
                    for one in epochs.get(seed, [])
                ],
            }
            for seed in seeds_of(run)
        ],
    }  # fmt: skip


def attacker_archive(run: EvaluationRun, seed: int) -> IO[bytes]:
    """A zip of the attacker of a seed: its weights, its recipe and its values; "not found" until it is trained."""
    keys = {name: encoder_key(run, seed, name) for name in ENCODER_FILES}
    if seed not in trained_seeds(run) or not all(map(default_storage.exists, keys.values())):
        raise Http404
    packed = tempfile.TemporaryFile(prefix="attacker-")  # noqa: SIM115 - whoever sends it closes it
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_STORED) as archive:
        for name, key in keys.items():
            with default_storage.open(key) as stored, archive.open(name, "w", force_zip64=True) as place:
                shutil.copyfileobj(stored, place, CHUNK_BYTES)
    packed.seek(0)
    return packed
