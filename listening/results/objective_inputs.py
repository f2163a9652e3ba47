"""What was computed on the utterances that a study lets people hear, beside which its ratings are shown.

Word errors of the recogniser and pitch correlations stand with the submissions heard; whatever is not known of an
utterance is NaN. Public: `objective_of`.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

import numpy as np

from evaluation.formats.claims import Speech
from evaluation.protocols.recipes import RecipeError
from evaluation.selectors_utterances import WordCount, pitch_correlations_of, word_errors_of
from listening.analysis.inputs import ORIGINAL, Objective
from portal.challenges.models import Edition
from portal.submissions.models import Submission


def objective_of(
    submissions: Mapping[str, Submission],
    heard: Mapping[str, set[str]],
    transcripts: Mapping[str, str],
    edition: Edition,
) -> Objective | None:
    """One row for each utterance heard of a system of which anything is known; None where nothing is.

    Args:
        submissions: by the name of the system in the study.
        heard: utterances by the name of the system, `ORIGINAL` among them.
        transcripts: by utterance, as the corpus has them.
        edition: whose recipe names the recognition sets; of one that cannot be read no word errors are known.
    """
    words = {}
    with suppress(RecipeError):
        words = word_errors_of(submissions.values(), transcripts, edition.recipe)
    pitch = pitch_correlations_of(submissions.values(), set().union(*heard.values()))
    rows = []
    for system in sorted(heard):
        submission = submissions.get(system)
        counts = _of_originals(submissions, words) if system == ORIGINAL else {}
        if submission is not None:
            counts = words.get((submission.pk, Speech.ANONYMISED), {})
        for utterance in sorted(heard[system]):
            count = counts.get(utterance)
            correlation = pitch.get((submission.pk, utterance)) if submission is not None else None
            if count is not None or correlation is not None:
                rows.append((system, utterance, *(count or (np.nan, np.nan)), correlation))
    if not rows:
        return None
    systems, utterances, errors, total, correlations = zip(*rows, strict=True)
    return Objective(
        np.array(systems, np.str_),
        np.array(utterances, np.str_),
        *(np.array(column, np.float64) for column in (errors, total, correlations)),
    )


def _of_originals(
    submissions: Mapping[str, Submission], words: Mapping[tuple[int, Speech], Mapping[str, WordCount]]
) -> dict[str, WordCount]:
    """Of original speech, which every team recognises alike: from the first system that holds each utterance."""
    found: dict[str, WordCount] = {}
    for system in sorted(submissions):
        for utterance, count in words.get((submissions[system].pk, Speech.ORIGINAL), {}).items():
            found.setdefault(utterance, count)
    return found
