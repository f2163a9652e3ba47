"""What is wrong with the numbers of a 2020 or 2022 result file: protocol 1.2 (checks) and 1.3 (defects).

What is published of original speech (`published_values`) holds for every edition and every file.

Codes: ``repeated-result``, ``missing-result``, ``copied-asr``, ``wrong-model``, ``eer-not-countable``,
``eer-below-rocch``, ``cllr-below-minimum``, ``hand-typed-value``, ``wrong-category``, ``out-of-range``, ``not-finite``,
``wrong-sum-of-errors``, ``wrong-wer``, ``wrong-words``, ``partial-recognition``, ``wrong-decoding``,
``undefined-average``, ``wrong-average`` and ``unlike-baseline``. Each names the file and, but for the number of a
missing block, the line.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from common.problems import Problem, ProblemList, Severity
from evaluation.formats import results
from evaluation.metrics.averages import find_faults, weighted_average
from evaluation.metrics.zebra import zebra_category
from evaluation.objective_results.results.expected import (
    ExpectedLine,
    ResultFile,
    ResultKind,
    expected_lines,
    is_member,
    path_training,
)
from evaluation.protocols.published import ORIGINAL, load_published
from evaluation.protocols.recipes import Recipe, ResultLines

BASELINE_TOLERANCE = 0.1
_EER_ROUNDING = 0.01  # per cent: what the printed digits of two EERs allow
_RETYPE = "Submit the number as the official script printed it."


def check_results(file: ResultFile, recipe: Recipe) -> tuple[Problem, ...]:
    """Return every problem of the numbers of one file, as a report."""
    expected = expected_lines(recipe, file.kind)
    problems = ProblemList()
    checks = (
        _repeated(file),
        _missing(file, expected),
        _printed(file),
        _countable(file, recipe),
        _calibration(file),
        _below_rocch(file, recipe),
        _words(file, recipe),
        _models(file, recipe),
        _averages(file, recipe),
        unlike_originals(file.reported_numbers, recipe),
    )
    for problem in (problem for check in checks for problem in check):
        problems.add(problem)
    return problems.report()


def _title(entry: results.ResultEntry | ExpectedLine) -> str:
    name, kind, model = entry.slot
    return f"{name}, {kind} ({model})" if model else f"{name}, {kind}" if kind != "average" else name


def _repeated(file: ResultFile) -> Iterator[Problem]:
    first: dict[tuple[str, str, str], int] = {}
    for entry in file.entries:
        if entry.slot in first:
            found = f"{_title(entry)} again (first in line {first[entry.slot]})"
            remedy = "Keep the lines of one run: the official script would add both to the average."
            yield Problem("repeated-result", file.name, "each result once", found, remedy, line=entry.line)
        first.setdefault(entry.slot, entry.line)


def _missing(file: ResultFile, expected: tuple[ExpectedLine, ...]) -> Iterator[Problem]:
    """Yield one problem for each line; for a block of which nothing is there, one for all of it."""
    lines = {entry.slot: entry.line for entry in reversed(file.entries)}
    present = {line.name for line in expected if line.slot in lines and not line.inline}
    reported, place = set(), 0
    evaluate = "Run that part of the evaluation: the official script would silently lower the average."
    average = "Add the line: the weighted sum of the lines of its sets."
    for line in expected:
        place = lines.get(line.slot, place)
        if line.slot in lines:
            continue
        whole = not line.inline and line.name not in present
        title = line.name if whole else _title(line)
        if title not in reported:
            remedy = average if line.kind == "average" else evaluate
            yield Problem("missing-result", file.name, title, "nothing", remedy, line=place + 1)
        reported.add(title)


def _printed(file: ResultFile) -> Iterator[Problem]:
    for entry in file.entries:
        if entry.kind == "average":
            shows = [(entry.values[0], f"{float(entry.values[0]):.{results.AVERAGE_DECIMALS}f}", -math.inf, math.inf)]
        elif entry.kind == "wer":
            shows = [(entry.values[0], f"{float(entry.values[0]):.2f}", 0, math.inf)]
        else:
            numbers = [n for n in results.KINDS[entry.kind].numbers if n.metric != "zebra_category"]
            shows = [
                (written, n.show(float(written)), n.lowest, n.highest)
                for n, written in zip(numbers, entry.values, strict=False)
            ]
        for written, official, lowest, highest in shows:
            value = float(written)
            if not math.isfinite(value):
                remedy = "Check why the evaluation gave no number."
                yield Problem("not-finite", file.name, "a finite number", f"“{written}”", remedy, line=entry.line)
            elif not lowest <= value <= highest:
                expected = f"{_title(entry)} within {lowest:g} to {highest:g}"
                yield Problem("out-of-range", file.name, expected, f"“{written}”", _RETYPE, line=entry.line)
            elif written != official:
                expected, found = f"“{official}”, the official form", f"“{written}”"
                yield Problem("hand-typed-value", file.name, expected, found, _RETYPE, Severity.WARNING, entry.line)
        if entry.kind == "individual" and entry.values[1] not in _categories(float(entry.values[0])):
            expected = f"category {_category(float(entry.values[0]))} for {entry.values[0]}"
            yield Problem("wrong-category", file.name, expected, entry.values[1], _RETYPE, line=entry.line)


def _categories(printed: float) -> set[str]:
    """Categories of the values that are printed so."""
    return {_category(value) for value in (printed - 5e-4, printed, printed + 5e-4)}


def _category(value: float) -> str:
    """Of a disclosure; what can be none, negative or not a number, is complained of elsewhere and counts as 0."""
    return zebra_category(max(0.0, value))


def _countable(file: ResultFile, recipe: Recipe) -> Iterator[Problem]:
    """Kaldi's EER is a whole number of targets by their count (protocol 2.1)."""
    for reported in (*file.reported_numbers, *file.repeated):
        if (reported.identity.metric, reported.identity.estimator) != ("eer", "kaldi") or not math.isfinite(
            reported.value
        ):
            continue
        one = recipe.data_sets.get(reported.identity.data_set)
        if one is None or not one.targets or not 0 <= reported.value <= 100:
            continue
        near = round(reported.value * one.targets / 100)
        close = [f"{100 * k / one.targets:.4g}" for k in range(near - 1, near + 2)]
        if reported.written not in close and f"{reported.value:.4g}" not in close:
            expected = f"a whole number of {one.targets} targets, such as {close[1]} %"
            remedy = "It was typed by hand or comes from another tool: " + _RETYPE[0].lower() + _RETYPE[1:]
            found = f"“{reported.written}”"
            yield Problem("eer-not-countable", file.name, expected, found, remedy, Severity.WARNING, reported.line)


