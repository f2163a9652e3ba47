"""The networks that a recipe names: the recogniser, and the classifier of sources that it is trained with.

Over ECAPA-TDNN stands a classifier of cosines, over the x-vector its own two layers with a plain softmax, as in
SpeechBrain's recipes. Conventions: torch is imported where a network is built.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evaluation.attackers.training.recipe import TrainingRecipe

if TYPE_CHECKING:
    from evaluation.attackers.networks.classifier import CosineClassifier
    from evaluation.attackers.networks.ecapa import EcapaTdnn
    from evaluation.attackers.networks.xvector import XvectorClassifier, XvectorShape, XvectorTdnn


def build_encoder(recipe: TrainingRecipe) -> EcapaTdnn | XvectorTdnn:
    """The untrained network of a recipe."""
    if recipe.network == "x-vector":
        from evaluation.attackers.networks.xvector import xvector_tdnn

        return xvector_tdnn(_shape(recipe))
    from evaluation.attackers.networks.ecapa import ecapa_tdnn

    return ecapa_tdnn(recipe.width, recipe.aggregated, recipe.embedding, recipe.attention, recipe.mel_bands)


def build_source_head(recipe: TrainingRecipe, dimension: int, sources: int) -> CosineClassifier | XvectorClassifier:
    """The untrained classifier of so many sources behind vectors of a dimension."""
    if recipe.network == "x-vector":
        from evaluation.attackers.networks.xvector import XvectorClassifier

        return XvectorClassifier(_shape(recipe), sources, hidden=recipe.embedding)
    from evaluation.attackers.networks.classifier import CosineClassifier

    return CosineClassifier(dimension, sources)


def _shape(recipe: TrainingRecipe) -> XvectorShape:
    """SpeechBrain's network with the sizes of a recipe."""
    from dataclasses import replace

    from evaluation.attackers.networks.xvector import SPEECHBRAIN

    channels = (recipe.width, recipe.width, recipe.width, recipe.width, recipe.aggregated)
    return replace(SPEECHBRAIN, bands=recipe.mel_bands, channels=channels, embedding=recipe.embedding)
