"""An edition of the challenge as data: its sets, metrics, averages, conditions, and what of it is uncertain.

A recipe is a TOML file; the four of the official editions lie beside this module and an organizer may write another.
Conventions: data sets are named as their Kaldi directories, without the suffix of anonymised speech; EERs and WERs are
in per cent.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import MISSING, dataclass, fields
from functools import cache
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar, get_type_hints

from common.errors import ProblemsError
from common.toml_files import find_unprintable, parse_toml
from evaluation.protocols.evaluation_table import (
    BY_TEAMS,
    AveragedMetric,
    Evaluation,
    KnownEngines,
    evaluation_problems,
    track_problems,
)

T = TypeVar("T")

FOLDER = Path(__file__).parent
WEIGHT_TOLERANCE = 1e-9
LARGEST_EER = 100
LARGEST_RATE = 1000  # per cent; a word error rate may pass 100
LARGEST_NUMBER = 10**12
MOST_PROBLEMS = 100  # of a recipe that are told
NUMBER = f"a finite number of at most {len(str(LARGEST_NUMBER)) - 1} digits"
COUNT = f"a whole number from 0 to {LARGEST_NUMBER:,}"
_NAMES_SHOWN, _CHARACTERS_SHOWN = 30, 80
POLICIES = ("cumulative", "interval")
BASES = ("recomputed", "claims")
BETTER = ("lower", "higher")
ROLES = ("enrolment", "trial", "recognition", "emotion", "training", "joint")


@dataclass(frozen=True, slots=True)
class DataSet:
    """One data set; a count of None is not known.

    Attributes:
        role: enrolment, trial, recognition, emotion, training, or joint (sets anonymised in one run).
        gender: f, m, mixed (pairs of any gender) or all.
        track: the only track that has it; empty where that follows from averages and languages.
        enrolment: of a trial set, the set that its models are enrolled with.
        id_hash, trials_hash: first 16 hexadecimal digits of the SHA-256 of the sorted ids and ``trials`` lines.
        directory: name of the Kaldi directory where it differs.
        parts: of a recognition set, the sets whose utterances it has; empty where their names say so.
        original_value: published EER, WER or UAR of the original speech with the original model, in per cent.
    """

    name: str
    role: str
    split: str
    gender: str
    language: str = "en"
    track: str = ""
    enrolment: str = ""
    directory: str = ""
    parts: tuple[str, ...] = ()
    id_hash: str = ""
    trials_hash: str = ""
    utterances: int | None = None
    speakers: int | None = None
    models: int | None = None
    targets: int | None = None
    nontargets: int | None = None
    words: int | None = None
    minimum_bytes: int | None = None
    original_value: float | None = None

    @property
    def trials(self) -> int | None:
        """Return number of trials."""
        return None if self.targets is None or self.nontargets is None else self.targets + self.nontargets


@dataclass(frozen=True, slots=True)
class MetricRule:
    """A metric of the edition; primary ones decide the rank."""

    key: str
    primary: bool
    estimator: str = ""


@dataclass(frozen=True, slots=True)
class Average:
    """A weighted average over data sets.

    Attributes:
        label: how the official scripts print it.
        weights: of each split, the weight of each data set; they add up to 1.
    """

    metric: str
    label: str
    weights: Mapping[str, Mapping[str, float]]
    estimator: str = ""


@dataclass(frozen=True, slots=True)
class Gate:
    """A minimum that a system must reach to be ranked, by the mean of each group of data sets."""

    metric: str
    minimum: float
    inclusive: bool
    groups: tuple[tuple[str, ...], ...]
    estimator: str = ""


@dataclass(frozen=True, slots=True)
class MetricName:
    """A metric in one estimator."""

    metric: str
    estimator: str = ""


@dataclass(frozen=True, slots=True)
class Utility:
    """A metric that systems of one condition are ordered by."""

    metric: str
    better: str
    estimator: str = ""


@dataclass(frozen=True, slots=True)
class Ranking:
    """How an edition ranks.

    Attributes:
        minimum_eers: the limit of each condition, ascending; empty where an organizer sets them.
        policy: ``cumulative`` (a system competes in every condition that it meets) or ``interval`` (in the last one).
        inclusive: whether an average equal to the limit meets it.
        note_within: an average this close to a limit deserves a note.
        utilities: one ranking for each.
        ties, several_systems, late: what holds there, in words; basis: ``claims`` ranks reported numbers, too.
    """

    split: str
    attack_model: str
    privacy: MetricName
    minimum_eers: tuple[float, ...]
    policy: str
    inclusive: bool
    note_within: float
    utilities: tuple[Utility, ...]
    ties: str
    several_systems: str
    late: str
    gates: tuple[Gate, ...] = ()
    basis: str = BASES[0]


@dataclass(frozen=True, slots=True)
class Track:
    """A task of an edition with its own averages and ranking; None where nothing is ranked."""

    name: str
    languages: tuple[str, ...]
    surprise_languages: tuple[str, ...] = ()
    averages: tuple[Average, ...] = ()
    ranking: Ranking | None = None

    def average(self, metric: str) -> Average:
        """Return the average of a metric.

        Raises:
            ProblemsError: the track has none.
        """
        for average in self.averages:
            if average.metric == metric:
                return average
        known = ", ".join(average.metric for average in self.averages) or "none"
        raise ProblemsError(f"Track {self.name} averages {known}; found no average of “{metric}”.")


@dataclass(frozen=True, slots=True)
class ResultLines:
    """What a complete 2020 or 2022 result file holds: the kinds of line of each block.

    Attributes:
        detection: of each ASV block.
        recognition: of each ASR block, by language model.
        trial_set, distinctiveness: of each trial set.
        ranked_recognition: the language model whose WER counts.
        lm_weights: lowest and highest language model weight tried.
        word_insertion_penalties: those tried.
    """

    detection: tuple[str, ...]
    recognition: tuple[str, ...]
    trial_set: tuple[str, ...]
    distinctiveness: tuple[str, ...]
    ranked_recognition: str
    lm_weights: tuple[int, ...]
    word_insertion_penalties: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Emotions:
    """Labels of the classes of a recogniser of emotions."""

    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Recipe:
    """One edition.

    Attributes:
        uncertain: dotted names of the fields whose value no text at hand confirms.
        results: None where the edition has no such files.
        emotions: labels of the emotion classes.
        evaluation: who computes the numbers.
        keeps_duration: False where anonymised speech may last much longer or shorter than the original.
    """

    edition: str
    title: str
    anonymised_suffix: str
    baselines: tuple[str, ...]
    attack_models: tuple[str, ...]
    uncertain: tuple[str, ...]
    data_sets: Mapping[str, DataSet]
    metrics: tuple[MetricRule, ...]
    tracks: Mapping[str, Track]
    results: ResultLines | None = None
    emotions: tuple[str, ...] = ()
    evaluation: Evaluation = BY_TEAMS
    keeps_duration: bool = True

    @property
    def track(self) -> Track:
        """Return the only track.

        Raises:
            ProblemsError: the edition has several; name one in `tracks`.
        """
        if len(self.tracks) != 1:
            raise ProblemsError(f"{self.title} has the tracks {', '.join(self.tracks)}: name one of them.")
        return next(iter(self.tracks.values()))

    def is_uncertain(self, field: str) -> bool:
        """Return whether a dotted field, or a table that holds it, is marked uncertain."""
        return any(field == name or field.startswith(f"{name}.") for name in self.uncertain)

    def sets(self, role: str, split: str | None = None) -> tuple[DataSet, ...]:
        """Return the data sets of a role, of one split or of all, in the order of the file."""
        return tuple(one for one in self.data_sets.values() if one.role == role and split in (None, one.split))

    def list_parts(self, data_set: DataSet, known: Collection[str]) -> tuple[str, ...]:
        """Return the sets among those known whose utterances a data set has: itself, or the trial sets that a
        recognition set puts together, such as ``libri_dev_asr`` those of both genders.
        """
        if data_set.name in known:
            return (data_set.name,)
        if data_set.role != "recognition":
            return ()
        if data_set.parts:
            return data_set.parts if set(data_set.parts) <= set(known) else ()
        start = f"{data_set.name.removesuffix('_asr')}_trials"
        parts = (one.name for one in self.sets("trial", data_set.split))
        return tuple(name for name in parts if name.startswith(start) and name in known)


def list_hash(lines: Iterable[str]) -> str:
    """Return the hash by which recipes name a list of ids or trials."""
    return hashlib.sha256("".join(f"{line}\n" for line in sorted(lines, key=str.encode)).encode()).hexdigest()[:16]


def shipped_editions() -> tuple[str, ...]:
    """Return the editions whose recipe lies beside this module, oldest first."""
    return tuple(sorted(path.stem for path in FOLDER.glob("[0-9]*.toml")))


@cache
def load_recipe(edition: str) -> Recipe:
    """Return a shipped recipe, such as ``2022``; read once in a process, for it cannot be changed.

    Raises:
        ProblemsError: no such edition.
    """
    if edition not in shipped_editions():
        raise ProblemsError(f"Expected one of the editions {', '.join(shipped_editions())}, found “{edition}”.")
    return read_recipe(FOLDER / f"{edition}.toml")


def read_recipe(path: Path) -> Recipe:
    """Return a recipe from a file.

    Raises:
        ProblemsError: the file cannot be read, is no TOML, or a field is missing, unknown, of a wrong type or
            contradicts another; each problem names file and field.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ProblemsError(f"{path.name}: expected a readable TOML file, found: {error}.") from error
    return parse_recipe(text, file=path.name)