def _calibration(file: ResultFile) -> Iterator[Problem]:
    """The minimum over all calibrations cannot exceed the value of one; rounding keeps the order (protocol
    2.2)."""
    for entry in file.entries:
        if entry.kind == "cllr" and float(entry.values[0]) > float(entry.values[1]):
            least, actual = entry.values
            expected = f"a Cllr of at least its minimum {least}"
            remedy = "The two may be swapped: the official script prints the minimum first."
            yield Problem("cllr-below-minimum", file.name, expected, f"“{actual}”", remedy, line=entry.line)


def _below_rocch(file: ResultFile, recipe: Recipe) -> Iterator[Problem]:
    """Kaldi's EER is no lower than that of the convex hull (protocol 2.1); allowed for are one target and rounding."""
    reported_numbers = {reported.identity: reported for reported in file.reported_numbers}
    for identity, reported in reported_numbers.items():
        hull = reported_numbers.get(replace(identity, estimator="rocch"))
        one = recipe.data_sets.get(identity.data_set)
        if (identity.metric, identity.estimator) != ("eer", "kaldi") or hull is None:
            continue
        if one is None or not one.targets or reported.value < 0 or hull.value > 50:  # out of range is said elsewhere
            continue
        if reported.value < hull.value - 100 / one.targets - _EER_ROUNDING:
            expected = f"at least about the ROCCH-EER of {hull.written} % in line {hull.line}"
            remedy = "No scores give both: submit the numbers of one run as the official scripts printed them."
            found = f"an EER of {reported.written} %"
            yield Problem("eer-below-rocch", file.name, expected, found, remedy, Severity.WARNING, reported.line)


