"""Whether an attack is strong enough that its equal error rate means privacy.

A high EER of a badly trained attacker is no privacy: one that fails on the speakers that it was trained on, errs more
than an attacker that was not trained at all, never heard the voices that it attacks, gives other numbers with each
seed, or scores most targets below other speakers says nothing about a better attacker. Conventions: EERs and shares in
per cent.
Source: arXiv 2507.22534 (overestimated protection).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from common.rounding import fixed

NOT_RELIABLE = "not reliable"
RELIABLE = "reliable"
HIGHEST_OWN_EER = 20.0
MOST_BETWEEN_SEEDS = 5.0
MOST_INVERTED = 60.0
MOST_UNHEARD = 50.0
UNHEARD = "whether it was trained on the voices that it attacks"  # where it was not measured


@dataclass(frozen=True, slots=True)
class AttackStrength:
    """What is known of a trained attacker on one trial set; None where it was not measured.

    Attributes:
        eer: of the trained attacker, of this seed.
        frozen_eer: lowest of the attackers that were not trained on such speech, with the same or less knowledge.
        own_eer: of the trained attacker on held-out utterances of the speakers that it was trained on.
        seed_eers: of each seed; fewer than two say nothing.
        inverted_targets: share of targets below the median nontarget.
        unheard_voices: share of the attacked speech in pseudo-voices, or by a system, that the training had none of.
    """

    eer: float
    frozen_eer: float | None = None
    own_eer: float | None = None
    seed_eers: Sequence[float] = ()
    inverted_targets: float | None = None
    unheard_voices: float | None = None


@dataclass(frozen=True, slots=True)
class Reliability:
    """The verdict on an attack.

    Attributes:
        reasons: why it is not reliable, in sentences; none where nothing speaks against it.
        unknown: what was not measured, in words.
    """

    reasons: tuple[str, ...]
    unknown: tuple[str, ...]

    @property
    def is_reliable(self) -> bool:
        return not self.reasons

    @property
    def word(self) -> str:
        """As it is written next to the EER."""
        return RELIABLE if self.is_reliable else NOT_RELIABLE


def judge_attack(strength: AttackStrength) -> Reliability:
    """Return the verdict on a trained attacker by what is known of it.

    Example:
        >>> judge_attack(AttackStrength(45.0, frozen_eer=30.0)).word
        'not reliable'
    """
    unknown = {
        "the attackers that were not trained": strength.frozen_eer,
        "its EER on its own training speakers": strength.own_eer,
        "a second seed": None if len(strength.seed_eers) < 2 else strength.seed_eers,
        "the share of inverted targets": strength.inverted_targets,
        UNHEARD: strength.unheard_voices,
    }
    return Reliability(tuple(_reasons(strength)), tuple(what for what, known in unknown.items() if known is None))


def _reasons(strength: AttackStrength) -> Iterator[str]:
    eer, frozen, own, inverted = strength.eer, strength.frozen_eer, strength.own_eer, strength.inverted_targets
    if frozen is not None and eer > frozen:
        against = f"{fixed(eer, 1)} % against {fixed(frozen, 1)} %"
        yield f"It is weaker than an attacker that was not trained on such speech: {against}."
    if own is not None and own > HIGHEST_OWN_EER:
        above = f"an EER of {fixed(own, 1)} %, above {HIGHEST_OWN_EER:g} %"
        yield f"It fails on the speakers that it was trained on: {above}."
    if len(strength.seed_eers) > 1:
        spread = max(strength.seed_eers) - min(strength.seed_eers)
        if spread > MOST_BETWEEN_SEEDS:
            yield f"Its seeds differ by {fixed(spread, 1)} points, more than {MOST_BETWEEN_SEEDS:g}."
    if inverted is not None and inverted > MOST_INVERTED:
        share = f"{fixed(inverted, 0)} %"
        yield f"It is misled: {share} of targets lie below the median nontarget, above {MOST_INVERTED:g} %."
    if strength.unheard_voices is not None and strength.unheard_voices > MOST_UNHEARD:
        unheard = f"{fixed(strength.unheard_voices, 0)} %"
        yield f"It never heard the voices of {unheard} of what it attacks, above {MOST_UNHEARD:g} %."