def parse_recipe(
    text: str,
    *,
    file: str,
    metric_problem: Callable[[str, str], str] | None = None,
    engines: KnownEngines | None = None,
    is_stored: bool = False,
) -> Recipe:
    """Return a recipe from the text of a TOML file that its owner knows as `file`.

    Args:
        is_stored: an edition has it already, so that texts that no page should print are no problem any more.
        metric_problem: of a metric and an estimator that the recipe names, what is wrong with them, or "".
        engines: those that there are; None to take any name.

    Raises:
        ProblemsError: as `read_recipe`, with every problem of the file.
    """
    table = parse_toml(text, file)
    if not is_stored and (unprintable := list(islice(find_unprintable(table, "recipe"), MOST_PROBLEMS))):
        raise ProblemsError(f"{file}: {problem}" for problem in unprintable)
    reader = _RecipeReader(table, metric_problem or (lambda *_: ""), engines)
    recipe = reader.recipe()
    if recipe is None or reader.problems:
        told = [f"{file}: {problem}" for problem in islice(reader.problems, MOST_PROBLEMS)]
        more = len(reader.problems) - len(told)
        raise ProblemsError([*told, *([f"{file}: {more:,} more problems."] if more else [])])
    return recipe


_hints = cache(get_type_hints)


class TableReader:
    """Dataclasses from the tables of a TOML file, each field held against its annotation.

    Keeps in `problems`, in the order of the file, one sentence for each thing that is wrong."""

    def __init__(self) -> None:
        self.problems: dict[str, None] = {}  # in order, each once

    def add_problem(self, sentence: str) -> None:
        """Keep a sentence, once."""
        self.problems[sentence] = None

    def one_of(self, found: str, allowed: Collection[str], place: str) -> None:
        """A problem unless the value is one of those allowed."""
        if found not in allowed:
            names = ", ".join([*islice(allowed, _NAMES_SHOWN), *(["…"] if len(allowed) > _NAMES_SHOWN else [])])
            self.add_problem(f"{place}: expected one of {names}, found {shown(found)}.")

    def tables(self, table: dict[str, Any], key: str) -> list[tuple[str, Any]]:
        """Return the named tables below a key, which is taken out; there has to be one."""
        found = table.pop(key, None)
        if not isinstance(found, dict) or not found:
            self.add_problem(f"{key}: expected at least one table, found {shown(found)}.")
            return []
        return list(found.items())

    def rows(self, kind: type[T], table: dict[str, Any], key: str, place: str) -> list[T]:
        """Return the list of tables below a key, which is taken out; those with a problem are left out."""
        found = table.pop(key, [])
        if not isinstance(found, list):
            self.add_problem(f"{place}: expected a list of tables, found {shown(found)}.")
            return []
        built = [self.build(kind, row, f"{place}[{number}]") for number, row in enumerate(found)]
        return [one for one in built if one is not None]

    def build(self, kind: type[T], table: Any, place: str, **built: Any) -> T | None:
        """Return a dataclass from a table; `built` fields are taken as they are. None where something is wrong with
        it."""
        if not isinstance(table, dict):
            self.add_problem(f"{place}: expected a table, found {shown(table)}.")
            return None
        before = len(self.problems)
        hints = _hints(kind)  # type: ignore[arg-type]
        known = {field.name: field for field in fields(kind)}  # type: ignore[arg-type]
        for name in table:
            if name not in known or name in built:
                self.add_problem(f"{place}: expected the fields {', '.join(known)}, found {shown(name)}.")
        values = dict(built)
        for name, field in known.items():
            if name in built:
                continue
            if name in table:
                values[name] = self._value(table[name], str(hints[name]), f"{place}.{name}")
            elif field.default is MISSING:
                self.add_problem(f"{place}: expected the field “{name}”, found none.")
        return None if len(self.problems) > before else kind(**values)

    def _value(self, found: Any, hint: str, place: str) -> Any:
        if "Mapping" in hint:
            return self._mapping(found, place)
        if hint.startswith("tuple"):
            return self._list(found, hint.removeprefix("tuple["), place)
        number = is_number(found)
        wanted, fits = {
            "<class 'str'>": ("a text in quotation marks", isinstance(found, str)),
            "<class 'bool'>": ("true or false", isinstance(found, bool)),
            "<class 'float'>": (NUMBER, number),
            "float | None": (NUMBER, number),
            "int | None": (COUNT, number and isinstance(found, int) and found >= 0),
        }[hint]
        if not fits:
            self.add_problem(f"{place}: expected {wanted}, found {shown(found)}.")
        return found

    def _mapping(self, found: Any, place: str) -> MappingProxyType[str, Any]:
        """Of each split, numbers by name."""
        rows = found.items() if isinstance(found, dict) else ()
        if not isinstance(found, dict) or not all(isinstance(row, dict) for _, row in rows):
            self.add_problem(f"{place}: expected a table for each split, found {shown(found)}.")
            return MappingProxyType({})
        for row in found.values():
            for value in row.values():
                if not is_number(value):
                    self.add_problem(f"{place}: expected {NUMBER}, found {shown(value)}.")
        return MappingProxyType({split: MappingProxyType(dict(row)) for split, row in found.items()})

    def _list(self, found: Any, hint: str, place: str) -> tuple[Any, ...]:
        if not isinstance(found, list):
            self.add_problem(f"{place}: expected a list, found {shown(found)}.")
            return ()
        if hint.startswith("tuple"):
            return tuple(self._list(one, hint.removeprefix("tuple["), place) for one in found)
        for value in found:
            if hint.startswith("str"):
                if not isinstance(value, str):
                    self.add_problem(f"{place}: expected texts in quotation marks, found {shown(value)}.")
            elif not is_number(value):
                self.add_problem(f"{place}: expected {NUMBER}, found {shown(value)}.")
        return tuple(found)


