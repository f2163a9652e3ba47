"""Kaldi ``scores`` at full size: read, joined to their trials, written.

A line is ``<model speaker> <trial utterance> <score>``; a higher score means more alike. Scores are kept as float64;
metrics that Kaldi computes round them to float32 themselves. The join is by pair, never by position, and names every
problem at once: the official script makes tables of both files instead, averages repeated pairs and turns a missing one
into NaN.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TextIO

import numpy as np
from numpy.typing import NDArray

from common.columns import PADDING, WORD_BYTES, Columns, Field, as_words, gather, read_columns
from common.file_names import fold_names, name_other_capitals
from common.problems import ROWS_PER_CAUSE, Problem, Severity, has_errors
from common.text_files import Source
from evaluation.formats.equal_scores import describe_open_eer

SCORE_FORM = "<model> <utterance> <score>"
TRIAL_FORM = "<model> <utterance> target|nontarget"
DIFFERING = "scores that differ between trials"
WITH_ALL_DIGITS = "Write the scores with all of their digits, one for each trial."
FEW_SCORES, FEW_TRIALS = 10, 20  # decisions or levels, where so many trials would have had scores of their own
MIX, SHIFT = np.uint64(0x9E3779B97F4A7C15), np.uint64(29)

Rows = NDArray[np.int64]
Codes = NDArray[np.integer]


@dataclass(frozen=True, slots=True)
class ScoreTable:
    """The scores of a file, in file order.

    Attributes:
        name: the file as its owner knows it.
        pairs: shape (lines,), ``<model> <utterance>`` as bytes.
        scores: shape (lines,), float64; NaN where the file holds no number.
        lines: shape (lines,), line number of each entry.
        problems: what is wrong with the file as a listing; what its numbers are worth is the join's matter.
    """

    name: str
    pairs: Field
    scores: NDArray[np.float64]
    lines: NDArray[np.int64]
    problems: tuple[Problem, ...]


@dataclass(frozen=True, slots=True)
class TrialTable:
    """The trials of a file, in file order; attributes as in `ScoreTable`, `targets` of shape (lines,)."""

    name: str
    pairs: Field
    targets: NDArray[np.bool_]
    lines: NDArray[np.int64]
    problems: tuple[Problem, ...]


@dataclass(frozen=True, slots=True)
class JoinedScores:
    """The trials that have a finite score, in the order of the trial list, and what was wrong.

    Attributes:
        scores: shape (n,), float64.
        targets: shape (n,), whether the trial is a target trial.
        pairs: shape (n,), ``<model> <utterance>`` of each trial as bytes.
        missing: trials without a score.
        extra: scores without a trial.
        repeated: score lines of a pair that has one already; the first one counts.
        not_finite: trials whose score is no finite number; they are left out.
        inverted: whether targets mostly score below nontargets.
        problems: all of it in sentences, with the problems of both files.
    """

    scores: NDArray[np.float64]
    targets: NDArray[np.bool_]
    pairs: Field
    missing: int
    extra: int
    repeated: int
    not_finite: int
    inverted: bool
    problems: tuple[Problem, ...]

    @property
    def complete(self) -> bool:
        """Return whether every trial has one finite score and nothing else was wrong."""
        return not has_errors(self.problems)

    @property
    def open_eer(self) -> str:
        """Return what equal scores leave open of the EER, in words; empty where that is next to nothing."""
        return next((problem.found for problem in self.problems if problem.code == "equal-scores"), "")

    @property
    def target_scores(self) -> NDArray[np.float64]:
        return self.scores[self.targets]

    @property
    def nontarget_scores(self) -> NDArray[np.float64]:
        return self.scores[~self.targets]

    @property
    def models(self) -> Field:
        """Return the enrolled speaker of each trial, as bytes."""
        starts, spaces, _ = _places(self.pairs)
        return gather(self.pairs.tobytes() + PADDING, starts, spaces - starts)

    @property
    def utterances(self) -> Field:
        """Return the trial utterance of each trial, as bytes."""
        _, spaces, ends = _places(self.pairs)
        return gather(self.pairs.tobytes() + PADDING, spaces + 1, ends - spaces - 1)


def read_scores(source: Source, name: str | None = None) -> ScoreTable:
    """Read a ``scores`` file: fixed or exponent notation, ``nan`` and ``inf`` included."""
    columns = read_columns(source, SCORE_FORM, name)
    scores = _as_numbers(columns.span(2, 2))
    return ScoreTable(columns.name, columns.span(0, 1), scores, columns.lines, columns.problems)


def read_trial_table(source: Source, name: str | None = None) -> TrialTable:
    """Read a ``trials`` file as arrays; `evaluation.formats.kaldi.read_trials` gives tuples instead."""
    columns = read_columns(source, TRIAL_FORM, name)
    kinds = columns.span(2, 2)
    targets = kinds == b"target"
    wrong = np.flatnonzero(~targets & (kinds != b"nontarget"))
    problems = [*columns.problems, *_examples(wrong, lambda row: _wrong_kind(columns, kinds[row], row))]
    pairs, lines = columns.span(0, 1), columns.lines
    if wrong.size:
        kept = np.ones(len(pairs), bool)
        kept[wrong] = False
        pairs, targets, lines = pairs[kept], targets[kept], lines[kept]
    return TrialTable(columns.name, pairs, targets, lines, tuple(problems))


def write_scores(rows: Iterable[tuple[str, str, float]], file: TextIO) -> None:
    """Write ``(model, utterance, score)`` as Kaldi does: float32 with six significant digits."""
    file.writelines(f"{model} {utterance} {np.float32(score):.6g}\n" for model, utterance, score in rows)


def join_scores(scores: ScoreTable, trials: TrialTable) -> JoinedScores:
    """Give each trial its score.

    Problems reported, each with file and line, the first few of a kind and the number of the others: ``missing-score``,
    ``extra-score``, ``repeated-score``, ``not-finite-score``, ``repeated-trial``, ``one-class`` (only target or only
    nontarget trials; no detection metric is defined), ``other-trials`` (one in place of all missing and extra scores,
    where no score is of a trial), ``equal-scores`` (so many equal ones that they leave the EER open), and as warnings
    ``few-scores`` and ``inverted-scores``.

    Of a file of which nothing could be read, only its own problems are reported, not every trial once more.

    Scores count as inverted where more than half of the targets, by 1.5 standard errors of a share, lie below the
    median nontarget. That is rightly so for an attacker who is misled; a whole system like that usually has distances
    where similarities are expected.
    """
    match = _match(scores, trials)
    chosen = match.chosen
    without = chosen < 0
    without[match.again] = False
    missing = np.flatnonzero(without)
    rows = np.flatnonzero(chosen >= 0)
    values = scores.scores[chosen[rows]]
    finite = np.isfinite(values)
    broken = chosen[rows[~finite]]
    rows, values = rows[finite], values[finite]
    targets = trials.targets[rows]
    inverted = _are_inverted(values, targets)
    pairs = trials.pairs if len(rows) == len(trials.pairs) else trials.pairs[rows]
    counts = (missing.size, match.extra.size, match.repeated.size, broken.size)
    problems = [*trials.problems, *scores.problems]
    if _is_unreadable(scores) or _is_unreadable(trials):
        return JoinedScores(values, targets, pairs, *counts, inverted, tuple(problems))
    problems += _examples(match.again, lambda row: _repeated_trial(trials, row))
    if len(scores.lines) and (chosen < 0).all():
        problems.append(_of_others(scores, trials))
    else:
        others = scores.pairs[match.extra[:ROWS_PER_CAUSE]].tolist() if missing.size else ()
        folded = fold_names(pair.decode() for pair in others)
        problems += _examples(missing, lambda row: _missing(scores, trials, row, folded))
        problems += _examples(match.extra, lambda row: _extra(scores, trials, row))
    problems += _repeats(scores, match.repeated)
    problems += _examples(np.sort(broken), lambda row: _not_finite(scores, row))
    problems += _one_class(trials) + _equal_scores(scores.name, values, targets)
    problems += [_inverted(scores, values, targets)] if inverted else []
    return JoinedScores(values, targets, pairs, *counts, inverted, tuple(problems))


def list_score_problems(scores: ScoreTable) -> tuple[Problem, ...]:
    """Return what is wrong with scores as long as their trials are not known.

    ``repeated-score``, ``not-finite-score``, ``equal-scores`` (one for all; of two or more only the trials tell what
    they leave open), and the problems of the file.
    """
    _, first, same = np.unique(scores.pairs, return_index=True, return_inverse=True)
    repeated = np.flatnonzero(first[same.reshape(-1)] != np.arange(len(scores.pairs)))
    return (
        *scores.problems,
        *_repeats(scores, repeated),
        *_examples(np.flatnonzero(~np.isfinite(scores.scores)), lambda row: _not_finite(scores, row)),
        *_one_score(scores),
    )


def _one_score(scores: ScoreTable) -> list[Problem]:
    values = np.unique(scores.scores.astype(np.float32))
    if len(scores.scores) < 2 or len(values) > 1 or not np.isfinite(values).all():
        return []
    found = f"one score, {scores.scores[0]:g}, for all {len(scores.scores):,}"
    return [Problem("equal-scores", scores.name, DIFFERING, found, WITH_ALL_DIGITS)]


def _is_unreadable(table: ScoreTable | TrialTable) -> bool:
    return not len(table.lines) and has_errors(table.problems)


def _as_numbers(field: Field) -> NDArray[np.float64]:
    """NaN for what is no number, infinity for what is beyond the float32 that Kaldi reads."""
    try:
        numbers = field.astype(np.float64)
    except ValueError:
        numbers = np.array([_as_number(text) for text in field.tolist()])
    if (field.view(np.uint8) == ord("_")).any():  # numpy reads 1_0 as 10
        numbers[[b"_" in text for text in field.tolist()]] = np.nan
    return np.where(np.abs(numbers) > np.finfo(np.float32).max, np.copysign(np.inf, numbers), numbers)


def _as_number(text: bytes) -> float:
    try:
        return float(text)
    except ValueError:
        return np.nan


@dataclass(frozen=True, slots=True)
class _Match:
    """Rows: the score of each trial (-1 without one), extra and repeated scores, repeated trials."""

    chosen: Rows
    extra: Rows
    repeated: Rows
    again: Rows


def _match(scores: ScoreTable, trials: TrialTable) -> _Match:
    width = max(scores.pairs.itemsize, trials.pairs.itemsize, WORD_BYTES)
    given, wanted = as_words(scores.pairs, width), as_words(trials.pairs, width)
    wanted_codes = _hash(wanted)
    if np.array_equal(given, wanted) and (np.diff(np.sort(wanted_codes)) > 0).all():
        none = np.zeros(0, np.int64)
        return _Match(np.arange(len(wanted)), none, none, none)
    given_codes = _hash(given)
    wanted_order, given_order = np.argsort(wanted_codes), np.argsort(given_codes)
    found = _match_sorted(wanted_codes, wanted_order, given_codes, given_order)
    met = found.chosen >= 0
    if (
        _collide(wanted, wanted_codes, wanted_order)
        or _collide(given, given_codes, given_order)
        or (given[found.chosen[met]] != wanted[met]).any()
    ):  # two pairs with one hash, which hardly ever happens: number the pairs instead
        numbers = np.unique(np.concatenate([wanted, given]), axis=0, return_inverse=True)[1].reshape(-1)
        wanted_codes, given_codes = numbers[: len(wanted)], numbers[len(wanted) :]
        return _match_sorted(wanted_codes, np.argsort(wanted_codes), given_codes, np.argsort(given_codes))
    return found


def _hash(words: NDArray[np.uint64]) -> Codes:
    codes = np.zeros(len(words), np.uint64)
    for column in words.T:
        codes = (codes ^ column) * MIX
        codes ^= codes >> SHIFT
    return codes


def _collide(words: NDArray[np.uint64], codes: Codes, order: Rows) -> bool:
    sorted_codes = codes[order]
    same = np.flatnonzero(sorted_codes[1:] == sorted_codes[:-1])
    return bool((words[order[same + 1]] != words[order[same]]).any())


def _match_sorted(wanted_codes: Codes, wanted_order: Rows, given_codes: Codes, given_order: Rows) -> _Match:
    wanted_order, again = _first_rows(wanted_codes, wanted_order)
    given_order, repeated = _first_rows(given_codes, given_order)
    wanted, given = wanted_codes[wanted_order], given_codes[given_order]
    chosen = np.full(len(wanted_codes), -1, np.int64)
    if np.array_equal(wanted, given):
        chosen[wanted_order] = given_order
        return _Match(chosen, np.zeros(0, np.int64), repeated, again)
    place = np.searchsorted(wanted, given)
    known = place < len(wanted)
    known[known] = wanted[place[known]] == given[known]
    chosen[wanted_order[place[known]]] = given_order[known]
    return _Match(chosen, np.sort(given_order[~known]), repeated, again)


def _first_rows(codes: Codes, order: Rows) -> tuple[Rows, Rows]:
    """Return the first row of each code in the order of codes, and all later ones in file order."""
    sorted_codes = codes[order]
    if (sorted_codes[1:] != sorted_codes[:-1]).all():
        return order, np.zeros(0, np.int64)
    order = np.argsort(codes, kind="stable")
    first = np.ones(len(order), bool)
    first[1:] = codes[order[1:]] != codes[order[:-1]]
    return order[first], np.sort(order[~first])


def _one_class(trials: TrialTable) -> list[Problem]:
    found = int(np.count_nonzero(trials.targets))
    if 0 < found < len(trials.targets) or not len(trials.targets):
        return []
    shown = "only target trials" if found else "only nontarget trials"
    remedy = "Check the last column: no detection metric is defined for one class."
    return [Problem("one-class", trials.name, "target and nontarget trials", shown, remedy)]


def _equal_scores(name: str, scores: NDArray[np.float64], targets: NDArray[np.bool_]) -> list[Problem]:
    """Say how far equal scores leave the EER open, else that there are so few that it can take few values only."""
    if not targets.any() or targets.all():
        return []
    if loose := describe_open_eer(scores[targets], scores[~targets], steps=0):
        if describe_open_eer(scores[targets], scores[~targets]):
            return [Problem("equal-scores", name, DIFFERING, loose, WITH_ALL_DIGITS)]
        return [Problem("few-scores", name, DIFFERING, loose, WITH_ALL_DIGITS, Severity.WARNING)]
    for what, side in (("target", scores[targets]), ("nontarget", scores[~targets])):
        if len(side) >= FEW_TRIALS and len(np.unique(side[:FEW_TRIALS])) <= FEW_SCORES >= len(np.unique(side)):
            expected, found = DIFFERING, f"{len(np.unique(side))} different for {len(side):,} {what} trials"
            return [Problem("few-scores", name, expected, found, WITH_ALL_DIGITS, Severity.WARNING)]
    return []


def _are_inverted(scores: NDArray[np.float64], targets: NDArray[np.bool_]) -> bool:
    count = int(np.count_nonzero(targets))
    if not 0 < count < len(targets):
        return False
    middle_target = np.median(scores[targets])
    if np.count_nonzero(scores[~targets] < middle_target) > (len(targets) - count) / 2:
        return False  # the median nontarget is below the median target, and a sort of all nontargets saved
    return _share_below(scores, targets) - 0.5 > min(0.4, 0.75 / math.sqrt(count))


def _share_below(scores: NDArray[np.float64], targets: NDArray[np.bool_]) -> float:
    """Return the share of targets below the median nontarget; equal ones count half."""
    middle = np.median(scores[~targets])
    wanted = scores[targets]
    return float(np.mean(wanted < middle) + np.mean(wanted == middle) / 2)


def _places(pairs: Field) -> tuple[Rows, Rows, Rows]:
    """Where pairs start, their space lies and they end, in their bytes one after the other."""
    letters = pairs.view(np.uint8).reshape(len(pairs), pairs.itemsize)
    starts = np.arange(len(pairs), dtype=np.int64) * pairs.itemsize
    return starts, starts + (letters == ord(" ")).argmax(axis=1), starts + np.count_nonzero(letters, axis=1)


def _examples(rows: NDArray[np.integer], describe: Callable[[int], Problem]) -> Iterator[Problem]:
    """Yield the rows as problems, and one more that counts those beyond what a report keeps."""
    for row in rows[:ROWS_PER_CAUSE].tolist():
        yield describe(row)
    if rows.size > ROWS_PER_CAUSE:
        more = int(rows.size) - ROWS_PER_CAUSE
        expected, found = "no further problem of this kind", f"{more:,} more"
        yield replace(describe(int(rows[0])), line=None, expected=expected, found=found, count=more)


def _wrong_kind(columns: Columns, kind: bytes, row: int) -> Problem:
    expected, found = "“target” or “nontarget”", f"“{kind.decode()}”"
    return Problem("wrong-kind", columns.name, expected, found, "Correct the word.", line=int(columns.lines[row]))


def _repeated_trial(trials: TrialTable, row: int) -> Problem:
    found = f"“{trials.pairs[row].decode()}” again"
    return Problem("repeated-trial", trials.name, "each pair once", found, "Remove it.", line=int(trials.lines[row]))


def _missing(scores: ScoreTable, trials: TrialTable, row: int, folded: Mapping[str, str]) -> Problem:
    pair = trials.pairs[row].decode()
    expected = f"a score of “{pair}” for this trial in {scores.name}"
    remedy = "Score it again: Kaldi drops a trial silently where a speaker vector is missing."
    found = f"none{name_other_capitals(pair, folded)}"
    return Problem("missing-score", trials.name, expected, found, remedy, line=int(trials.lines[row]))


def _extra(scores: ScoreTable, trials: TrialTable, row: int) -> Problem:
    found = f"“{scores.pairs[row].decode()}”, which is not one"
    remedy = "Score the trials of the list and no others."
    return Problem("extra-score", scores.name, f"a trial of {trials.name}", found, remedy, line=int(scores.lines[row]))


def _of_others(scores: ScoreTable, trials: TrialTable) -> Problem:
    found = f"{len(scores.lines):,} lines, none of a trial in the list; the first is of “{scores.pairs[0].decode()}”"
    remedy = "Put the scores of this data set here; names are case-sensitive."
    return Problem("other-trials", scores.name, f"scores of {trials.name}", found, remedy, line=int(scores.lines[0]))


def _repeats(scores: ScoreTable, rows: Rows) -> Iterator[Problem]:
    first: dict[bytes, int] = {}
    for pair, line in zip(scores.pairs.tolist() if rows.size else (), scores.lines.tolist(), strict=False):
        first.setdefault(pair, line)

    def describe(row: int) -> Problem:
        pair = scores.pairs[row]
        found = f"“{pair.decode()}” again (first in line {first[pair]})"
        remedy = "Keep one of them, and submit again."
        return Problem("repeated-score", scores.name, "each pair once", found, remedy, line=int(scores.lines[row]))

    yield from _examples(rows, describe)


def _not_finite(scores: ScoreTable, row: int) -> Problem:
    found = f"no number or {scores.scores[row]:g} for “{scores.pairs[row].decode()}”"
    remedy = "Score it again: every trial needs a number within single precision."
    return Problem("not-finite-score", scores.name, "a finite score", found, remedy, line=int(scores.lines[row]))


def _inverted(scores: ScoreTable, values: NDArray[np.float64], targets: NDArray[np.bool_]) -> Problem:
    found = f"{100 * _share_below(values, targets):.1f} % of the targets below it"
    remedy = "Check the sign: a higher score must mean more alike. A misled attacker has the same effect."
    expected = "most targets above the median nontarget"
    return Problem("inverted-scores", scores.name, expected, found, remedy, Severity.WARNING)
