"""Word error rates: from the counts that result files state, and from hypotheses where a team hands them in.

In editions whose result files have a fixed form (2020, 2022) a rate is the number of two decimals that Kaldi prints:
the official averages add up these. Hypotheses are a Kaldi ``text`` for each recognition set, as the intake finds them
(``hypotheses/libri_dev_asr_anon.txt``, ``libri_dev_asr_anon.hyp.txt``); they take the place of the counts.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from common.file_names import fold_names, name_other_capitals
from common.problems import Problem, ProblemList, Severity, count_problems
from evaluation.formats.kaldi import read_text
from evaluation.formats.results import Gender, NumberIdentity, ReportedNumber, Speech
from evaluation.metrics.bootstrap import Replicates, bootstrap_ratio, weighted_sum
from evaluation.metrics.word_errors import UtteranceWordErrors, count_word_errors, split_words
from evaluation.objective_results.detection import in_its_decimals
from evaluation.objective_results.recomputation import agrees
from evaluation.objective_results.sources import Work
from evaluation.objective_results.values import Basis, with_speech
from evaluation.protocols.recipes import DataSet, Recipe

MOST_WORDS = 2000  # of a hypothesis; what an alignment takes grows with their square
_STAMP = re.compile(r"results-.+\Z")


@dataclass(frozen=True, slots=True)
class HypothesisFile:
    """Where the hypotheses of one recognition test lie, and what was recognised."""

    path: Path
    name: str
    identity: NumberIdentity


def add_words(work: Work) -> None:
    """Word error rates from hypotheses, then from counts where there are none."""
    for file in hypothesis_files(work.folder, work.recipe):
        _add_hypotheses(work, file)
    for identity, reported in work.reported():
        if identity.metric == "wer" and reported.counts and reported.counts.words and identity not in work.numbers:
            parts = reported.counts.insertions + reported.counts.deletions + reported.counts.substitutions
            if uncounted := _uncounted(work, reported):
                work.reasons.setdefault(identity, uncounted)
            if identity in work.reasons:
                continue
            value = _in_print(work, 100 * parts / reported.counts.words)
            work.add(identity, value, Basis.COUNTS, reported.counts.words, source=(reported.file, "unlike-counts"))


def _uncounted(work: Work, reported: ReportedNumber) -> str:
    """Return why word counts are none of the whole set; empty where they are."""
    if reported.partial:
        return "some utterances have no hypothesis and were left out of the count"
    assert reported.counts is not None  # noqa: S101
    data_set, found = work.recipe.data_sets[reported.identity.data_set], reported.counts.words
    if data_set.words == found:
        return ""
    spoken = sum(len(split_words(text)) for text in work.sources.find_references(data_set).values())
    wanted = spoken or data_set.words
    if wanted in (None, found):
        return ""
    return f"{reported.file} does not cover the organizer's words: {found:,} counted of {wanted:,}"


def hypothesis_files(folder: Path, recipe: Recipe) -> Iterator[HypothesisFile]:
    """Yield the hypotheses among the documents, each named like the recognition set and speech that it is of."""
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        identity = hypothesis_identity(name, recipe)
        if identity and path.is_file():
            yield HypothesisFile(path, name, identity)


def hypothesis_identity(name: str, recipe: Recipe) -> NumberIdentity | None:
    """Of which word error rate a document holds the hypotheses, by its path in the archive; None for any other.

    Recognised by the retrained model in ``results-<stamp>``, by the original one in ``.orig``, else by the usual.
    """
    *folders, file = name.split("/")
    is_hypothesis = folders[-1:] == ["hypotheses"] or file.endswith(".hyp.txt")
    test = file.removesuffix(".txt").removesuffix(".hyp")
    for data_set in recipe.sets("recognition") if is_hypothesis else ():
        for speech, suffix in ((Speech.ORIGINAL, ""), (Speech.ANONYMISED, recipe.anonymised_suffix)):
            if test == f"{data_set.name}{suffix}":
                return _identity(recipe, data_set, speech, folders)
    return None


def _identity(recipe: Recipe, data_set: DataSet, speech: Speech, folders: list[str]) -> NumberIdentity:
    estimator = recipe.results.ranked_recognition if recipe.results else ""
    identity = NumberIdentity(data_set.name, Gender.ALL, "wer", estimator)
    folder = next((part for part in folders if _STAMP.match(part)), None)
    if folder is None or recipe.results is None:
        return with_speech(recipe, identity, speech=speech)
    training = Speech.ORIGINAL if folder.endswith(".orig") else Speech.ANONYMISED
    return NumberIdentity(data_set.name, Gender.ALL, "wer", estimator, training, None, speech)


def _add_hypotheses(work: Work, file: HypothesisFile) -> None:
    data_set = work.recipe.data_sets[file.identity.data_set]
    references = work.sources.find_references(data_set)
    if not references:
        remedy = "The organizer has to import the transcripts of this corpus; until then the counts are used."
        expected = f"the organizer's transcripts of {data_set.name}"
        work.problems.add(Problem("no-transcripts", file.name, expected, "none", remedy, Severity.WARNING))
        return
    listed = read_hypotheses(file.path, file.name, references)
    work.problems.keep(listed.problems)
    if listed.found:
        work.reasons[file.identity] = f"{file.name} does not cover the organizer's utterances: {listed.found}"
        return
    errors = count_word_errors(references, listed.content)
    counts = errors.present
    if not counts.reference_words:
        work.reasons[file.identity] = f"the transcripts of {data_set.name} hold no word"
        return
    value = _in_print(work, 100 * counts.errors / counts.reference_words)
    work.add(
        file.identity,
        value,
        Basis.TRANSCRIPTS,
        counts.reference_words,
        replicates=_replicates(work, data_set, [one for one in errors.utterances if not one.is_missing]),
        agree=agrees if work.recipe.results else in_its_decimals,
        source=(file.name, "unlike-transcripts"),
    )


@dataclass(frozen=True, slots=True)
class ListedHypotheses:
    """The hypotheses of a file by utterance, its problems, and `found`: how it does not cover its set, if so."""

    content: Mapping[str, str]
    problems: tuple[Problem, ...]
    found: str


def read_hypotheses(path: Path, name: str, utterances: Collection[str]) -> ListedHypotheses:
    """Read a file of hypotheses and hold it against the utterances of its set, where these are known.

    An utterance that stands alone in its line has an empty hypothesis: all of its words count as deleted.

    Problems besides those of the text: ``missing-hypothesis``, ``extra-hypothesis``, ``long-hypothesis``.
    """
    parsed, report = read_text(path, name, known=utterances), ProblemList()
    report.keep(parsed.problems)
    wanted = set(utterances)
    missing = [one for one in utterances if one not in parsed.content] if parsed.content else []
    placed = list(zip(parsed.content.items(), parsed.lines, strict=True))
    extra = [(utterance, line) for (utterance, _), line in placed if wanted and utterance not in wanted]
    lengths = [(len(split_words(text)), line) for (_, text), line in placed]
    long = [(words, line) for words, line in lengths if words > MOST_WORDS]
    folded = fold_names(one for one, _ in extra)
    for one in missing:
        expected, remedy = (
            f"a hypothesis of {one}",
            "Recognise every utterance; if no word was recognised, write the name alone.",
        )
        report.add(Problem("missing-hypothesis", name, expected, f"none{name_other_capitals(one, folded)}", remedy))
    for one, line in extra:
        expected, remedy = "an utterance of the set", "Recognise the utterances of the set and no others."
        report.add(Problem("extra-hypothesis", name, expected, f"“{one}”, which is not one", remedy, line=line))
    for words, line in long:
        expected, remedy = (
            f"at most {MOST_WORDS:,} words in an utterance",
            "Correct the line: no utterance is that long.",
        )
        report.add(Problem("long-hypothesis", name, expected, f"{words:,}", remedy, line=line))
    counted = (
        (len(missing), "utterance without a hypothesis", "utterances without a hypothesis"),
        (len(extra), "utterance that is not of the set", "utterances that are not of the set"),
        (len(long), "hypothesis that is too long", "hypotheses that are too long"),
        (count_problems(parsed.problems, Severity.ERROR), "line with errors", "lines with errors"),
    )
    found = ", ".join(f"{count:,} {one if count == 1 else several}" for count, one, several in counted if count)
    return ListedHypotheses(parsed.content, report.report(), found)


def _replicates(work: Work, data_set: DataSet, utterances: list[UtteranceWordErrors]) -> Replicates | None:
    speakers = work.sources.find_speakers(data_set)
    if any(one.utterance not in speakers for one in utterances):
        return None
    names = [speakers[one.utterance] for one in utterances]
    draws = work.draws(names)
    if draws is None:
        return None
    errors = [one.counts.errors for one in utterances]
    words = [one.counts.reference_words for one in utterances]
    return weighted_sum([(100.0, bootstrap_ratio(errors, words, names, draws))])


def _in_print(work: Work, rate: float) -> float:
    return float(f"{rate:.2f}") if work.recipe.results else rate
