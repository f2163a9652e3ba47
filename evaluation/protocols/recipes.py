"""An edition of the challenge as data: its sets, metrics, averages, conditions, and what of it is uncertain.

A recipe is a TOML file; the four of the official editions lie beside this module and an organizer may write another.
Conventions: data sets are named as their Kaldi directories, without the suffix of anonymised speech; EERs and WERs are
in per cent.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar, get_type_hints

FOLDER = Path(__file__).parent
WEIGHT_TOLERANCE = 1e-9
POLICIES = ("cumulative", "interval")
BETTER = ("lower", "higher")
ROLES = ("enrolment", "trial", "recognition", "emotion", "training", "joint")

T = TypeVar("T")


class RecipeError(ValueError):
    """A recipe that cannot be used: says which file and field, what was expected and what was found."""


@dataclass(frozen=True, slots=True)
class DataSet:
    """One data set; a count of None is not known.

    Attributes:
        role: enrolment, trial, recognition, emotion, training, or joint (sets anonymised in one run).
        gender: f, m, mixed (pairs of any gender) or all.
        enrolment: of a trial set, the set that its models are enrolled with.
        id_hash, trials_hash: first 16 hexadecimal digits of the SHA-256 of the sorted ids and ``trials`` lines.
        directory: name of the Kaldi directory where it differs.
        original_value: published EER or WER of the original speech with the original model, in per cent.
    """

    name: str
    role: str
    split: str
    gender: str
    language: str = "en"
    enrolment: str = ""
    directory: str = ""
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
        """Number of trials."""
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
    """A minimum that a system must reach to be ranked: the mean of each group of data sets is held against it."""

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
        ties, several_systems, late: what holds there, in words.
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


@dataclass(frozen=True, slots=True)
class Track:
    """A task of an edition with its own averages and ranking; None where nothing is ranked."""

    name: str
    languages: tuple[str, ...]
    surprise_languages: tuple[str, ...] = ()
    averages: tuple[Average, ...] = ()
    ranking: Ranking | None = None

    def average(self, metric: str) -> Average:
        """The average of a metric.

        Raises:
            RecipeError: the track has none.
        """
        for average in self.averages:
            if average.metric == metric:
                return average
        known = ", ".join(average.metric for average in self.averages) or "none"
        raise RecipeError(f"Track {self.name} averages {known}; found no average of “{metric}”.")


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
class Recipe:
    """One edition.

    Attributes:
        uncertain: dotted names of the fields whose value no text at hand confirms.
        results: None where the edition has no such files.
        emotions: labels of the emotion classes.
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

    @property
    def track(self) -> Track:
        """The only track.

        Raises:
            RecipeError: the edition has several; name one in `tracks`.
        """
        if len(self.tracks) != 1:
            raise RecipeError(f"{self.title} has the tracks {', '.join(self.tracks)}: name one of them.")
        return next(iter(self.tracks.values()))

    def is_uncertain(self, field: str) -> bool:
        """Whether a dotted field, or a table that holds it, is marked uncertain."""
        return any(field == name or field.startswith(f"{name}.") for name in self.uncertain)

    def sets(self, role: str, split: str | None = None) -> tuple[DataSet, ...]:
        """The data sets of a role, of one split or of all, in the order of the file."""
        every = self.data_sets.values()
        return tuple(one for one in every if one.role == role and split in (None, one.split))


