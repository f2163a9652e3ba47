"""The speakers whose voices a method may give: each with a name, a gender and recordings, read when they are needed.

Conventions: a recording is a function that gives samples, int16, shape (n,), mono, and their rate in hertz; targets
are in the order of their names, so that a pool is the same whatever order its source has.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial

from anonymization.methods.contract import PseudoSpeaker, Samples
from anonymization.methods.errors import MethodError

Recording = Callable[[], tuple[Samples, int]]


@dataclass(frozen=True)
class Target:
    """A target speaker. gender: f, m, or empty where nobody says; recordings: in the order in which they are used."""

    name: str
    gender: str = ""
    recordings: tuple[Recording, ...] = field(default=(), repr=False, compare=False)


class TargetPool:
    """The targets of a run by name.

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
        """The target of that name. Raises MethodError, which says how many there are."""
        if name not in self.by_name:
            said = f'"{name}"' if name else "none"
            count = f"{len(self.targets)} target{'' if len(self.targets) == 1 else 's'}"
            raise MethodError(f"A voice names a target of the pool, which has {count}; found {said}.")
        return self.by_name[name]


def pool_of_samples(samples: Mapping[str, Samples], rate: int, genders: Mapping[str, str] | None = None) -> TargetPool:
    """A pool of one recording for each target.

    Args:
        samples: by target, int16, shape (n,), `rate` in hertz.
        genders: by target, f or m.
    """
    of = genders or {}
    return TargetPool(
        Target(name, of.get(name, ""), (partial(_given, sound, rate),)) for name, sound in samples.items()
    )


def _given(samples: Samples, rate: int) -> tuple[Samples, int]:
    return samples, rate


def target_voice(name: str) -> PseudoSpeaker:
    """The voice of a target; equal targets have equal keys, SHA-256 of ``target|name`` in hexadecimal."""
    text = f"target|{name}".encode("utf-8", "surrogatepass")
    return PseudoSpeaker(hashlib.sha256(text).hexdigest(), {}, name)
