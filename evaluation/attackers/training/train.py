"""Train a recogniser on a corpus of anonymised speech: the one function that the portal and the command call.

**The training** (`train`) cuts the corpus, computes features, trains epoch by epoch with checkpoints, takes the mean
vector for centring, fits fresh probes and, where the recipe has one, the back end, and leaves a folder that
`trained_attacker.load_trained` reads. A training that was killed goes on from its last epoch. Its stages are
``reading``, ``features``, ``training``, ``training mean``, ``probe`` and ``back end``.

**Fresh linear probes** (`fresh_probe`) say what the finished vectors still tell about a speaker. A classifier that was
trained against the recogniser may be wrong although the information is there; a new one that is fitted afterwards is
not misled. It is fitted on some vectors and tested on others: of other segments, or of other sources.

Conventions: vectors have shape (n, d), labels shape (n,); errors are shares.

Sources of the probes: G. Alain, Y. Bengio, "Understanding intermediate layers using linear classifier probes", 2016;
the need for them here: Y. Elazar, Y. Goldberg, "Adversarial removal of demographic attributes from text data", EMNLP
2018.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from common.arrays import unit_vectors
from common.errors import InputError
from common.progress import Count, Progress, ignore_progress
from evaluation.attackers.back_ends import Plda
from evaluation.attackers.training import trained_attacker
from evaluation.attackers.training.corpus import (
    RATE_HZ,
    Indices,
    Segments,
    TrainingUtterance,
    cut,
    read_checked,
    require_sound,
)
from evaluation.attackers.training.recipe import Network, TrainingRecipe
from evaluation.formats.equal_scores import describe_open_eer
from evaluation.metrics.detection import kaldi_eer
from speech.encoders.contract import Device
from speech.encoders.ecapa_voxceleb import LogMelEncoder
from speech.model_files.training_states import other_training

if TYPE_CHECKING:
    from torch import nn

    from evaluation.attackers.training.epochs import Fitted, TrainingCallbacks
    from evaluation.attackers.training.features import FeatureStore
    from speech.encoders.networks import XvectorTdnn

Vectors = npt.NDArray[np.float32]
Labels = npt.NDArray[np.int64]
TEST_SHARE = 0.2
_MOST_ITERATIONS = 150
_PENALTY = 1e-4  # of the squared weights, per vector
_TINY = 1e-6


def fresh_probe(
    train: Vectors, train_labels: Labels, test: Vectors, test_labels: Labels, *, classes: int, split: str
) -> trained_attacker.ProbeResult:
    """Fit a linear classifier on some vectors and count its errors on others.

    Args:
        train, test: shape (n, d); length and spread are taken off first, as the cosine does not see them.
        train_labels, test_labels: shape (n,), from 0 to `classes` − 1.
        classes: how many there are, whether or not each occurs.
        split: how the two sets differ, for the report.

    Raises:
        InputError: no vector on one side, or vectors that are not finite.
    """
    if not len(train) or not len(test):
        raise InputError(f"Expected vectors to fit and to test, found {len(train)} and {len(test)}.")
    if not (np.isfinite(train).all() and np.isfinite(test).all()):
        raise InputError("Expected vectors of finite numbers for a probe, found others.")
    guesses = _fitted_guesses(_directions(train), train_labels, _directions(test), classes)
    error = float((guesses != test_labels).mean())
    return trained_attacker.ProbeResult(error, 1 - 1 / classes, len(train), len(test), classes, split)


def other_sources(sources: Labels, seed: int, share: float = TEST_SHARE) -> npt.NDArray[np.bool_]:
    """Which rows to test on, so that no source is on both sides, shape (n,).

    Args:
        sources: source of each row.
        share: of the sources; at least one, and at least one is left.

    Raises:
        InputError: fewer than two sources.
    """
    names = np.unique(sources)
    if names.size < 2:
        raise InputError(f"Expected at least 2 sources to hold some out, found {names.size}.")
    count = min(names.size - 1, max(1, round(share * names.size)))
    chosen = np.random.default_rng([seed, names.size]).permutation(names)[:count]
    return np.isin(sources, chosen)


def _directions(vectors: Vectors) -> Vectors:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.maximum(lengths, _TINY), dtype=np.float32)


def _fitted_guesses(train: Vectors, labels: Labels, test: Vectors, classes: int) -> Labels:
    """Multinomial logistic regression by L-BFGS on standardised columns."""
    import torch

    centre, spread = train.mean(axis=0), train.std(axis=0) + _TINY
    inputs = torch.from_numpy((train - centre) / spread)
    wanted = torch.from_numpy(labels)
    weights = torch.zeros(classes, train.shape[1], requires_grad=True)
    offsets = torch.zeros(classes, requires_grad=True)
    optimiser = torch.optim.LBFGS(
        [weights, offsets], max_iter=_MOST_ITERATIONS, history_size=10, line_search_fn="strong_wolfe"
    )

    def closure() -> float:
        optimiser.zero_grad()
        loss = torch.nn.functional.cross_entropy(inputs @ weights.T + offsets, wanted)
        loss = loss + _PENALTY * weights.square().sum()
        loss.backward()  # type: ignore[no-untyped-call, unused-ignore]
        return float(loss.detach())

    optimiser.step(closure)  # type: ignore[no-untyped-call, unused-ignore]
    with torch.no_grad():
        scores = torch.from_numpy((test - centre) / spread) @ weights.T + offsets
    return scores.argmax(dim=1).numpy()


FEWEST_SPEAKERS = 10  # that PLDA is fitted on; published evaluators have hundreds
UTTERANCES_AT_ONCE = 64  # read together where whole utterances are embedded
MOST_PROBED = 20_000  # vectors; more change a probe of a few hundred dimensions little and take long
_BYTES_PER_PARAMETER = 16  # weight, gradient, two moments
# Floats that a frame of a batch leaves behind in the network for a channel of its width, counted over its layers.
_ACTIVATIONS_PER_CHANNEL: dict[Network, int] = {"ecapa-tdnn": 45, "x-vector": 23}


@dataclass(frozen=True)
class TrainingPlan:
    """What a training will do, from durations alone.

    Attributes:
        segments: count_segments in all.
        steps_per_epoch, steps: updates of the recogniser.
        parameters: of the recogniser, without its classifiers.
        bytes_needed: roughly, for network, one batch and features.
    """

    segments: int
    steps_per_epoch: int
    steps: int
    parameters: int
    bytes_needed: int


def plan_training(durations_s: Sequence[float], recipe: TrainingRecipe, sources: int) -> TrainingPlan:
    """Count what a training will do, before anything is read.

    Args:
        durations_s: of the utterances.
        sources: how many speakers.

    Raises:
        InputError: torch is not installed.
    """
    trained_attacker.require_torch("cpu")
    import torch

    from evaluation.attackers.training.heads import build_encoder

    def count_segments(seconds: float) -> int:
        full, rest = divmod(seconds, recipe.segment_s)
        return int(full) + (rest >= recipe.shortest_s)

    segments = sum(map(count_segments, durations_s))
    held_out = sources if recipe.validation == "last segment" else segments // 10
    training = max(0, segments - held_out)
    batch = max(1, min(recipe.batch, training))
    per_epoch = training // batch if recipe.drop_last else math.ceil(training / batch)
    with torch.device("meta"):
        parameters = sum(one.numel() for one in build_encoder(recipe).parameters())
    frames = round(recipe.crop_s * 100)
    activations = batch * frames * recipe.width * _ACTIVATIONS_PER_CHANNEL[recipe.network] * 4
    features = round(sum(durations_s) * 100) * 2 * recipe.mel_bands
    needed = parameters * _BYTES_PER_PARAMETER + activations + features
    return TrainingPlan(segments, per_epoch, per_epoch * recipe.epochs, parameters, needed)


def train(
    utterances: Sequence[TrainingUtterance],
    recipe: TrainingRecipe,
    seed: int,
    folder: Path,
    progress: Progress = ignore_progress,
    *,
    on_epoch: Callable[[trained_attacker.EpochRecord], None] = ignore_progress,
    on_estimate: Callable[[trained_attacker.TrainingEstimate], None] = ignore_progress,
    device: Device = "cpu",
    system: str = "",
) -> trained_attacker.TrainedAttacker:
    """Train one recogniser, or go on training it, or return it where it is finished.

    Args:
        utterances: anonymised speech, 16 kHz.
        seed: of weights, batches and windows; an interrupted training ends as it would have without.
        folder: of this seed alone; made where it is missing.
        progress: stage, done, total; often; whatever it raises ends the training.
        on_epoch: after each epoch's checkpoint is on disk; epochs of an earlier process are told again.
        on_estimate: once, after the first steps.
        device: ``cuda`` computes features there and trains in mixed precision (bfloat16).
        system: the anonymiser that made the speech, kept in the description.

    Raises:
        InputError: libraries are missing; the corpus cannot be used, with a sentence for each problem; it has
            too few speakers or utterances for PLDA; the folder holds another training; memory is full.
    """
    trained_attacker.require_torch(device)
    require_sound(utterances, targets=recipe.target_head != "none")
    if problem := find_back_end_problem([one.source for one in utterances], recipe):
        raise InputError(problem)
    from evaluation.attackers.training.epochs import TrainingCallbacks, is_out_of_memory

    try:
        return _train(
            utterances, recipe, seed, folder, TrainingCallbacks(progress, on_epoch, on_estimate), device, system
        )
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        raise InputError(
            f"Memory ran out while a recogniser of width {recipe.width} was trained on {len(utterances)} "
            "utterances. Choose a smaller width or batch, or stop other programs that use memory."
        ) from error


def _train(
    utterances: Sequence[TrainingUtterance],
    recipe: TrainingRecipe,
    seed: int,
    folder: Path,
    callbacks: TrainingCallbacks,
    device: Device,
    system: str,
) -> trained_attacker.TrainedAttacker:
    import torch

    from evaluation.attackers.training.epochs import fit, training_key
    from evaluation.attackers.training.features import make_store
    from evaluation.attackers.training.heads import build_encoder

    progress = callbacks.progress
    segments = cut(utterances, recipe, seed, partial(progress, "reading"))
    key = training_key(recipe, seed, segments)
    if trained_attacker.is_finished(folder):
        return _finished(folder, key, device, callbacks)
    told = partial(progress, "features")
    store = make_store(utterances, segments, torch.device(device), told, bands=recipe.mel_bands)
    fitted = fit(lambda: build_encoder(recipe), store, segments, recipe, seed, folder, callbacks)
    final, mean = measure_finished(fitted, store, segments, recipe, seed, progress)
    used = np.unique(segments.piece_utterance)
    final = replace(final, unused_utterances=len(utterances) - used.size)
    back_end = None
    if recipe.back_end == "plda":
        heard = [utterances[place] for place in used]
        back_end = fit_back_end(fitted.encoder, heard, recipe, device, partial(progress, "back end"))
    targets = segments.targets if recipe.target_head != "none" else ()
    description = trained_attacker.AttackerDescription(
        recipe, seed, segments.sources, targets, mean, final, fitted.kept_epoch, key, system=system
    )
    trained_attacker.save_trained(folder, fitted.encoder, fitted.epochs, description, back_end)
    (folder / trained_attacker.CHECKPOINT).unlink(missing_ok=True)
    return trained_attacker.load_trained(folder, device)


def find_back_end_problem(speakers: Sequence[str], recipe: TrainingRecipe) -> str:
    """Return why the back end of a recipe cannot be fitted on utterances of these speakers, a sentence; empty where it
    can."""
    if recipe.back_end != "plda":
        return ""
    found = Counter(speakers)
    several = sum(count for count in found.values() if count > 1)
    repeated = sum(1 for count in found.values() if count > 1)
    if repeated < FEWEST_SPEAKERS:
        return (
            f"PLDA learns how speakers differ: expected at least {FEWEST_SPEAKERS} training speakers with two "
            f"utterances each, found {repeated}. Add speakers, or choose a recipe that compares by cosine."
        )
    if recipe.loading == 0 and several - repeated < recipe.embedding:
        return (
            f"LDA learns how a speaker's utterances vary in {recipe.embedding} dimensions: expected at least "
            f"{recipe.embedding + repeated} utterances of {repeated} speakers, found {several}. Add utterances, or "
            "choose a recipe with diagonal loading (2022-small)."
        )
    return ""


def fit_back_end(
    encoder: nn.Module,
    utterances: Sequence[TrainingUtterance],
    recipe: TrainingRecipe,
    device: Device,
    progress: Count = ignore_progress,
) -> Plda:
    """LDA and PLDA on one vector of each whole training utterance, as Kaldi's evaluator fits them.

    Utterances without any sound are left out.

    Args:
        encoder: trained.
        progress: done and total utterances.

    Raises:
        InputError: too few speakers or utterances are left, or the covariance within speakers is singular.
    """
    network = LogMelEncoder(cast("XvectorTdnn", encoder), device)
    vectors: list[Vectors] = []
    speakers: list[str] = []
    for start in range(0, len(utterances), UTTERANCES_AT_ONCE):
        progress(start, len(utterances))
        read = [(one.source, read_checked(one)) for one in utterances[start : start + UTTERANCES_AT_ONCE]]
        heard = [(source, samples) for source, samples in read if samples.any()]
        if heard:
            vectors.append(network.embed([samples for _, samples in heard], RATE_HZ))
            speakers += [source for source, _ in heard]
    progress(len(utterances), len(utterances))
    if problem := find_back_end_problem(speakers, recipe):
        raise InputError(problem)
    return Plda.fit(
        np.concatenate(vectors).astype(np.float64),
        speakers,
        lda_dimensions=recipe.lda_dimensions,
        loading=recipe.loading,
    )


def measure_finished(
    fitted: Fitted,
    store: FeatureStore,
    segments: Segments,
    recipe: TrainingRecipe,
    seed: int,
    progress: Progress = ignore_progress,
) -> tuple[trained_attacker.FinalValues, Vectors]:
    """Return the last numbers of a training and the mean vector of its training segments, shape (d,).

    Probes are fitted on at most `MOST_PROBED` training segments and tested on those held out; where none are, on a
    fifth of the training segments, which the recogniser knows, so that their errors come out low.
    """
    from evaluation.attackers.training.epochs import embed_rows

    telling = partial(progress, "training mean")
    training, held_out = segments.training_rows, segments.validation_rows
    seen = embed_rows(fitted.encoder, store, segments, training, recipe, telling).numpy()
    unseen = embed_rows(fitted.encoder, store, segments, held_out, recipe).numpy() if held_out.size else seen[:0]
    mean = seen.astype(np.float64).mean(axis=0).astype(np.float32)
    progress("probe", 0, 1)
    probes = _probes(seen, unseen, segments, seed)
    progress("probe", 1, 1)
    kept = fitted.epochs[fitted.kept_epoch - 1].values
    with_target = recipe.target_head != "none"
    final = trained_attacker.FinalValues(
        source_error=kept["source_error"],
        target_error=kept["target_error"],
        **trained_attacker.chance_levels(segments, with_targets=with_target),
        training_segments=training.size,
        held_out_segments=held_out.size,
        n_sources=len(segments.sources),
        n_targets=len(segments.targets) if with_target else 0,
        seconds=sum(one.seconds for one in fitted.epochs),
        source_probe=probes[0],
        target_probe=probes[1],
        target_probe_other_sources=probes[2],
        **(_own_eer(seen, unseen, segments) if len(unseen) else {}),
    )
    return final, mean


def _own_eer(seen: Vectors, unseen: Vectors, segments: Segments) -> dict[str, Any]:
    """Return the EER (Kaldi) of held-out segments against the means of the sources, or why it is open.

    Nothing of a single source.
    """
    sources, row = np.unique(segments.source[segments.training_rows], return_inverse=True)
    own = segments.source[segments.validation_rows][:, None] == sources
    if len(sources) < 2 or not own.any():
        return {}
    sums = np.zeros((len(sources), seen.shape[1]))
    np.add.at(sums, row, seen.astype(np.float64))
    models, tests = (unit_vectors(side, "vectors") for side in (sums, unseen.astype(np.float64)))
    scores = tests @ models.T
    if why := describe_open_eer(scores[own], scores[~own]):
        return {"own_eer_open": why}
    return {"own_eer": kaldi_eer(scores[own], scores[~own])}


def _probes(
    seen: Vectors, unseen: Vectors, segments: Segments, seed: int
) -> tuple[trained_attacker.ProbeResult, trained_attacker.ProbeResult | None, trained_attacker.ProbeResult | None]:
    """Probes on sources, on targets, and on targets with other sources."""
    random = np.random.default_rng([seed, 0, 1])
    order = random.permutation(len(seen))[:MOST_PROBED]
    rows = segments.training_rows[order]
    if len(unseen):
        fitted_on, train, tested_on, test = rows, seen[order], segments.validation_rows, unseen
        split = "segment"
    else:
        split = "training segment"
        apart = max(1, len(order) // 5)
        fitted_on, train, tested_on, test = rows[apart:], seen[order[apart:]], rows[:apart], seen[order[:apart]]

    def probed(labels: Labels, classes: int) -> trained_attacker.ProbeResult:
        return fresh_probe(train, labels[fitted_on], test, labels[tested_on], classes=classes, split=split)

    source = probed(segments.source, len(segments.sources))
    if len(segments.targets) < 2:
        return source, None, None
    return source, probed(segments.target, len(segments.targets)), _across_sources(seen[order], rows, segments, seed)


def _across_sources(vectors: Vectors, rows: Indices, segments: Segments, seed: int) -> trained_attacker.ProbeResult:
    apart = other_sources(segments.source[rows], seed)
    labels = segments.target[rows]
    return fresh_probe(
        vectors[~apart], labels[~apart], vectors[apart], labels[apart], classes=len(segments.targets), split="source"
    )


def _finished(folder: Path, key: str, device: Device, callbacks: TrainingCallbacks) -> trained_attacker.TrainedAttacker:
    if trained_attacker.read_description(folder).key != key:
        raise other_training(folder)
    attacker = trained_attacker.load_trained(folder, device)
    for record in attacker.epochs:
        callbacks.epoch(record)
    return attacker
