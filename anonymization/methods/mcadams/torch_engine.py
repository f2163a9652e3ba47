"""The McAdams filter on torch: all frames of a batch at once, on a graphics card where torch finds one.

The steps are those of `engine`, in float64; only the roots of a frame are moved all together instead of one
after the other, so outputs differ by rounding: before quantisation by less than 1e-9 of the peak.

Conventions: tensors are float64 of shape (what, frames), frames last; a polynomial has shape (order + 1, frames) and
leading coefficient 1. Torch is not typed here, so that the portal is checked the same with and without it.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from anonymization.methods.contract import MethodError
from anonymization.methods.mcadams import numba_engine
from anonymization.methods.mcadams.parameters import FULL_SCALE, OFFSET, McAdamsParameters
from common.arrays import Floats, Samples
from common.packages import missing_packages
from speech.model_files.devices import use_torch_threads

Tensor = Any

# A processor works from its cache; a card needs many frames, 42 MB for each step of the filter.
_FRAMES_PER_BATCH = {"cpu": 512, "cuda": 16_384}

_MAX_ITERATIONS = 60


class _Piece(NamedTuple):
    """Consecutive frames of an utterance. block: where they begin in their batch, in hops."""

    utterance: int
    frames: range
    block: int


def load_torch() -> Any:
    """Return the module torch. Raises MethodError where it is not installed or cannot be loaded."""
    try:
        return importlib.import_module("torch")
    except (ImportError, OSError) as error:
        raise MethodError(
            f"{missing_packages('The engine torch', 'torch') or f'The package torch cannot be loaded here ({error}).'} "
            'Or choose the engine "compiled".'
        ) from error


class _Torch:
    """The module torch, imported when something of it is first asked for."""

    def __getattr__(self, name: str) -> Any:
        return getattr(load_torch(), name)


torch: Any = _Torch()


def find_device() -> str:
    """Return where the filter runs: "cuda" where torch finds a graphics card, else "cpu". Raises MethodError without
    torch."""
    return "cuda" if torch.cuda.is_available() else "cpu"


def bend_poles(
    utterances: Sequence[Samples],
    parameters: Sequence[McAdamsParameters],
    *,
    threads: int = 1,
    device: str | None = None,
    frames_per_batch: int | None = None,
) -> Iterator[Floats]:
    """Yield the overlap-added output of each utterance in turn, shape (n,), before any change of level.

    parameters: one for each utterance; they differ in alpha alone.
    threads: how many torch may use on the processor, for this work alone.
    frames_per_batch: how many frames are filtered at once; bounds the memory, and changes nothing else.

    Raises MethodError without torch.
    """
    device = device or find_device()
    size = frames_per_batch or _FRAMES_PER_BATCH.get(device, _FRAMES_PER_BATCH["cpu"])
    outputs: dict[int, Floats] = {}
    done = 0
    for batch in _batches(utterances, parameters, size):
        with use_torch_threads(threads):
            bent = _bend_batch(batch, utterances, parameters, device)
        for piece in batch:
            output = outputs.setdefault(piece.utterance, np.zeros(utterances[piece.utterance].size))
            hop = parameters[piece.utterance].hop_samples
            start = piece.frames.start * hop
            part = bent[piece.block * hop :][: _span(len(piece.frames), parameters[0])]
            output[start : start + part.size] += part[: output.size - start]
        # The last utterance of a batch may go on in the next one.
        while done < batch[-1].utterance:
            yield outputs.pop(done, np.zeros(utterances[done].size))
            done += 1
    for i in range(done, len(utterances)):
        yield outputs.pop(i, np.zeros(utterances[i].size))


def _span(n_frames: int, parameters: McAdamsParameters) -> int:
    return (n_frames - 1) * parameters.hop_samples + parameters.window_samples


def _batches(
    utterances: Sequence[Samples], parameters: Sequence[McAdamsParameters], size: int
) -> Iterator[list[_Piece]]:
    """The frames of all utterances in runs of at most `size`."""
    batch: list[_Piece] = []
    room, block = size, 0
    for i, (samples, each) in enumerate(zip(utterances, parameters, strict=True)):
        frames = each.frames(samples.size)
        extra_blocks = math.ceil(each.window_samples / each.hop_samples) - 1
        while frames:
            taken, frames = frames[:room], frames[room:]
            batch.append(_Piece(i, taken, block))
            room -= len(taken)
            block += len(taken) + extra_blocks
            if room == 0:
                yield batch
                batch, room, block = [], size, 0
    if batch:
        yield batch


def _bend_batch(
    batch: Sequence[_Piece], utterances: Sequence[Samples], parameters: Sequence[McAdamsParameters], device: str
) -> Floats:
    """Return the overlap-added output of all pieces, each at its block; shape (blocks · hop,)."""
    first = parameters[batch[0].utterance]
    length, hop = first.window_samples, first.hop_samples
    per_frame = math.ceil(length / hop)
    n_blocks = batch[-1].block + len(batch[-1].frames) + per_frame - 1
    signal = np.zeros(n_blocks * hop, np.int16)
    for piece in batch:
        start = piece.frames.start * hop
        taken = utterances[piece.utterance][start : start + _span(len(piece.frames), first)]
        signal[piece.block * hop :][: taken.size] = taken
    blocks = np.concatenate([piece.block + np.arange(len(piece.frames)) for piece in batch])
    alphas = np.repeat([parameters[piece.utterance].alpha for piece in batch], [len(piece.frames) for piece in batch])

    block = torch.from_numpy(blocks).to(device)
    index = torch.arange(length, device=device)[:, None] + block * hop
    raw = torch.from_numpy(signal).to(device)[index]
    window = torch.from_numpy(first.analysis_window()).to(device)[:, None]
    frames = (raw.double() / FULL_SCALE + OFFSET) * window
    coefficients = fit_polynomials(frames + OFFSET, first.order)
    turned = _turn_poles(*find_poles(coefficients), torch.from_numpy(alphas).to(device))
    bent = _refilter(frames, coefficients, turned)
    bent *= window
    if first.keep_digital_silence:
        bent.masked_fill_((raw == 0).all(0), 0.0)

    output = torch.zeros((n_blocks, hop), dtype=torch.float64, device=device)
    for i in range(per_frame):
        part = bent[i * hop : (i + 1) * hop]
        # No two frames have their i-th hop in the same block.
        output[block + i, : part.shape[0]] += part.T
    result: Floats = output.flatten().cpu().numpy()
    return result


def fit_polynomials(frames: Tensor, order: int) -> Tensor:
    """Return linear prediction by Burg's method, as `numba_engine._burg`, shape (order + 1, frames)."""
    n = frames.shape[0] - 1
    forward, backward, product = frames[1:].clone(), frames[:-1].clone(), torch.empty_like(frames[1:])
    energy = (forward * forward + backward * backward).sum(0)
    unreliable = numba_engine.ENERGY_TRUST * energy
    coefficients = torch.zeros((order + 1, frames.shape[1]), dtype=frames.dtype, device=frames.device)
    coefficients[0] = 1.0
    for i in range(order):
        f, b, scratch = forward[i:], backward[: n - i], product[i:]
        low = energy < unreliable
        if bool(low.any()):
            energy = torch.where(low, torch.maximum(energy, (f * f + b * b).sum(0)), energy)
        reflection = -2.0 * torch.mul(f, b, out=scratch).sum(0) / (energy + numba_engine.TINY)
        coefficients[1 : i + 2] += reflection * coefficients[: i + 1].flip(0)
        torch.addcmul(f, b, reflection, out=scratch)
        b.addcmul_(f, reflection)
        forward, product = product, forward
        energy = (1.0 - reflection * reflection) * energy - b[-1] * b[-1] - scratch[0] * scratch[0]
    return coefficients


