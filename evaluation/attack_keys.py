"""Where the files of own attacks and own recognition lie."""

from __future__ import annotations


def scores_key(run: int, test: str) -> str:
    """The Kaldi score file of a test, by the name of its folder (`evaluation.objective.attack.test_folder`)."""
    return f"derived/attacks/{run}/{test}/scores"


def archive_key(run: int) -> str:
    """The whole results directory: score files and similarity matrices in the official layout."""
    return f"derived/attacks/{run}/results.zip"


def matrices_key(run: int, data_set: str) -> str:
    """Similarity matrices of a trial set: an npz with `oo`, `op`, `pp` and `speakers`."""
    return f"derived/attacks/{run}/similarity-{data_set}.npz"


def similarity_key(run: int, data_set: str, theme: str = "light", image_format: str = "svg") -> str:
    """Their figure."""
    return f"derived/figures/{run}/similarity-{data_set}-{theme}.{image_format}"


def words_key(run: int, data_set: str) -> str:
    """The utterances of a recognised data set with their texts and errors, the worst first: JSON."""
    return f"derived/recognition/{run}/{data_set}.json"