def _words(file: ResultFile, recipe: Recipe) -> Iterator[Problem]:
    for reported in (*file.reported_numbers, *file.repeated):
        if (counts := reported.counts) is None:
            continue
        parts = counts.insertions + counts.deletions + counts.substitutions
        if parts != counts.errors:
            expected = f"{parts} errors, the sum of insertions, deletions and substitutions"
            yield Problem("wrong-sum-of-errors", file.name, expected, str(counts.errors), _RETYPE, line=reported.line)
        if counts.deletions + counts.substitutions > counts.words:
            expected = f"at most {counts.words} deletions and substitutions, one for each word"
            found = str(counts.deletions + counts.substitutions)
            yield Problem("wrong-sum-of-errors", file.name, expected, found, _RETYPE, line=reported.line)
        if not counts.words or abs(reported.value - 100 * counts.errors / counts.words) > 0.005 + 1e-9:
            rate = f"{100 * counts.errors / counts.words:.2f} %" if counts.words else "at least one word"
            expected = f"{rate}, {counts.errors} errors in {counts.words} words"
            yield Problem("wrong-wer", file.name, expected, f"{reported.written} %", _RETYPE, line=reported.line)
        yield from _reference_words(file, reported, recipe)


def _reference_words(file: ResultFile, reported: results.ReportedNumber, recipe: Recipe) -> Iterator[Problem]:
    assert reported.counts is not None  # noqa: S101
    wanted = recipe.data_sets[reported.identity.data_set].words
    if reported.partial:
        found = f"[PARTIAL], {reported.counts.words} of {wanted} words" if wanted else "[PARTIAL]"
        remedy = "Recognise every utterance: those without a hypothesis were left out, not counted as deleted."
        yield Problem("partial-recognition", file.name, "all utterances", found, remedy, line=reported.line)
    elif wanted and reported.counts.words != wanted:
        found = f"{reported.counts.words} words"
        remedy = "Score the whole set with its own transcripts."
        expected = f"{wanted} words in {reported.identity.data_set}"
        yield Problem("wrong-words", file.name, expected, found, remedy, line=reported.line)


def _models(file: ResultFile, recipe: Recipe) -> Iterator[Problem]:
    """Which recognizer each WER names, and with which of the official settings (protocol 1.3, 2 and 2.8)."""
    copied = []
    for entry in file.entries:
        if (said := entry.recognition) is None:
            continue
        is_anon = entry.name.endswith("_anon")
        training = path_training(said.path)
        if file.kind is ResultKind.ORIGINAL and training is results.Speech.ANONYMISED:
            copied.append(entry)
        elif _wrong_model(file.kind, training, is_anon):
            wanted = "original" if training is results.Speech.ANONYMISED else "anonymised"
            expected = f"the recognizer trained on {wanted} speech"
            remedy = "Submit the results of that recognizer."
            yield Problem("wrong-model", file.name, expected, f"“{said.path}”", remedy, line=entry.line)
        if recipe.results:
            yield from _settings(file, entry, recipe.results)
        if f"decode_{entry.name.removeprefix('ASR-')}_" not in said.path:
            expected = f"a decoding of {entry.name.removeprefix('ASR-')}"
            yield Problem("wrong-decoding", file.name, expected, f"“{said.path}”", _RETYPE, line=entry.line)
    if copied:
        found = f"{len(copied)} lines of the recognizer retrained on anonymised speech, such as “{copied[0].name}”"
        remedy = "Known problem of the official script; the original recognizer's WERs are in ASR-* and the summary."
        expected = "WERs of the recognizer trained on original speech"
        yield Problem("copied-asr", file.name, expected, found, remedy, Severity.WARNING, copied[0].line)


def _wrong_model(kind: ResultKind, training: results.Speech | None, is_anonymised: bool) -> bool:
    if training is None:
        return False
    if kind is ResultKind.SUMMARY:
        return is_anonymised is not (training is results.Speech.ANONYMISED)
    return kind is ResultKind.RETRAINED and training is results.Speech.ORIGINAL