def find_poles(coefficients: Tensor) -> tuple[Tensor, Tensor]:
    """Real and imaginary parts, each (order, frames), of all roots; exactly 0 the latter of real ones."""
    roots, found = _find_roots(coefficients)
    real, imag = roots.real.clone(), roots.imag.clone()
    for r in range(real.shape[0]):
        # Real, unless another root lies closer to its conjugate than it does itself.
        distance = torch.hypot(real - real[r], imag + imag[r])
        distance[r] = math.inf
        size = imag[r].abs()
        is_real = (size < numba_engine.NEAR_REAL) & (distance.amin(0) >= 2.0 * size)
        imag[r] = torch.where(is_real, 0.0, imag[r])
    found &= (imag > 0).sum(0) == (imag < 0).sum(0)
    if not bool(found.all()):
        lost = (~found).nonzero().flatten()
        poles = numba_engine.solve_companions(coefficients[:, lost].T.cpu().numpy()).T
        real[:, lost] = torch.from_numpy(poles.real.copy()).to(real.device)
        imag[:, lost] = torch.from_numpy(poles.imag.copy()).to(imag.device)
    return real, imag


def _find_roots(coefficients: Tensor) -> tuple[Tensor, Tensor]:
    """Return all roots (Ehrlich 1967; Aberth 1973), complex (order, frames), and whether they settled, (frames,)."""
    order, n_frames = coefficients.shape[0] - 1, coefficients.shape[1]
    # A quarter step off symmetry: conjugate starts would never part to meet two real roots.
    angles = 2.0 * math.pi * (np.arange(order) + 0.25) / order
    start = torch.from_numpy(numba_engine.START_RADIUS * np.exp(1j * angles)).to(coefficients.device)
    roots = start[:, None].repeat(1, n_frames)
    found = torch.zeros(n_frames, dtype=torch.bool, device=coefficients.device)
    frames = torch.arange(n_frames, device=coefficients.device)
    moving, settled = roots.clone(), torch.zeros_like(roots, dtype=torch.bool)
    for _ in range(_MAX_ITERATIONS):
        moving, settled = _step_roots(coefficients, moving, settled)
        is_done = settled.all(0)
        n_done = int(is_done.sum())
        if 4 * n_done < is_done.numel():
            continue
        roots[:, frames[is_done]], found[frames[is_done]] = moving[:, is_done], True
        if n_done == is_done.numel():
            break
        rest = ~is_done
        frames, coefficients, moving, settled = frames[rest], coefficients[:, rest], moving[:, rest], settled[:, rest]
    return roots, found


