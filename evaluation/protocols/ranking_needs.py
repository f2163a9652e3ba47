"""What a system has to hand in so that a board can rank it: from the policy of the board and nothing else.

A number that decides the place of a system can come from several kinds of files; those kinds are named as in
`portal.submissions.intake.contents`: ``speech``, ``results``, ``scores``, ``similarity``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evaluation.metrics.catalogue import find_metric
from evaluation.protocols.board_policy import policy_of
from evaluation.protocols.recipes import Recipe

SPEECH, RESULTS, SCORES, SIMILARITY = "speech", "results", "scores", "similarity"
_SOURCES = {
    "eer": SCORES,
    "cllr": SCORES,
    "min_cllr": SCORES,
    "linkability": SCORES,
    "pitch_correlation": SPEECH,
    "gain_of_voice_distinctiveness": SIMILARITY,
}


def needed_to_rank(
    recipe: Recipe, track: str = "", changes: Mapping[str, Any] | None = None
) -> dict[str, tuple[str, ...]]:
    """The kinds of files of which a board needs one for its conditions and gates, by the label of the number.

    Files that only claim a number serve where the policy ranks by claims. Nothing is needed where nothing is ranked.

    Args:
        track: where the recipe has several.
        changes: of the policy, as `policy_of` takes them.

    Raises:
        PolicyError, RecipeError: as `policy_of`.

    Example:
        >>> from evaluation.protocols.recipes import load_recipe
        >>> needed_to_rank(load_recipe("2022"))["EER"]
        ('scores',)
    """
    policy = policy_of(recipe, track, changes)
    chosen = recipe.tracks[track] if track else recipe.track
    if chosen.ranking is None and not policy.minimum_eers:
        return {}
    deciding = [(policy.privacy.metric, policy.privacy.estimator)]
    deciding += [(gate.metric, gate.estimator) for gate in policy.gates]
    claims = (RESULTS,) if policy.basis == "claims" else ()
    return {
        find_metric(metric, estimator).label: (_SOURCES[metric], *claims)
        for metric, estimator in deciding
        if metric in _SOURCES
    }
