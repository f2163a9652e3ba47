"""No property of a stimulus file tells which system made it: a classifier of such properties is at chance.

The same classifier finds the systems in files as anybody would write them, so it can find what there is to find.
"""

from functools import cache

import numpy as np
import pytest

from listening.stimuli.making import make_stimulus
from tests.listening.stimuli.speech import (
    ORIGINAL,
    beside_each_other,
    chance_of,
    demo_versions,
    file_properties,
    naive_flac,
    published_versions,
)

VERSIONS = [
    # Their sound is not ours to publish.
    pytest.param(published_versions, marks=pytest.mark.slow, id="six published systems, B2 and originals"),
    pytest.param(demo_versions, id="B2 and originals of the demo corpus"),
]


def stimulus(samples):
    return make_stimulus(samples, 16000).content


@cache
def table(versions, write):
    """Properties, systems and utterances of all files."""
    versions = versions()
    rows = [(name, utterance) for name, files in versions.items() for utterance in files]
    features = [file_properties(write(versions[name][utterance])) for name, utterance in rows]
    return np.array(features), [name for name, _ in rows], [utterance for _, utterance in rows]


@pytest.mark.parametrize("versions", VERSIONS)
def test_criterion_13_file_properties_tell_no_system(versions):
    features, systems, utterances = table(versions, stimulus)
    is_original = [name == ORIGINAL for name in systems]
    for known in (features, beside_each_other(features, utterances)):
        for labels in (systems, is_original):
            accuracy, p = chance_of(known, labels, utterances, enough=0.05)
            assert p > 0.05, f"{accuracy:.0%} of files are classified"


@pytest.mark.parametrize("versions", VERSIONS)
def test_criterion_13_the_classifier_finds_systems_in_ordinary_files(versions):
    features, systems, utterances = table(versions, naive_flac)
    accuracy, p = chance_of(beside_each_other(features, utterances), systems, utterances)
    assert p < 0.01
    assert accuracy > 1.5 / len(set(systems))


@pytest.mark.parametrize("versions", VERSIONS)
def test_criterion_13_versions_of_an_utterance_share_every_property(versions):
    """But for those whose length passes a step of the grid, because a system made them longer or shorter."""
    features, _, utterances = table(versions, stimulus)
    differing = sum(
        len(np.unique(features[[one == name for one in utterances]], axis=0)) > 1 for name in set(utterances)
    )
    assert differing <= 0.05 * len(set(utterances))