def _step_roots(coefficients: Tensor, roots: Tensor, settled: Tensor) -> tuple[Tensor, Tensor]:
    """Return every root that has not settled, moved once, and which have settled since."""
    radius = roots.abs()
    value, slope, bound = torch.ones_like(roots), torch.zeros_like(roots), torch.ones_like(radius)
    for coefficient in coefficients[1:]:
        slope.mul_(roots).add_(value)
        value.mul_(roots).add_(coefficient)
        bound.mul_(radius).add_(coefficient.abs())
    is_noise = value.abs() <= 4.0 * numba_engine.UNIT_ROUNDOFF * bound
    step = value / (slope - value * _repel(roots))
    step = torch.where(settled | is_noise, 0.0, step)
    return roots - step, settled | (step.abs() <= numba_engine.LAST_STEP * radius)


def _repel(roots: Tensor) -> Tensor:
    """Σ 1 / (root - another) over all others; in real numbers, as torch divides complex ones slowly."""
    real, imag = roots.real.contiguous(), roots.imag.contiguous()
    across, along, weight = (torch.empty_like(real) for _ in range(3))
    sum_real, sum_imag = torch.zeros_like(real), torch.zeros_like(imag)
    for j in range(real.shape[0]):
        torch.sub(real, real[j], out=across)
        torch.sub(imag, imag[j], out=along)
        torch.mul(across, across, out=weight).addcmul_(along, along).reciprocal_()
        weight[j] = 0.0
        sum_real.addcmul_(across, weight)
        sum_imag.addcmul_(along, weight, value=-1.0)
    return torch.complex(sum_real, sum_imag)


def _turn_poles(real: Tensor, imag: Tensor, alphas: Tensor) -> Tensor:
    """Return the polynomials of the poles with each complex angle φ turned to φ^alpha, at most π."""
    radius = torch.hypot(real, imag)
    angle = torch.atan2(imag.clamp(min=0.0), real).pow(alphas).clamp(max=math.pi)
    is_pair, is_real = imag > 0.0, imag == 0.0
    first = torch.where(is_pair, -2.0 * radius * torch.cos(angle), torch.where(is_real, -real, 0.0))
    second = torch.where(is_pair, radius * radius, 0.0)
    coefficients = torch.zeros((real.shape[0] + 1, real.shape[1]), dtype=real.dtype, device=real.device)
    coefficients[0] = 1.0
    # Of a pair the lower root is skipped: it multiplies by 1.
    for one, two in zip(first, second, strict=True):
        product = coefficients.clone()
        product[1:] += one * coefficients[:-1]
        product[2:] += two * coefficients[:-2]
        coefficients = product
    return coefficients


def _refilter(frames: Tensor, old: Tensor, new: Tensor) -> Tensor:
    """Return frames filtered by old(z) / new(z), both from zero state."""
    order = old.shape[0] - 1
    output = frames.clone()
    for k in range(1, order + 1):
        output[k:].addcmul_(frames[:-k], old[k])
    # Transposed direct form; the last row of the state stays 0.
    state, following = (torch.zeros_like(old) for _ in range(2))
    for sample in output:
        sample += state[0]
        torch.addcmul(state[1:], new[1:], sample, value=-1.0, out=following[:-1])
        state, following = following, state
    return output
