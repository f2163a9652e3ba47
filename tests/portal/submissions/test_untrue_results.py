"""Archives whose scores, hypotheses or matrices would move a rank: each is refused with its file and its lines."""

import io

import numpy as np
import pytest

from portal.leaderboard.selectors import build_leaderboard
from portal.submissions.selectors import load_report
from portal.submissions.services import evaluate_again
from tests.portal.archives import check, submit
from tests.portal.factories import make_organizer, make_submission, make_team, make_team_system
from tests.portal.objective_runs import (
    STAMP,
    TEST,
    add_audio,
    add_documents,
    evaluate,
    run_waiting_jobs,
    tones_edition,
    tones_matrices,
    tones_scores,
    tones_words,
)

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("quick_figures", "few_resamples")]
SCORES = f"{TEST}/scores"
TEXT = "hypotheses/tones_asr_anon.txt"


@pytest.fixture
def team():
    return make_team(tones_edition())


@pytest.fixture
def sound(team):
    """Score files of the semi-informed attacker, hypotheses and matrices, as they should be."""
    corpus = team.edition.corpus
    return tones_scores(corpus, every_attack=False) | tones_words(corpus) | tones_matrices(4)


def about(submission, path):
    """What the report says of a file: code, line and severity of each finding."""
    findings = [one for one in load_report(submission).findings if one.file == path]
    return [(one.code, one.line, str(one.severity)) for one in findings]


def checked(team, files):
    return check(submit(team, files))


def changed(lines, number, line):
    return [*lines[:number], line, *lines[number + 1 :]]


def score(text):
    """Another score in the third line."""
    return lambda lines: changed(lines, 2, b" ".join([*lines[2].split()[:2], text]))


CHEATS = {
    "nan": (score(b"nan"), [("not-finite-score", 3)]),
    "one score for all": (
        lambda lines: [b" ".join([*line.split()[:2], b"0.5"]) for line in lines],
        [("equal-scores", None)],
    ),
}


@pytest.mark.parametrize("name", CHEATS)
def test_untrue_scores_are_errors_at_their_lines(team, sound, name):
    change, expected = CHEATS[name]
    lines = change(sound[SCORES].splitlines())
    report = about(checked(team, {SCORES: b"".join(line + b"\n" for line in lines)}), SCORES)
    assert [(code, line) for code, line, severity in report if severity == "error"] == expected


def test_sound_scores_pass_in_any_form_of_text(team, sound):
    submission = checked(team, {SCORES: b"\xef\xbb\xbf" + sound[SCORES].rstrip(b"\n").replace(b"\n", b"\r\n")})
    assert {severity for *_, severity in about(submission, SCORES)} <= {"note"}


def test_scores_of_some_trials_name_the_others(team, sound):
    lines = sound[SCORES].splitlines(keepends=True)
    left_out = b" ".join(lines[5].split()[:2]).decode()
    report = load_report(checked(team, {SCORES: b"".join([*lines[:5], *lines[6:], b"nobody nowhere 1\n"])}))
    found = {one.code: one for one in report.findings}
    missing = f"a score of “{left_out}”, line 6 of the organizer's trials of tones_trials_f"
    assert (found["missing-score"].file, found["missing-score"].expected) == (SCORES, missing)
    assert (found["extra-score"].line, found["extra-score"].found) == (32, "“nobody nowhere”, which is not one")


def test_scores_of_another_data_set_are_one_problem(team, sound):
    submission = checked(team, {SCORES: sound[SCORES.replace("trials_f", "trials_m")]})
    assert [one[:2] for one in about(submission, SCORES)] == [("other-trials", 1)]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda lines: [*lines[1:], b"nowhere A WORD"], [("missing-hypothesis", None), ("extra-hypothesis", 16)]),
        (lambda lines: changed(lines, 3, lines[3] + b" A" * 2001), [("long-hypothesis", 4)]),
    ],
    ids=["other utterances", "endless"],
)
def test_hypotheses_are_held_against_the_utterances(team, sound, change, expected):
    lines = change(sound[TEXT].splitlines())
    report = about(checked(team, {TEXT: b"\n".join(lines) + b"\n"}), TEXT)
    assert [(code, line) for code, line, _ in report] == expected


@pytest.mark.parametrize(("words", "codes"), [(80, []), (79, ["wrong-words"])])
def test_word_counts_are_held_against_the_transcripts(team, sound, words, codes):
    path = f"{STAMP}/results.txt"
    model = "exp/models/user_asr_eval_anon/decode_tones_asr_anon_tglarge/wer_12_0.0"
    rate = f"ASR-tones_asr_anon\n  %WER {100 * 8 / words:.2f} [ 8 / {words}, 1 ins, 2 del, 5 sub ] {model}\n"
    report = about(checked(team, {SCORES: sound[SCORES], path: rate.encode()}), path)
    assert [code for code, *_ in report if code == "wrong-words"] == codes


def test_hypotheses_of_one_test_come_once(team, sound):
    again = TEXT.replace(".txt", ".hyp.txt")
    submission = checked(team, {TEXT: sound[TEXT], again: sound[TEXT]})
    assert [about(submission, path) for path in (TEXT, again)] == [[("several-hypotheses", None, "error")], []]


def matrix(values):
    packed = io.BytesIO()
    np.save(packed, values)
    return packed.getvalue()


@pytest.mark.parametrize("values", [np.full((4, 4), np.nan), np.eye(5)], ids=["nan", "more speakers"])
def test_matrices_are_read(team, sound, values):
    folder = f"{STAMP}/similarity_matrices_DeID_Gvd/tones_trials_f"
    path = f"{folder}/similarity_matrix_psp_psp.npy"
    report = load_report(checked(team, sound | {path: matrix(values)}))
    found = [one for one in report.findings if one.code == "unusable-matrix"]
    assert [(one.file, str(one.severity)) for one in found] == [(path, "error")]


def test_accepted_system_whose_stored_scores_hold_nan_is_not_ranked(team, sound):
    """A document that no check would let through any more, evaluated again: it was ranked by what was left of it."""
    submission = make_submission(make_team_system(team), state="received")
    evaluate(add_audio(add_documents(submission, sound)))
    assert not build_leaderboard(team.edition).table.unrankable
    spoilt = b"\n".join([*score(b"nan")(sound[SCORES].splitlines()), b""])
    submission.documents.filter(path=SCORES).delete()
    evaluate_again(submission=add_documents(submission, {SCORES: spoilt}), by=make_organizer())
    run_waiting_jobs()
    [one] = build_leaderboard(team.edition).table.unrankable
    said = "missing: tones_trials_f, semi-informed (1 trials without a finite score)."
    assert one.reasons[0].text.endswith(said)
