"""What an anonymiser is: the one protocol that built-in methods, plug-ins and external commands fulfil.

`Method` makes one of a function; `anonymize_items` runs any of them.

Conventions: samples are int16, mono, shape (n,); rates are in hertz; a pseudo-speaker (a voice) is a few numbers, one
for each `Parameter` of the method; an `Option` is settled once for a run. Anonymisers keep nothing between calls that
could change an output, may be called from several threads and forked workers, and import what is heavy when they run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, TypeGuard

import numpy as np

from common.arrays import Samples
from common.errors import InputError

OptionValue = bool | float | str
Options = Mapping[str, OptionValue]

MOST_PARAMETERS = 4  # a voice is drawn from a key, which has so many words


class MethodError(InputError):
    """Samples, a parameter or a name that a method cannot use: says what was expected and found."""


@dataclass(frozen=True)
class Parameter:
    """One number that makes a voice, drawn uniformly from [low, high), but for the inside of `gap`.

    unit: "" for none, and no space: it is added where a value is printed. meaning: what it is; effect: what it does
    to a voice, in a sentence for listeners.
    """

    name: str
    unit: str
    low: float
    high: float
    meaning: str
    effect: str = ""
    gap: tuple[float, float] | None = None

    @property
    def extent(self) -> float:
        """Return length of what can be drawn."""
        return self.high - self.low - (self.gap[1] - self.gap[0] if self.gap else 0.0)

    def at(self, uniform: float) -> float:
        """Return the value at a place in [0, 1) of what can be drawn."""
        value = self.low + self.extent * uniform
        if self.gap is None or value < self.gap[0]:
            return min(value, self.high)
        # Rounding must bring no value into the gap or above the range.
        return min(max(value + self.gap[1] - self.gap[0], self.gap[1]), self.high)

    def describe_range(self, without: str) -> str:
        """Return what a voice may have, in words; `without` stands before the gap."""
        unit = f" {self.unit.strip()}" if self.unit.strip() else ""
        gap = f", {without} {self.gap[0]:g} to {self.gap[1]:g}" if self.gap else ""
        return f"{self.low:g} to {self.high:g}{unit}{gap}"

    def holds(self, value: float) -> bool:
        """Return whether a voice may have this value."""
        in_gap = self.gap is not None and self.gap[0] < value < self.gap[1]
        return self.low <= value <= self.high and not in_gap


@dataclass(frozen=True)
class Option:
    """A setting of a run, named after what it does: one of its choices, yes or no (default a bool), or a number."""

    name: str
    default: OptionValue
    meaning: str
    choices: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None
    unit: str = ""

    def validate(self, value: OptionValue) -> OptionValue:
        """Return the value as the method takes it.

        Raises:
            MethodError: it is none that this option can have.
        """
        if self.choices:
            if value not in self.choices:
                raise MethodError(f'The option {self.name} is one of {", ".join(self.choices)}; found "{value}".')
            return value
        if isinstance(self.default, bool):
            if not isinstance(value, bool):
                raise MethodError(f'The option {self.name} is true or false; found "{value}".')
            return value
        low, high = (-np.inf if self.low is None else self.low), (np.inf if self.high is None else self.high)
        if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
            raise MethodError(f'The option {self.name} is a number from {low:g} to {high:g}; found "{value}".')
        return float(value)


@dataclass(frozen=True)
class PseudoSpeaker:
    """A voice.

    key: SHA-256 in hexadecimal of what it was drawn from, equal for equal voices. target: whose voice it is, where a
    method gives the voices of target speakers; empty for all other methods. mixture: the share of each voice of a
    synthesiser, by its name, above 0; vector: as `voices.vectors` writes it, where a method plans its voices so; empty
    for all other methods.
    """

    key: str
    parameters: Mapping[str, float]
    target: str = ""
    mixture: Mapping[str, float] = field(default_factory=dict)
    vector: str = ""

    def as_dict(self) -> dict[str, Any]:
        """For JSON, as the arguments of another one: without a target, mixture or vector where it has none."""
        found: dict[str, Any] = {"key": self.key, "parameters": dict(self.parameters)}
        found |= {"target": self.target} if self.target else {}
        found |= {"vector": self.vector} if self.vector else {}
        return found | ({"mixture": dict(self.mixture)} if self.mixture else {})


@dataclass(frozen=True)
class Block:
    """A part of a method that is put together of several.

    slot: content, voice, prosody or synthesis. title: what it is, short. state: frozen, trained, retrained (by the
    operator or user), drawn or computed. licence: of its weights; empty where it has none.
    """

    slot: str
    title: str
    state: str
    licence: str = ""


class VoicedUtterance(NamedTuple):
    """An utterance and the voice it shall get."""

    samples: Samples
    pseudo_speaker: PseudoSpeaker


class Anonymizer(Protocol):
    """One way to anonymise speech.

    name: stable, for addresses and run records: small letters, digits, hyphens; title: for people.
    version: changes whenever the same input may give another output.
    parameters: what differs between pseudo-speakers, at most four; none where all speakers get one voice.
    options: what an organizer may choose for a run.
    is_deterministic: same samples, voice and options, same output on the same kind of processor.
    needs_gpu: whether it cannot do without a graphics card.
    reference: where the method is published.
    """

    @property
    def name(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def version(self) -> str: ...
    @property
    def reference(self) -> str: ...
    @property
    def parameters(self) -> tuple[Parameter, ...]: ...
    @property
    def options(self) -> tuple[Option, ...]: ...
    @property
    def is_deterministic(self) -> bool: ...
    @property
    def needs_gpu(self) -> bool: ...

    def missing(self) -> str:
        """Return what this machine lacks to run it and how to get it, a sentence; empty where nothing does. Never
        raises."""
        ...

    def anonymize(
        self,
        samples: Samples,
        rate: int,
        pseudo_speaker: PseudoSpeaker,
        *,
        options: Options | None = None,
        threads: int = 1,
    ) -> Samples:
        """Return one utterance in the voice of the pseudo-speaker.

        Args:
            samples: int16, shape (n,), mono, n ≥ 0, `rate` in hertz; not changed.
            options: by name; what is not named has its default.
            threads: how many may share the work; the output is the same for any number.

        Returns:
            int16, shape (n,), or near n; any length of a method that does not keep the duration (`keeps_duration`).

        Raises:
            MethodError: samples, rate, voice or options that it cannot use; says expected and found.
        """
        ...

    def anonymize_batch(
        self, items: Sequence[VoicedUtterance], rate: int, *, options: Options | None = None, threads: int = 1
    ) -> list[Samples]:
        """As `anonymize` for each item, in their order; at once where the method gains by it."""
        ...


def find_missing_members(thing: object, protocol: type = Anonymizer) -> list[str]:
    """Return what a protocol names and a thing lacks; since Python 3.12 `isinstance` does not see what `__getattr__`
    gives."""
    return [name for part in protocol.__mro__ for name in vars(part) if name[0] != "_" and not hasattr(thing, name)]


Recording = Callable[[], tuple[Samples, int]]


@dataclass(frozen=True)
class Target:
    """A target speaker. gender: f, m, or empty where nobody says; recordings: in the order in which they are used."""

    name: str
    gender: str = ""
    recordings: tuple[Recording, ...] = field(default=(), repr=False, compare=False)


class TargetPool:
    """The speakers whose voices a method may give, by name; their recordings are read when they are needed.

    In the order of names, so that a pool is the same whatever order its source has. A recording is a function that
    gives samples, int16, shape (n,), mono, and their rate in hertz.

    Raises:
        MethodError: none, two of one name, or one without recordings.
    """

    def __init__(self, targets: Iterable[Target]) -> None:
        ordered = sorted(targets, key=lambda target: target.name)
        if not ordered:
            raise MethodError("A pool of targets holds at least one speaker; found none.")
        twice = [name for name, count in Counter(target.name for target in ordered).items() if count > 1]
        if twice:
            raise MethodError(f"A pool of targets names each speaker once; found {twice[0]} twice.")
        if silent := [target.name for target in ordered if not target.recordings]:
            raise MethodError(f"A target needs a recording at least; found none of {silent[0]}.")
        self.targets: tuple[Target, ...] = tuple(ordered)
        self.by_name: Mapping[str, Target] = {target.name: target for target in ordered}

    def find(self, name: str) -> Target:
        """Return the target of that name. Raises MethodError, which says how many there are."""
        if name not in self.by_name:
            said = f'"{name}"' if name else "none"
            count = f"{len(self.targets)} target{'' if len(self.targets) == 1 else 's'}"
            raise MethodError(f"A voice names a target of the pool, which has {count}; found {said}.")
        return self.by_name[name]


class TargetedAnonymizer(Anonymizer, Protocol):
    """An anonymiser whose voices are those of target speakers: a voice names its target, and has no parameters."""

    @property
    def has_targets(self) -> bool:
        """Return whether it was given its pool; without one it anonymises nothing."""
        ...

    def prepare(self, pool: TargetPool) -> TargetedAnonymizer:
        """Return the same method with the targets of a pool, whose recordings it reads and analyses once, when needed.

        Raises:
            MethodError: a pool that it cannot use.
        """
        ...


def require_pool(name: str, pool: TargetPool | None) -> TargetPool:
    """Return the pool that a method was prepared with. Raises MethodError, in its name, where that was not done."""
    if pool is None:
        raise MethodError(
            f"{name} gives the voices of target speakers; found none. Name a folder of their recordings "
            "(--targets), or a data set."
        )
    return pool


def takes_targets(method: Anonymizer) -> TypeGuard[TargetedAnonymizer]:
    """Return whether a method needs a pool of targets before it can run."""
    return not find_missing_members(method, TargetedAnonymizer)


@dataclass(frozen=True)
class VoiceRequest:
    """Somebody who is to get a voice, or an utterance at utterance level.

    key: SHA-256 in hexadecimal of seed, role, split and speaker, and at utterance level utterance: all that chance
    decides follows from it. gender: f, m, or empty where nobody says. recordings: of the speaker, or the utterance
    alone, read when they are needed. options: of the run, as far as they were given.
    """

    key: str
    gender: str = ""
    recordings: tuple[Recording, ...] = field(default=(), repr=False, compare=False)
    options: Options = field(default_factory=dict, compare=False)


class PlanningAnonymizer(Anonymizer, Protocol):
    """An anonymiser that plans its voices itself, before anything is synthesised; its voices have no parameters."""

    def plan_voices(self, requests: Sequence[VoiceRequest], pool: TargetPool | None = None) -> Sequence[PseudoSpeaker]:
        """Return the voice of each request, in their order: the same for the same requests and pool.

        Args:
            requests: at speaker level all speakers of a role and split, at utterance level one utterance.
            pool: speakers that voices may be made of, for methods that need some.

        Raises:
            MethodError: recordings or a pool that it cannot use.
        """
        ...


def plans_voices(method: Anonymizer) -> TypeGuard[PlanningAnonymizer]:
    """Return whether a method plans its voices itself; those of all others are drawn from keys, or targets."""
    return not find_missing_members(method, PlanningAnonymizer)


def makes_vectors(method: object) -> bool:
    """Return whether its voices are vectors made of recordings: at utterance level, too, they are planned before all
    else."""
    return bool(getattr(method, "makes_vectors", False))


def keeps_duration(method: object) -> bool:
    """Return whether outputs are to be as long as their originals; a method that synthesises speech says that its are
    not."""
    return bool(getattr(method, "keeps_duration", True))


def gains_by_batches(method: object) -> bool:
    """Return whether several utterances are better given at once: those of a method with a way of its own."""
    has_own_way = getattr(type(method), "anonymize_batch", None) is not Described.anonymize_batch
    return bool(getattr(method, "gains_by_batches", has_own_way))


# A method made of a function ------------------------------------------------------------------------

Process = Callable[[Samples, int, Mapping[str, float], Options, int], Samples]


@dataclass(frozen=True)
class Described:
    """What a method of this package says of itself; the attributes are those of the protocol.

    pipeline: its parts. fidelity: ``published``, or ``lite`` for a method of lighter or other parts than the published.
    `anonymize` and `anonymize_batch` look at what is asked for, `_anonymize` does the work for one utterance.
    """

    name: str
    title: str
    version: str
    reference: str
    parameters: tuple[Parameter, ...] = field(default=(), kw_only=True)
    options: tuple[Option, ...] = field(default=(), kw_only=True)
    is_deterministic: bool = field(default=True, kw_only=True)
    needs_gpu: bool = field(default=False, kw_only=True)
    keeps_duration: bool = field(default=True, kw_only=True)
    pipeline: tuple[Block, ...] = field(default=(), kw_only=True)
    fidelity: str = field(default="", kw_only=True)

    def missing(self) -> str:
        return ""

    def anonymize(
        self,
        samples: Samples,
        rate: int,
        pseudo_speaker: PseudoSpeaker,
        *,
        options: Options | None = None,
        threads: int = 1,
    ) -> Samples:
        return self.anonymize_batch([VoicedUtterance(samples, pseudo_speaker)], rate, options=options, threads=threads)[
            0
        ]

    def anonymize_batch(
        self, items: Sequence[VoicedUtterance], rate: int, *, options: Options | None = None, threads: int = 1
    ) -> list[Samples]:
        if missing := self.missing():
            raise MethodError(missing)
        if threads < 1:
            raise MethodError(f"At least one thread is needed; found threads={threads}.")
        for item in items:
            validate_voice(self, item.pseudo_speaker)
        settled = complete_options(self, options)
        return [self._anonymize(item, rate, settled, threads) for item in items]

    def _anonymize(self, item: VoicedUtterance, rate: int, options: dict[str, OptionValue], threads: int) -> Samples:
        """Return one utterance; voice and options are in order. Who has an `anonymize_batch` of their own needs
        none."""
        raise NotImplementedError


@dataclass(frozen=True)
class Method(Described):
    """An `Anonymizer` made of a function.

    process: (samples, rate, parameters of the voice, all options, threads) → samples.
    check: tells what is missing, as `Anonymizer.missing`; None where nothing can be.
    """

    process: Process = field(repr=False)
    check: Callable[[], str] | None = field(default=None, repr=False, kw_only=True)

    def missing(self) -> str:
        return self.check() if self.check else ""

    def _anonymize(self, item: VoicedUtterance, rate: int, options: dict[str, OptionValue], threads: int) -> Samples:
        return self.process(item.samples, rate, item.pseudo_speaker.parameters, options, threads)


def validate_samples(name: str, samples: Samples, rate: int, *, low_hz: int = 8_000, high_hz: int = 48_000) -> None:
    """Raise MethodError, in the name of a method, unless samples are int16 of shape (n,) and the rate is in range."""
    if not isinstance(samples, np.ndarray) or samples.dtype != np.int16:
        found = getattr(samples, "dtype", type(samples).__name__)
        raise MethodError(f"{name} takes a numpy array of int16 samples; found {found}.")
    if samples.ndim != 1:
        raise MethodError(f"{name} takes mono audio, an array of shape (samples,); found shape {samples.shape}.")
    if isinstance(rate, bool) or not isinstance(rate, int | np.integer) or not low_hz <= rate <= high_hz:
        expected = f"{low_hz} to {high_hz}" if low_hz < high_hz else f"{low_hz}"
        raise MethodError(f"{name} works at {expected} Hz; found {rate} Hz. Resample the audio first.")


def validate_voice(method: Anonymizer, voice: PseudoSpeaker) -> None:
    """Raise MethodError unless the voice has the parameters of the method, each with a value that it may have."""
    expected, found = {parameter.name for parameter in method.parameters}, set(voice.parameters)
    if found != expected:
        raise MethodError(
            f"{method.name} takes the parameters {', '.join(sorted(expected)) or 'none'}; "
            f"the pseudo-speaker has {', '.join(sorted(found)) or 'none'}."
        )
    if (voice.mixture or voice.vector) and not plans_voices(method):
        raise MethodError(f"{method.name} takes no voices that are mixtures or vectors; the pseudo-speaker is one.")
    for parameter in method.parameters:
        value = voice.parameters[parameter.name]
        if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
            raise MethodError(f"{parameter.name} of {method.name} is a number; found {value!r}.")
        if not parameter.holds(value):
            span = parameter.describe_range("outside")
            raise MethodError(f"{parameter.name} of {method.name} must be from {span}; found {value:g}.")


def complete_options(method: Anonymizer, options: Options | None) -> dict[str, OptionValue]:
    """Return all options of the method, those that were not given at their defaults.

    Raises:
        MethodError: one that the method does not have, or a value that it cannot take.
    """
    if options is not None and not isinstance(options, Mapping):
        raise MethodError(f"{method.name} takes options as a mapping of names to values; found {options!r}.")
    given = dict(options or {})
    known = {option.name: option for option in method.options}
    if unknown := sorted(str(name) for name in given if name not in known):
        raise MethodError(
            f"{method.name} has no option {', '.join(unknown)}. Its options: {', '.join(known) or 'none'}."
        )
    return {name: option.validate(given.get(name, option.default)) for name, option in known.items()}


def anonymize_items(
    method: Anonymizer, items: Sequence[VoicedUtterance], rate: int, *, options: Options | None = None
) -> list[Samples | Exception]:
    """For each item its output, or why there is none; all at once, and one by one where that fails.

    A plug-in may be anybody's: what it raises and what it gives is looked at here, and each utterance loses no other.

    Args:
        items: samples int16, shape (n,), `rate` in hertz, each with its voice.

    Returns:
        int16, shape (n,), n ≥ 1, or the error, in the order of the items: a `MethodError` where the method refuses an
        utterance or gives something else than samples, and whatever else it raised.

    Raises:
        CancelledError: an external command was stopped.
    """
    if not items:
        return []
    try:
        outputs = list(method.anonymize_batch(items, rate, options=options))
        if len(outputs) != len(items):
            raise MethodError(f"{method.name} gave {len(outputs)} outputs for {len(items)} utterances.")
        return [_checked(method.name, output) for output in outputs]
    except CancelledError:
        raise
    except Exception as error:  # of anybody's making
        if len(items) == 1:
            return [error]
    return [each for item in items for each in anonymize_items(method, [item], rate, options=options)]


def _checked(name: str, output: Samples) -> Samples | Exception:
    """Return an output as the contract has it, or the error that it is none."""
    if isinstance(output, np.ndarray) and output.dtype == np.int16 and output.ndim == 1 and output.size:
        return output
    found = f"{output.dtype} {output.shape}" if isinstance(output, np.ndarray) else type(output).__name__
    return MethodError(f"{name} was to give int16 samples of the shape (n,), at least one; it gave {found}.")
