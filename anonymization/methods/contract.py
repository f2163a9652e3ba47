"""What an anonymiser is: the one protocol that built-in methods, plug-ins and external commands fulfil.

Conventions: samples are int16, mono, shape (n,); rates are in hertz; a pseudo-speaker (a voice) is a few numbers, one
for each `Parameter` of the method; an `Option` is settled once for a whole run. Anonymisers keep nothing between calls
that could change an output, may be called from several threads and in forked workers, and import what is heavy only
when they run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeGuard, runtime_checkable

import numpy as np
import numpy.typing as npt

from anonymization.methods.errors import MethodError

if TYPE_CHECKING:
    from anonymization.methods.target_pool import TargetPool

Samples = npt.NDArray[np.int16]
OptionValue = bool | float | str
Options = Mapping[str, OptionValue]

# A voice is drawn from a key, which has so many words.
MOST_PARAMETERS = 4


@dataclass(frozen=True)
class Parameter:
    """One number that makes a voice, drawn uniformly from [low, high), but for the inside of `gap`.

    unit: "" for none, and no space: whoever prints a value with it adds one. meaning: what it is; effect: what it does
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
        """Length of what can be drawn."""
        return self.high - self.low - (self.gap[1] - self.gap[0] if self.gap else 0.0)

    def at(self, uniform: float) -> float:
        """The value at a place in [0, 1) of what can be drawn."""
        value = self.low + self.extent * uniform
        if self.gap is None or value < self.gap[0]:
            return min(value, self.high)
        # Rounding must bring no value into the gap or above the range.
        return min(max(value + self.gap[1] - self.gap[0], self.gap[1]), self.high)

    def holds(self, value: float) -> bool:
        """Whether a voice may have this value."""
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
        """The value as the method takes it.

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
        return self._validate_number(value)

    def _validate_number(self, value: OptionValue) -> float:
        low, high = (-np.inf if self.low is None else self.low), (np.inf if self.high is None else self.high)
        if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
            raise MethodError(f'The option {self.name} is a number from {low:g} to {high:g}; found "{value}".')
        return float(value)


@dataclass(frozen=True)
class PseudoSpeaker:
    """A voice.

    key: SHA-256 in hexadecimal of what it was drawn from, equal for equal voices. target: whose voice it is, where a
    method gives the voices of target speakers; empty for all other methods.
    """

    key: str
    parameters: Mapping[str, float]
    target: str = ""


class Item(NamedTuple):
    """An utterance and the voice it shall get."""

    samples: Samples
    pseudo_speaker: PseudoSpeaker


@runtime_checkable
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
        """What this machine lacks to run it and how to get it, a sentence; empty where nothing does. Never raises."""
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
        """One utterance in the voice of the pseudo-speaker.

        Args:
            samples: int16, shape (n,), mono, n ≥ 0, `rate` in hertz; not changed.
            options: by name; what is not named has its default.
            threads: how many may share the work; the output is the same for any number.

        Returns:
            int16, shape (n,), or near n for methods that do not keep the duration.

        Raises:
            MethodError: samples, rate, voice or options that it cannot use; says expected and found.
        """
        ...

    def anonymize_batch(
        self, items: Sequence[Item], rate: int, *, options: Options | None = None, threads: int = 1
    ) -> list[Samples]:
        """As `anonymize` for each item, in their order; at once where the method gains by it."""
        ...


@runtime_checkable
class TargetedAnonymizer(Anonymizer, Protocol):
    """An anonymiser whose voices are those of target speakers: a voice names its target, and has no parameters."""

    @property
    def has_targets(self) -> bool:
        """Whether it was given its pool; without one it anonymises nothing."""
        ...

    def prepare(self, pool: TargetPool) -> TargetedAnonymizer:
        """The same method with the targets of a pool, whose recordings it reads and analyses once, when needed.

        Raises:
            MethodError: a pool that it cannot use.
        """
        ...


def takes_targets(method: Anonymizer) -> TypeGuard[TargetedAnonymizer]:
    """Whether a method needs a pool of targets before it can run."""
    return isinstance(method, TargetedAnonymizer)


Process = Callable[[Samples, int, Mapping[str, float], Options, int], Samples]


@dataclass(frozen=True)
class Method:
    """An `Anonymizer` made of a function; the attributes are those of the protocol.

    process: (samples, rate, parameters of the voice, all options, threads) → samples.
    check: tells what is missing, as `Anonymizer.missing`; None where nothing can be.
    """

    name: str
    title: str
    version: str
    reference: str
    process: Process = field(repr=False)
    parameters: tuple[Parameter, ...] = ()
    options: tuple[Option, ...] = ()
    is_deterministic: bool = True
    needs_gpu: bool = False
    check: Callable[[], str] | None = field(default=None, repr=False)

    def missing(self) -> str:
        return self.check() if self.check else ""

    def anonymize(
        self,
        samples: Samples,
        rate: int,
        pseudo_speaker: PseudoSpeaker,
        *,
        options: Options | None = None,
        threads: int = 1,
    ) -> Samples:
        if missing := self.missing():
            raise MethodError(missing)
        validate_voice(self, pseudo_speaker)
        return self.process(samples, rate, pseudo_speaker.parameters, complete_options(self, options), threads)

    def anonymize_batch(
        self, items: Sequence[Item], rate: int, *, options: Options | None = None, threads: int = 1
    ) -> list[Samples]:
        return [
            self.anonymize(item.samples, rate, item.pseudo_speaker, options=options, threads=threads) for item in items
        ]


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
    for parameter in method.parameters:
        value = voice.parameters[parameter.name]
        if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
            raise MethodError(f"{parameter.name} of {method.name} is a number; found {value!r}.")
        if not parameter.holds(value):
            unit = f" {parameter.unit}" if parameter.unit else ""
            gap = f", outside {parameter.gap[0]:g} to {parameter.gap[1]:g}" if parameter.gap else ""
            raise MethodError(
                f"{parameter.name} of {method.name} lies from {parameter.low:g} to {parameter.high:g}{unit}"
                f"{gap}; found {value:g}."
            )


def complete_options(method: Anonymizer, options: Options | None) -> dict[str, OptionValue]:
    """All options of the method, those that were not given at their defaults.

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
