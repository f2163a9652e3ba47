"""The anonymisers by name, each with what a page or a run record says about it.

Importing this module imports no heavy library; running a method does.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from anonymization.methods.errors import MethodError
from anonymization.methods.mcadams import McAdamsParameters, Samples, mcadams
from anonymization.methods.pseudo_speakers import (
    Parameter,
    PseudoSpeaker,
    Role,
    draw_pseudo_speaker,
    pseudo_speaker_key,
)


@dataclass(frozen=True)
class Method:
    """One recipe.

    name: stable, for addresses and run records; title: for people.
    version: changes whenever the same input may give another output.
    parameters: what differs between pseudo-speakers, at most four.
    deterministic: same samples and pseudo-speaker, same output on the same kind of processor.
    reference: where the recipe is published.
    process: (samples, rate, parameters, threads) → samples.
    """

    name: str
    title: str
    version: str
    parameters: tuple[Parameter, ...]
    deterministic: bool
    reference: str
    process: Callable[[Samples, int, Mapping[str, float], int], Samples] = field(repr=False)

    def pseudo_speaker(self, *, seed: int, role: Role, split: str, speaker: str, utterance: str) -> PseudoSpeaker:
        """The voice that this utterance gets; the utterance matters for training data only.

        Raises MethodError where the role is unknown or a name that is used is empty.
        """
        key = pseudo_speaker_key(seed=seed, role=role, split=split, speaker=speaker, utterance=utterance)
        return draw_pseudo_speaker(key, self.parameters)

    def anonymize(self, samples: Samples, rate: int, pseudo_speaker: PseudoSpeaker, *, threads: int = 1) -> Samples:
        """One utterance in the voice of the pseudo-speaker.

        samples: int16, shape (n,), mono, `rate` in hertz; not changed. Returns int16, shape (n,).
        Raises MethodError where the method cannot use the samples, the rate or the pseudo-speaker.
        """
        expected = {parameter.name for parameter in self.parameters}
        found = set(pseudo_speaker.parameters)
        if found != expected:
            raise MethodError(
                f"{self.name} takes the parameters {', '.join(sorted(expected))}; "
                f"the pseudo-speaker has {', '.join(sorted(found)) or 'none'}."
            )
        return self.process(samples, rate, pseudo_speaker.parameters, threads)


def methods() -> tuple[Method, ...]:
    """All methods, in the order in which they are to be offered."""
    return tuple(_METHODS.values())


def get_method(name: str) -> Method:
    """The method of that name. Raises MethodError, which lists the known names."""
    try:
        return _METHODS[name]
    except KeyError:
        known = ", ".join(_METHODS)
        raise MethodError(f'There is no anonymisation method "{name}". Known methods: {known}.') from None


def _mcadams_2022(samples: Samples, rate: int, parameters: Mapping[str, float], threads: int) -> Samples:
    return mcadams(samples, rate, McAdamsParameters(alpha=parameters["alpha"]), threads=threads)


_METHODS = {
    method.name: method
    for method in (
        Method(
            name="mcadams-2022",
            title="B2: McAdams coefficient (2022)",
            version="1",
            parameters=(
                Parameter(
                    name="alpha",
                    unit="",
                    low=0.5,
                    high=0.9,
                    meaning="McAdams coefficient: the exponent on the angles of the poles",
                ),
            ),
            deterministic=True,
            reference=(
                "J. Patino, N. Tomashenko, M. Todisco, A. Nautsch, N. Evans: Speaker anonymisation "
                "using the McAdams coefficient. Interspeech 2021"
            ),
            process=_mcadams_2022,
        ),
    )
}
