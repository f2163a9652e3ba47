"""What was computed on single utterances of submissions: word errors of the recogniser, and pitch correlation.

Word errors are those of the hypotheses that a submission holds, against the corpus' transcripts as the challenge
prepares them; of several recognisers, the one whose rates the edition averages. A constant number of queries, however
many submissions. Public: `word_errors_of`, `pitch_correlations_of`.
"""

from __future__ import annotations

import io
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from django.core.files.storage import default_storage

from evaluation.formats.claims import ClaimIdentity, Speech
from evaluation.formats.kaldi import read_text
from evaluation.formats.transcripts import normalise_transcript, split_words
from evaluation.models import UtteranceMeasure
from evaluation.objective.values import with_speech
from evaluation.objective.words import hypothesis_identity
from evaluation.protocols.recipes import Recipe
from portal.challenges.models import Role
from portal.jobs.models import State
from portal.submissions.models import Submission, SubmittedDocument


class WordCount(NamedTuple):
    """Word errors of one utterance, and the words of its reference."""

    errors: int
    words: int


def word_errors_of(
    submissions: Iterable[Submission], transcripts: Mapping[str, str], recipe: Recipe
) -> dict[tuple[int, Speech], dict[str, WordCount]]:
    """By submission and speech the word errors of each utterance that has a transcript and a hypothesis.

    Args:
        transcripts: by utterance, as the corpus has them; an empty one is no reference.
        recipe: of the edition, which names its recognition sets and says whose rates count.
    """
    from rapidfuzz.distance import Levenshtein

    references = {name: split_words(normalise_transcript(text)) for name, text in transcripts.items() if text.strip()}
    found: dict[tuple[int, Speech], dict[str, WordCount]] = {}
    if not references:
        return found
    for (submission, identity), key in _hypotheses(submissions, recipe).items():
        with default_storage.open(key) as stored:
            hypotheses = read_text(io.StringIO(stored.read().decode("utf-8", "replace"))).content
        counts = found.setdefault((submission, identity.speech), {})
        for utterance in references.keys() & hypotheses.keys():
            said = references[utterance]
            # Without an alignment: only the number of errors is asked for.
            counts[utterance] = WordCount(Levenshtein.distance(said, split_words(hypotheses[utterance])), len(said))
    return found


def pitch_correlations_of(
    submissions: Iterable[Submission], utterances: Collection[str]
) -> dict[tuple[int, str], float]:
    """By submission and utterance the pitch correlation of the newest finished run on a trial set that measured it."""
    measures = UtteranceMeasure.objects.filter(
        run__submission__in=[one.pk for one in submissions],
        run__job__state=State.SUCCEEDED,
        run__data_set__role=Role.TRIAL,
        pitch_correlation__isnull=False,
    )
    rows = measures.order_by("run_id").values_list("run__submission", "file__utterance__name", "pitch_correlation")
    wanted = set(utterances)
    return {(submission, name): float(value or 0) for submission, name, value in rows.iterator() if name in wanted}


def _hypotheses(submissions: Iterable[Submission], recipe: Recipe) -> dict[tuple[int, ClaimIdentity], str]:
    """The stored document of each recognition test: of the usual recogniser, else of the one there is."""
    documents = SubmittedDocument.objects.filter(
        submission__in=[one.pk for one in submissions], kind=SubmittedDocument.Kind.HYPOTHESES
    )
    usual: dict[tuple[int, ClaimIdentity], str] = {}
    others: dict[tuple[int, ClaimIdentity], str] = {}
    for submission, path, key in documents.order_by("path").values_list("submission", "path", "key"):
        identity = hypothesis_identity(path, recipe)
        if identity is not None:
            wanted = with_speech(recipe, identity, speech=identity.speech)
            (usual if identity == wanted else others)[submission, wanted] = key
    return others | usual