class _RecipeReader(TableReader):
    """Reads the tables of a recipe, and holds each against the others as soon as it is read."""

    def __init__(
        self, table: dict[str, Any], metric_problem: Callable[[str, str], str], engines: KnownEngines | None
    ) -> None:
        super().__init__()
        self.table, self.metric_problem, self.engines = dict(table), metric_problem, engines
        sets, models = table.get("data_sets"), table.get("attack_models")
        self.set_names: dict[str, Any] = sets if isinstance(sets, dict) else {}
        self.attack_models = tuple(models) if isinstance(models, list) else ()

    def recipe(self) -> Recipe | None:
        """Return the whole recipe; None where something is wrong."""
        given = self.table
        sets = {name: self._data_set(row, name) for name, row in self.tables(given, "data_sets")}
        tracks = {name: self._track(row, name) for name, row in self.tables(given, "tracks")}
        for name, one in sets.items():
            if one is not None and one.track:
                self.one_of(one.track, tuple(tracks), f"data_sets.{name}.track")
        metrics = tuple(self.rows(MetricRule, given, "metrics", "metrics"))
        for number, rule in enumerate(metrics):
            self._metric(rule.key, rule.estimator, f"metrics[{number}]")
        emotions = self.build(Emotions, given.pop("emotions", {}), "emotions")
        lines = given.pop("results", None)
        results = None if lines is None else self.build(ResultLines, lines, "results")
        evaluation = self._evaluation(sets.values(), tracks.values(), results)
        built = {"data_sets": MappingProxyType(sets), "tracks": MappingProxyType(tracks), "metrics": metrics}
        labels = emotions.labels if emotions else ()
        return self.build(Recipe, given, "recipe", **built, results=results, emotions=labels, evaluation=evaluation)

    def _data_set(self, table: Any, name: str) -> DataSet | None:
        place = f"data_sets.{name}"
        one = self.build(DataSet, table, place, name=name)
        if one is not None:
            self.one_of(one.role, ROLES, f"{place}.role")
            if one.role == "trial" and one.enrolment not in self.set_names:
                self.add_problem(f"{place}.enrolment: expected a data set, found {shown(one.enrolment)}.")
            for part in one.parts if self.set_names else ():
                self.one_of(part, self.set_names, f"{place}.parts")
            if not 0 <= (one.original_value or 0) <= LARGEST_RATE:
                limits = f"from 0 to {LARGEST_RATE} %"
                self.add_problem(f"{place}.original_value: expected a rate {limits}, found {one.original_value:g}.")
        return one

    def _track(self, table: Any, name: str) -> Track | None:
        place = f"tracks.{name}"
        if not isinstance(table, dict):
            return self.build(Track, table, place)
        given = dict(table)
        averages = tuple(self.rows(Average, given, "averages", f"{place}.averages"))
        for average in averages:
            self._check_average(average, f"{place}: {average.label}")
        ranking = given.pop("ranking", None)
        ranking = ranking and self._ranking(ranking, f"{place}.ranking")
        return self.build(Track, given, place, name=name, averages=averages, ranking=ranking)

    def _ranking(self, table: Any, place: str) -> Ranking | None:
        if not isinstance(table, dict):
            return self.build(Ranking, table, place)
        given = dict(table)
        gates = tuple(self.rows(Gate, given, "gates", f"{place}.gates"))
        utilities = tuple(self.rows(Utility, given, "utilities", f"{place}.utilities"))
        privacy = self.build(MetricName, given.pop("privacy", {}), f"{place}.privacy")
        for gate in gates:
            self._metric(gate.metric, gate.estimator, f"{place}.gates")
        for utility in utilities:
            self._metric(utility.metric, utility.estimator, f"{place}.utilities")
        if privacy is not None:
            self._metric(privacy.metric, privacy.estimator, f"{place}.privacy")
        for utility in utilities:
            self.one_of(utility.better, BETTER, f"{place}.utilities.better")
        self._known_sets((name for gate in gates for group in gate.groups for name in group), f"{place}.gates")
        ranking = self.build(Ranking, given, place, gates=gates, utilities=utilities, privacy=privacy)
        if ranking is not None:
            self._check_ranking(ranking, place)
        return ranking

    def _metric(self, metric: str, estimator: str, place: str) -> None:
        if problem := self.metric_problem(metric, estimator):
            self.add_problem(f"{place}: {problem}")

    def _evaluation(
        self, sets: Iterable[DataSet | None], tracks: Iterable[Track | None], results: ResultLines | None
    ) -> Evaluation:
        evaluation = self.build(Evaluation, self.table.pop("evaluation", {}), "evaluation")
        if evaluation is None:
            return BY_TEAMS
        for sentence in evaluation_problems(evaluation, {one.role for one in sets if one is not None}, self.engines):
            self.add_problem(sentence)
        estimator = results.ranked_recognition if results is not None else ""
        for track in tracks:
            if track is None:
                continue
            place, attack_model = f"tracks.{track.name}", track.ranking.attack_model if track.ranking else ""
            averages = [AveragedMetric(f"{place}: {one.label}", one.metric, one.estimator) for one in track.averages]
            for sentence in track_problems(evaluation, track.name, attack_model, averages, estimator):
                self.add_problem(sentence)
        return evaluation

    def _known_sets(self, names: Iterable[str], place: str) -> None:
        """That there are no data sets at all is said once, not of each name."""
        for name in names if self.set_names else ():
            self.one_of(name, self.set_names, place)

    def _check_average(self, average: Average, place: str) -> None:
        self._metric(average.metric, average.estimator, place)
        for split, weights in average.weights.items():
            self._known_sets(weights, f"{place}, {split}")
            if abs(sum(weights.values()) - 1) > WEIGHT_TOLERANCE:
                self.add_problem(
                    f"{place}, {split}: expected weights that add up to 1, found {sum(weights.values()):g}."
                )

    def _check_ranking(self, ranking: Ranking, place: str) -> None:
        self.one_of(ranking.policy, POLICIES, f"{place}.policy")
        self.one_of(ranking.basis, BASES, f"{place}.basis")
        self.one_of(ranking.attack_model, self.attack_models, f"{place}.attack_model")
        limits = list(ranking.minimum_eers)
        if limits != sorted(set(limits)):
            self.add_problem(f"{place}.minimum_eers: expected ascending limits, found {limits}.")
        for limit in limits:
            if not 0 <= limit <= LARGEST_EER:
                self.add_problem(f"{place}.minimum_eers: expected limits from 0 to 100 %, found {limit:g}.")


def is_number(value: Any) -> bool:
    """Return whether a value is a finite number that something may be computed with."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= LARGEST_NUMBER


def shown(found: Any) -> str:
    """Return a value as a sentence gives it, cut where it is long."""
    if isinstance(found, int) and abs(found) > LARGEST_NUMBER:
        return f"a number of about {int(found.bit_length() * math.log10(2)) + 1:,} digits"
    text = str(found) if len(str(found)) <= _CHARACTERS_SHOWN else f"{str(found)[: _CHARACTERS_SHOWN - 1]}…"
    return "nothing" if found is None else f"“{text}”"
