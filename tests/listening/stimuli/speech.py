"""Real and spoken-by-machine recordings for tests of stimuli, and a classifier that tries to distinguish systems."""

import csv
import io
from functools import cache

import numpy as np
import soundfile

from tests.recordings import DEMO, read_samples, require_shared

ORIGINAL, B2 = "original", "B2"


def demo_recordings(step=1):
    return [read_samples(path) for path in sorted(DEMO.glob("d*/*.flac"))[::step]]


@cache
def published_versions():
    """By system and utterance the samples of the six published systems, their originals and B2."""
    versions = {ORIGINAL: {}, B2: {}}
    folder = require_shared() / "speech"
    with (folder / "anonymised.csv").open() as file:
        for row in csv.DictReader(file):
            versions.setdefault(row["system"], {})[row["utterance_id"]] = read_samples(folder / row["path"])
    with (folder / "utterances.csv").open() as file:
        wanted = set(versions["idmap-RS"])
        rows = [row for row in csv.DictReader(file) if row["utterance_id"] in wanted]
    for row in rows:
        versions[ORIGINAL][row["utterance_id"]] = read_samples(folder / row["path"])
        versions[B2][row["utterance_id"]] = _b2(versions[ORIGINAL][row["utterance_id"]], row["speaker"])
    return versions


@cache
def demo_versions():
    paths = sorted(DEMO.glob("d*/*.flac"))[::3]
    originals = {path.stem: read_samples(path) for path in paths}
    return {
        ORIGINAL: originals,
        B2: {path.stem: _b2(originals[path.stem], path.parent.name) for path in paths},
    }


def _b2(samples, speaker):
    from anonymization.methods.registry import get_method
    from anonymization.methods.voices.pseudo_speakers import draw_pseudo_speaker, pseudo_speaker_key

    method = get_method("mcadams-2022")
    key = pseudo_speaker_key(seed=2022, role="trial", split="test", speaker=speaker)
    voice = draw_pseudo_speaker(key, method.parameters)
    return method.anonymize(samples, 16000, voice)


def naive_flac(samples):
    """A file as anybody would write it."""
    file = io.BytesIO()
    soundfile.write(file, samples, 16000, format="FLAC", subtype="PCM_16")
    return file.getvalue()


def decode(content):
    """int16, shape (n, channels), as libsndfile decodes it."""
    return soundfile.read(io.BytesIO(content), dtype="int16", always_2d=True)[0]


HEADER_SHOWN = 128


def file_properties(content):
    """What a file tells without its sound being decoded: its size, what its header states, and its first bytes."""
    info = soundfile.info(io.BytesIO(content))
    if info.format == "WAV":
        sound, frame_sizes, bits = content.index(b"data") + 8, [0, 0], int.from_bytes(content[34:36], "little")
    else:
        is_last, sound = False, 4
        while not is_last:
            is_last = bool(content[sound] & 0x80)
            sound += 4 + int.from_bytes(content[sound + 1 : sound + 4], "big")
        frame_sizes = [int.from_bytes(content[place : place + 3], "big") for place in (12, 15)]
        bits = 1 + (int.from_bytes(content[18:26], "big") >> 36 & 31)
    of_sound = len(content) - sound
    sizes = [
        len(content),
        info.frames,
        len(content) / info.frames,
        *frame_sizes,
        sound,
        of_sound,
        of_sound / info.frames,
    ]
    return np.array([*sizes, info.samplerate, info.channels, bits, *content[:HEADER_SHOWN]], float)


def beside_each_other(features, groups):
    """The same as differences from the mean of all versions of the utterance, for an attacker who has them all."""
    features, groups = np.array(features), np.asarray(groups)
    for group in np.unique(groups):
        features[groups == group] -= features[groups == group].mean(axis=0)
    return features


def chance_of(features, labels, groups, *, permutations=100, seed=0, enough=1.0):
    """Cross-validated accuracy of a linear discriminant, and the share of permutations that do at least as well.

    `groups`: what stays together in a fold, and within which labels are permuted: the utterance. Permuting ends as soon
    as the share is certain to be more than `enough`.
    """
    rng = np.random.default_rng(seed)
    features, labels, groups = np.asarray(features), np.asarray(labels), np.asarray(groups)
    folds = _folds(groups, rng)
    real = _accuracy(features, labels, folds)
    as_good = 0
    for _ in range(permutations):
        shuffled = labels.copy()
        for group in np.unique(groups):
            members = np.flatnonzero(groups == group)
            shuffled[members] = labels[rng.permutation(members)]
        as_good += _accuracy(features, shuffled, folds) >= real
        if (as_good + 1) / (permutations + 1) > enough:
            break
    return real, (as_good + 1) / (permutations + 1)


def _folds(groups, rng, count=4):
    names = rng.permutation(np.unique(groups))
    return [np.isin(groups, names[number::count]) for number in range(count)]


def _accuracy(features, labels, folds):
    right = sum((_discriminant(features[~held], labels[~held], features[held]) == labels[held]).sum() for held in folds)
    return right / len(labels)


def _discriminant(known, labels, unknown, shrinkage=0.1):
    """Linear discriminant analysis with a shrunk covariance; constant properties are left out."""
    spread = known.std(axis=0)
    varies = spread > 0
    if not varies.any():
        return np.full(len(unknown), labels[0])
    mean = known[:, varies].mean(axis=0)
    known = (known[:, varies] - mean) / spread[varies]
    unknown = (unknown[:, varies] - mean) / spread[varies]
    classes = np.unique(labels)
    centres = np.array([known[labels == one].mean(axis=0) for one in classes])
    within = np.cov(known - centres[np.searchsorted(classes, labels)], rowvar=False).reshape(known.shape[1], -1)
    covariance = (1 - shrinkage) * within + shrinkage * np.eye(len(within))
    weights = np.linalg.solve(covariance, centres.T)
    return classes[np.argmax(unknown @ weights - (centres.T * weights).sum(axis=0) / 2, axis=1)]
