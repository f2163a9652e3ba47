"""Objective measures of single utterances beside what listeners rated: from documents and measures of submissions."""

import numpy as np
import pytest

from evaluation.app.audio_measures.selectors import count_utterance_errors, read_pitch_correlations
from evaluation.app.models import EvaluationRun, UtteranceMeasure
from evaluation.formats.results import Speech
from evaluation.metrics.word_errors import count_word_errors
from evaluation.protocols.recipes import load_recipe
from listening.app.results.inputs import collect_inputs
from portal.core.storage import store_bytes
from portal.submissions.models import SubmittedDocument
from tests.listening.results.answered import make_answered
from tests.portal.factories import make_job

pytestmark = pytest.mark.django_db
TEXTS = {"u1": "The cat, sat.", "u2": "A dog", "u3": "", "u4": "Nobody heard this"}
RECIPE = load_recipe("2022")


def add(submission, path, hypotheses):
    content = "".join(f"{name} {text}\n" for name, text in hypotheses.items()).encode()
    key = store_bytes(content, ".txt")
    submission.documents.create(path=path, kind=SubmittedDocument.Kind.HYPOTHESES, key=key, bytes=len(content))


def measure(submission, value, *, state="succeeded", role="trial"):
    """A run over a set of the role that measured the utterances heard of it."""
    corpus = submission.system.corpus
    data_set = corpus.data_sets.filter(role=role).first()
    job = make_job(state, kind="measure")
    run = EvaluationRun.objects.create(
        submission=submission, kind=EvaluationRun.Kind.MEASURES, data_set=data_set, recipe="audio", job=job
    )
    for utterance in data_set.utterances.all():
        file, _ = submission.files.get_or_create(
            data_set=data_set, utterance=utterance, defaults={"audio": "x", "samples": 1, "rate_hz": 16000}
        )
        UtteranceMeasure.objects.create(run=run, file=file, pitch_correlation=value, duration_difference_ms=0)
    return [one.name for one in data_set.utterances.all()]


def make_rated():
    return make_answered(evaluators=1, trials=8, systems=2)


@pytest.fixture
def study(once):
    return once(make_rated)


def test_word_errors_are_those_of_the_challenge(study):
    submission = study.systems.first().submission
    heard = {"u1": "THE HAT SAT DOWN", "u2": "A DOG", "u3": "SOMETHING", "unknown": "A"}
    add(submission, "hypotheses/libri_dev_asr_anon.txt", heard)
    found = count_utterance_errors([submission], TEXTS, RECIPE)
    assert found == {(submission.pk, Speech.ANONYMISED): {"u1": (2, 3), "u2": (0, 2)}}
    expected = count_word_errors({"u1": "THE CAT SAT", "u2": "A DOG"}, heard)
    counts = {one.utterance: (one.counts.errors, one.counts.reference_words) for one in expected.utterances}
    assert found[submission.pk, Speech.ANONYMISED] == counts


def test_the_recogniser_whose_rates_are_averaged_comes_first(study):
    first, second = (one.submission for one in study.systems.all())
    for number, folder in enumerate(("results-1.orig", "results-1")):
        add(first, f"{folder}/libri_dev_asr_anon.hyp.txt", {"u2": "A" if number else "NO WORD AT ALL"})
    add(second, "results-1.orig/libri_dev_asr_anon.hyp.txt", {"u2": "A CAT"})
    found = count_utterance_errors([first, second], TEXTS, RECIPE)
    assert found[first.pk, Speech.ANONYMISED] == {"u2": (1, 2)}
    assert found[second.pk, Speech.ANONYMISED] == {"u2": (1, 2)}


def test_pitch_is_that_of_the_newest_finished_run_on_trials(study):
    submission = study.systems.first().submission
    names = measure(submission, 0.25)
    assert set(read_pitch_correlations([submission], names).values()) == {0.25}
    measure(submission, 0.75)
    measure(submission, 0.5, state="failed")
    measure(submission, 0.125, role="enrolment")
    assert read_pitch_correlations([submission], [*names, "unknown"]) == {(submission.pk, one): 0.75 for one in names}


def test_inputs_hold_what_was_computed_on_the_utterances_heard(study):
    code, other = study.systems.order_by("code").values_list("code", flat=True)
    submission = study.systems.get(code=code).submission
    items = study.presentations.filter(samples__slot="a").values_list(
        "condition__code", "samples__stimulus__item__name", "samples__stimulus__item__transcript"
    )
    heard = [(system or "original", name, text) for system, name, text in items]
    texts = {name: text for _, name, text in heard}
    recognised = {name: f"{text} AGAIN" for name, text in texts.items()}
    add(submission, "hypotheses/libri_dev_asr_anon.txt", recognised)
    add(submission, "hypotheses/libri_dev_asr.txt", texts)
    measured = set(measure(submission, 0.5))
    found = collect_inputs(study).objective
    columns = (found.system, found.utterance, found.errors, found.words, found.pitch_correlation)
    rows = {row[:2]: row[2:] for row in zip(*(column.tolist() for column in columns), strict=True)}
    assert set(rows) == {(system, name) for system, name, _ in heard if system != other}
    for (system, name), (errors, words, pitch) in rows.items():
        assert (errors, words) == (0 if system == "original" else 1, len(texts[name].split()))
        expected = 0.5 if system == code and name in measured else np.nan
        assert pitch == pytest.approx(expected, nan_ok=True)