def shipped_editions() -> tuple[str, ...]:
    """The editions whose recipe lies beside this module, oldest first."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.toml")))


def load_recipe(edition: str) -> Recipe:
    """A shipped recipe, such as ``2022``.

    Raises:
        RecipeError: no such edition.
    """
    if edition not in shipped_editions():
        raise RecipeError(f"Expected one of the editions {', '.join(shipped_editions())}, found “{edition}”.")
    return read_recipe(FOLDER / f"{edition}.toml")


def read_recipe(path: Path) -> Recipe:
    """A recipe from a file.

    Raises:
        RecipeError: the file cannot be read, is no TOML, or a field is missing, unknown, of a wrong type or
            contradicts another; the message names file and field.
    """
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise RecipeError(f"{path.name}: expected a readable TOML file, found: {error}.") from error
    try:
        return _recipe(table)
    except RecipeError as error:
        raise RecipeError(f"{path.name}: {error}") from error


def _recipe(table: dict[str, Any]) -> Recipe:
    given = dict(table)
    sets = {name: _build(DataSet, row, f"data_sets.{name}", name=name) for name, row in _tables(given, "data_sets")}
    tracks = {name: _track(row, name) for name, row in _tables(given, "tracks")}
    metrics = tuple(_rows(MetricRule, given, "metrics", "metrics"))
    emotions = tuple(given.pop("emotions", {}).get("labels", ()))
    lines = given.pop("results", None)
    results = None if lines is None else _build(ResultLines, lines, "results")
    built = {"data_sets": MappingProxyType(sets), "tracks": MappingProxyType(tracks), "metrics": metrics}
    recipe = _build(Recipe, given, "recipe", **built, results=results, emotions=emotions)
    _check(recipe)
    return recipe


def _track(table: dict[str, Any], name: str) -> Track:
    given, place = dict(table), f"tracks.{name}"
    averages = tuple(_rows(Average, given, "averages", f"{place}.averages"))
    ranking = given.pop("ranking", None)
    return _build(
        Track, given, place, name=name, averages=averages, ranking=ranking and _ranking(ranking, f"{place}.ranking")
    )


def _ranking(table: dict[str, Any], place: str) -> Ranking:
    given = dict(table)
    gates = tuple(_rows(Gate, given, "gates", f"{place}.gates"))
    utilities = tuple(_rows(Utility, given, "utilities", f"{place}.utilities"))
    privacy = _build(MetricName, given.pop("privacy", {}), f"{place}.privacy")
    return _build(Ranking, given, place, gates=gates, utilities=utilities, privacy=privacy)


def _tables(table: dict[str, Any], key: str) -> list[tuple[str, dict[str, Any]]]:
    found = table.pop(key, None)
    if not isinstance(found, dict) or not found:
        raise RecipeError(f"{key}: expected at least one table, found {_shown(found)}.")
    return list(found.items())


def _rows(kind: type[T], table: dict[str, Any], key: str, place: str) -> list[T]:
    return [_build(kind, row, f"{place}[{number}]") for number, row in enumerate(table.pop(key, []))]


def _build(kind: type[T], table: dict[str, Any], place: str, **built: Any) -> T:
    """A dataclass from a table, each field held against its annotation; `built` fields are taken as they are."""
    if not isinstance(table, dict):
        raise RecipeError(f"{place}: expected a table, found {_shown(table)}.")
    hints = get_type_hints(kind)
    known = {field.name: field for field in fields(kind)}  # type: ignore[arg-type]
    if unknown := [name for name in table if name not in known or name in built]:
        raise RecipeError(f"{place}: expected the fields {', '.join(known)}, found “{unknown[0]}”.")
    values = dict(built)
    for name, field in known.items():
        if name in table:
            values[name] = _value(table[name], str(hints[name]), f"{place}.{name}")
        elif name not in built and field.default is MISSING:
            raise RecipeError(f"{place}: expected the field “{name}”, found none.")
    return kind(**values)


def _value(found: Any, hint: str, place: str) -> Any:
    if "Mapping" in hint and isinstance(found, dict):
        return MappingProxyType({split: MappingProxyType(dict(row)) for split, row in found.items()})
    if hint.startswith("tuple[tuple") and isinstance(found, list):
        return tuple(tuple(row) for row in found)
    if hint.startswith("tuple") and isinstance(found, list):
        return tuple(found)
    number = isinstance(found, int | float) and not isinstance(found, bool)
    fits = {
        "<class 'str'>": isinstance(found, str),
        "<class 'bool'>": isinstance(found, bool),
        "<class 'float'>": number,
        "float | None": number,
        "int | None": isinstance(found, int) and number,
    }
    if not fits.get(hint, False):
        wanted = hint.removeprefix("<class '").removesuffix("'>")
        raise RecipeError(f"{place}: expected {wanted}, found {_shown(found)}.")
    return found


def _shown(found: Any) -> str:
    return "nothing" if found is None else f"“{found}”"


def _check(recipe: Recipe) -> None:
    for one in recipe.data_sets.values():
        _one_of(one.role, ROLES, f"data_sets.{one.name}.role")
        if one.role == "trial" and one.enrolment not in recipe.data_sets:
            raise RecipeError(f"data_sets.{one.name}.enrolment: expected a data set, found “{one.enrolment}”.")
    for track in recipe.tracks.values():
        for average in track.averages:
            _check_average(recipe, average, f"tracks.{track.name}: {average.label}")
        if track.ranking:
            _check_ranking(recipe, track.ranking, f"tracks.{track.name}.ranking")


def _check_average(recipe: Recipe, average: Average, place: str) -> None:
    for split, weights in average.weights.items():
        for name in weights:
            _one_of(name, tuple(recipe.data_sets), f"{place}, {split}")
        if abs(sum(weights.values()) - 1) > WEIGHT_TOLERANCE:
            raise RecipeError(f"{place}, {split}: expected weights that add up to 1, found {sum(weights.values()):g}.")


def _check_ranking(recipe: Recipe, ranking: Ranking, place: str) -> None:
    _one_of(ranking.policy, POLICIES, f"{place}.policy")
    _one_of(ranking.attack_model, recipe.attack_models, f"{place}.attack_model")
    for utility in ranking.utilities:
        _one_of(utility.better, BETTER, f"{place}.utilities.better")
    if list(ranking.minimum_eers) != sorted(set(ranking.minimum_eers)):
        raise RecipeError(f"{place}.minimum_eers: expected ascending limits, found {list(ranking.minimum_eers)}.")
    for gate in ranking.gates:
        for name in (name for group in gate.groups for name in group):
            _one_of(name, tuple(recipe.data_sets), f"{place}.gates")


def _one_of(found: str, allowed: tuple[str, ...], place: str) -> None:
    if found not in allowed:
        raise RecipeError(f"{place}: expected one of {', '.join(allowed)}, found “{found}”.")
