"""The simulated recogniser of the demo's teams."""

import numpy as np

from demo import make_corpus
from evaluation.metrics.word_errors import count_word_errors
from evaluation.protocols.recipes import read_recipe
from portal.demo import archives
from portal.demo.archives import DemoSubmission, DemoUtterance, add_hypotheses

RECIPE = make_corpus.SENTENCES.parent / "edition.toml"
TEXTS = {f"d01-{number:04d}": f"THE QUICK BROWN FOX NUMBER {number} JUMPS OVER DOGS" for number in range(200)}


def rate(alpha, seed=1):
    """Word error rate of every text by a system with one McAdams coefficient."""
    lines = archives.hypotheses(TEXTS, dict.fromkeys(TEXTS, alpha), seed).decode().splitlines()
    found = {name: " ".join(words) for name, *words in map(str.split, lines)}
    assert set(found) == set(TEXTS)
    return count_word_errors(TEXTS, found).present.error_rate


def test_more_distortion_makes_more_errors():
    rates = [rate(alpha) for alpha in (1.0, 0.8, 0.6, 0.4)]
    assert rates == sorted(rates)
    assert 0 < rates[0] < 0.05
    assert 0.2 < rates[-1] < 0.5


def test_equal_input_gives_equal_hypotheses_and_another_system_other_ones():
    alphas = dict.fromkeys(TEXTS, 0.6)
    assert archives.hypotheses(TEXTS, alphas, 1) == archives.hypotheses(TEXTS, alphas, 1)
    assert archives.hypotheses(TEXTS, alphas, 1) != archives.hypotheses(TEXTS, alphas, 2)


def test_errors_are_of_every_kind():
    counts = count_word_errors(
        {"all": " ".join(f"W{number}" for number in range(3000))},
        {"all": " ".join(archives.recognise([f"W{n}" for n in range(3000)], 0.3, ["X"], np.random.default_rng(1)))},
    ).present
    assert abs(counts.error_rate - 0.3) < 0.05
    assert min(counts.substitutions, counts.deletions, counts.insertions) > 60


def test_hypotheses_stand_in_the_archive_for_each_recognition_set_and_speech():
    recipe = read_recipe(RECIPE)
    samples = np.zeros(10, np.int16)
    utterances = [
        DemoUtterance("d01-0001", "d01", "f", "demo_enrolls", "enroll", samples, "NOT RECOGNISED"),
        DemoUtterance("d01-0002", "d01", "f", "demo_trials_f", "trial", samples, "SAID ALOUD"),
    ]
    submission = DemoSubmission(utterances, {}, alphas={"d01-0001": 0.5, "d01-0002": 0.5})
    add_hypotheses(submission, recipe, 1)
    assert set(submission.files) == {"hypotheses/demo_asr.txt", "hypotheses/demo_asr_anon.txt"}
    for content in submission.files.values():
        assert [line.split()[0] for line in content.decode().splitlines()] == ["d01-0002"]