def _settings(file: ResultFile, entry: results.ResultEntry, lines: ResultLines) -> Iterator[Problem]:
    assert entry.recognition is not None  # noqa: S101
    settings = entry.recognition.settings
    low, high = lines.lm_weights
    if settings is None or not low <= settings[0] <= high or settings[1] not in lines.word_insertion_penalties:
        expected = f"wer_<{low} to {high}>_<{', '.join(lines.word_insertion_penalties)}>"
        found = f"“{entry.recognition.path.rpartition('/')[2]}”"
        remedy = "Score with the official settings."
        yield Problem("wrong-decoding", file.name, expected, found, remedy, Severity.WARNING, entry.line)


def _averages(file: ResultFile, recipe: Recipe) -> Iterator[Problem]:
    """Yield each printed average against the weighted sum of the printed values of this file (protocol 2.9)."""
    numbers = (*file.reported_numbers, *file.repeated)
    for reported in numbers:
        if not reported.identity.data_set.startswith("average_"):
            continue
        split = reported.identity.data_set.removeprefix("average_")
        weights = recipe.track.average(reported.identity.metric).weights[split]
        values = [
            (one.identity.data_set, one.value)
            for one in numbers
            if one.identity.data_set in weights and is_member(one.identity, reported.identity)
        ]
        if faults := find_faults(values, weights):
            remedy = "Complete the lines, then average again."
            expected = "an average of complete lines"
            found = "; ".join(f"{what}: {', '.join(names)}" for what, names in faults.items())
            yield Problem("undefined-average", file.name, expected, found, remedy, line=reported.line)
            continue
        average = weighted_average(values, weights)
        if abs(reported.value - average.value) > 0.5 * 10**-results.AVERAGE_DECIMALS + 1e-9:
            expected = f"{average.value:.{results.AVERAGE_DECIMALS}f}, the weighted sum of the lines above"
            remedy = "Average the lines of this file."
            yield Problem("wrong-average", file.name, expected, f"“{reported.written}”", remedy, line=reported.line)


def unlike_originals(reported_numbers: Iterable[results.ReportedNumber], recipe: Recipe) -> Iterator[Problem]:
    """Original speech with the original models must give every team about the published values (protocol 1.2)."""
    for reported in reported_numbers:
        published = published_values(recipe, reported.identity)
        if is_unlike(reported.value, published):
            expected = f"about {published[0]:g} %, as published for original speech"
            remedy = "Check models and data: this number does not depend on the anonymiser."
            found = f"“{reported.written}”"
            yield Problem("unlike-baseline", reported.file, expected, found, remedy, Severity.WARNING, reported.line)


def is_unlike(value: float, published: Sequence[float]) -> bool:
    """Return whether a value is about none of those that were published, where there are some."""
    return bool(published) and all(abs(value - one) > BASELINE_TOLERANCE + 1e-9 for one in published)


def published_values(recipe: Recipe, identity: results.NumberIdentity) -> tuple[float, ...]:
    """Return what an edition publishes for this number of original speech with the original model, in per cent.

    It does not depend on the anonymiser, so every submission should come within about 0.1 of it (protocol 1.2). There
    is none where the portal evaluates: its evaluators are others than those of the published numbers.

    Returns:
        That of the recipe first, then others of a shipped edition whose sources differ.
    """
    one = recipe.data_sets.get(identity.data_set)
    is_original = identity.training is identity.speech is results.Speech.ORIGINAL
    if one is None or one.original_value is None or not is_original or recipe.evaluation.by_portal:
        return ()
    if identity.metric == "eer":
        ranked = {rule.estimator for rule in recipe.metrics if rule.key == "eer"} - {"rocch"}
        is_published = identity.attack_model is results.AttackModel.UNPROTECTED and identity.estimator in ranked
    else:
        ranked_recognition = recipe.results.ranked_recognition if recipe.results else ""
        is_published = (identity.metric, identity.estimator) in (("wer", ranked_recognition), ("uar", ""))
    if not is_published:
        return ()
    measured = ORIGINAL, identity.data_set, identity.metric, identity.estimator
    others = (
        float(number.value)
        for number in load_published(recipe.edition)
        if (number.system, number.data_set, number.metric, number.estimator) == measured
    )
    return one.original_value, *others
