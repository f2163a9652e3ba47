"""A recipe made from a corpus: what follows from its data sets, with a few choices of an organizer, and its TOML text.

`propose_choices` gives every choice its default, `make_recipe` makes the recipe of them, `write_recipe` writes any
recipe so that `parse_recipe` reads the same again. Conventions: EERs in per cent; a trial set is attacked by the trials
of the corpus, or by the full product of the same gender where it has no list.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from types import MappingProxyType
from typing import Any

from evaluation.metrics.voice_similarity import LEAST_SPEAKERS
from evaluation.protocols.evaluation_table import SEMI_INFORMED, UNTRAINED_ATTACKS, Evaluation
from evaluation.protocols.recipes import (
    Average,
    DataSet,
    Gate,
    MetricName,
    MetricRule,
    Ranking,
    Recipe,
    ResultLines,
    Track,
    Utility,
)

EER, PITCH, WER, GAIN = "eer", "pitch_correlation", "wer", "gain_of_voice_distinctiveness"
# How each is computed, and which way of it ranks; in the order in which they are offered.
ESTIMATORS = {EER: "kaldi", WER: "", PITCH: "praat", GAIN: "official"}
UTILITIES = {WER: "lower", PITCH: "higher", GAIN: "higher"}
LABELS = {
    EER: "Average EER",
    WER: "Average WER",
    PITCH: "Average pitch correlation",
    GAIN: "Average gain of voice distinctiveness",
}
BESIDE = (("eer", "rocch"), ("min_cllr", "pav"), ("linkability", ""))  # of the same scores, without a rank
MINIMUM_EERS = (10.0, 20.0, 30.0, 40.0)  # of VoicePrivacy 2024
MINIMUM_PITCH_CORRELATION = 0.3  # of VoicePrivacy 2022
TRAINING_SPEAKERS, TRAINING_UTTERANCES = 10, 64  # the least that an attacker is proposed for
EVALUATION_SPEAKERS = 20  # with fewer, chance decides between similar systems; VoicePrivacy 2022 has 40 and 30
USUAL_SPLIT = {"enrolment": "test", "trial": "test", "training": "train"}
TRACK = "main"
SUFFIX = "_anon"
SCORE_LINES = ("eer", "cllr", "rocch", "linkability", "population", "individual")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+\Z")


@dataclass(frozen=True, slots=True)
class SpeakerShare:
    """A speaker of a data set: `gender` f or m, and how many of its utterances are theirs."""

    name: str
    gender: str
    utterances: int


@dataclass(frozen=True, slots=True)
class TrialCounts:
    """How many speakers are enrolled in a trial list, and how many of its trials are of one speaker and of two."""

    models: int
    targets: int
    nontargets: int


@dataclass(frozen=True, slots=True)
class SpeechSet:
    """A data set of a corpus.

    Attributes:
        role: enrolment, trial or training.
        split: such as dev or test; empty where the corpus says none.
        transcribed: how many of its utterances have a transcript.
        enrolment: of a trial set, the set that its speakers are enrolled with; empty where there is none.
        trials: of its list; None where the corpus has none.
    """

    name: str
    role: str
    split: str = ""
    speakers: tuple[SpeakerShare, ...] = ()
    transcribed: int = 0
    enrolment: str = ""
    trials: TrialCounts | None = None

    @property
    def utterances(self) -> int:
        return sum(one.utterances for one in self.speakers)

    @property
    def gender(self) -> str:
        """Of its speakers: f, m or mixed."""
        found = {one.gender for one in self.speakers}
        return found.pop() if len(found) == 1 else "mixed"

    @property
    def usual_split(self) -> str:
        """Return its split, or the usual one of its role."""
        return self.split or USUAL_SPLIT[self.role]


@dataclass(frozen=True, slots=True)
class Engines:
    """What can run here, the default of each first: names of attackers, recognisers and recipes of training."""

    attackers: Sequence[str] = ()
    recognizers: Sequence[str] = ()
    trainings: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Choices:
    """What an organizer decides of a recipe; everything else follows from the corpus.

    Attributes:
        edition: a short name.
        sets: names of the trial sets that count; enrolment sets follow, and training sets where an attacker is trained.
        utilities: metrics of utility, by their keys.
        ranked_by: of these, those that rank; one ranking for each.
        minimum_eers: of each condition, ascending, in per cent.
        minimum_pitch_correlation: below it nothing is ranked; None for no such gate.
        weights: of trial sets in the averages; one that is not named counts 1.
        language: such as ``en``.
        keeps_duration: whether speech of quite another duration is refused.
    """

    edition: str
    title: str
    sets: tuple[str, ...]
    utilities: tuple[str, ...] = ()
    ranked_by: tuple[str, ...] = ()
    evaluation: Evaluation = field(default_factory=Evaluation)
    minimum_eers: tuple[float, ...] = MINIMUM_EERS
    minimum_pitch_correlation: float | None = MINIMUM_PITCH_CORRELATION
    weights: Mapping[str, float] = field(default_factory=dict)
    language: str = "en"
    keeps_duration: bool = True


# What a corpus allows ------------------------------------------------------------------------------


def full_product(trial_set: SpeechSet, enrolment: SpeechSet) -> TrialCounts:
    """Return the trials of every enrolled speaker against every trial utterance of the same gender."""
    enrolled = {one.name: one.gender for one in enrolment.speakers}
    genders = {one.gender for one in trial_set.speakers}
    models = [gender for gender in enrolled.values() if gender in genders]
    targets = sum(one.utterances for one in trial_set.speakers if one.name in enrolled)
    pairs = sum(one.utterances * models.count(one.gender) for one in trial_set.speakers)
    return TrialCounts(len(models), targets, pairs - targets)


def count_trials(one: SpeechSet, sets: Iterable[SpeechSet]) -> TrialCounts | None:
    """Return the trials of a trial set: of its list, or the full product; None where nobody is enrolled for it."""
    if one.trials is not None:
        return one.trials
    enrolment = next((other for other in sets if other.name == one.enrolment), None)
    return full_product(one, enrolment) if enrolment is not None else None


def find_obstacle(one: SpeechSet, sets: Iterable[SpeechSet]) -> str:
    """Return what a trial set lacks to be attacked, such as ``has no utterances``; empty where it can be."""
    if not one.utterances:
        return "has no utterances"
    trials = count_trials(one, sets)
    if trials is None:
        return "has no enrolment set; import one with it"
    if not trials.targets or not trials.nontargets:
        return f"needs target and nontarget trials; it has {trials.targets:,} and {trials.nontargets:,}"
    return ""


def explain_obstacles(sets: Collection[SpeechSet]) -> list[str]:
    """Return why trial sets cannot be attacked: a sentence for each obstacle, with all sets that have the same."""
    names: dict[str, list[str]] = {}
    for one in sets:
        if one.role == "trial" and (obstacle := find_obstacle(one, sets)):
            names.setdefault(obstacle, []).append(one.name)
    return [
        f"{last} {obstacle}." if not others else f"Each of {', '.join(others)} and {last} {obstacle}."
        for obstacle, (*others, last) in names.items()
    ]


def usable_trial_sets(sets: Collection[SpeechSet]) -> tuple[SpeechSet, ...]:
    """Return the trial sets that can be attacked."""
    return tuple(one for one in sets if one.role == "trial" and not find_obstacle(one, sets))


def training_sets(sets: Iterable[SpeechSet]) -> tuple[SpeechSet, ...]:
    """Return the sets that an attacker can be trained on."""
    return tuple(one for one in sets if one.role == "training" and one.utterances)


def explain_little_training(sets: Iterable[SpeechSet]) -> str:
    """Return why an attacker trained on the training sets would say little, as a sentence; empty where they are enough.

    A recogniser of speakers learns from several utterances of each; `evaluation.attackers.training` asks for 10 such
    speakers to fit PLDA, and the smallest steps of its recipes take 64 utterances.
    """
    spoken: Counter[str] = Counter()
    for one in training_sets(sets):
        spoken.update({who.name: who.utterances for who in one.speakers})
    repeated, utterances = sum(1 for count in spoken.values() if count > 1), spoken.total()
    if repeated >= TRAINING_SPEAKERS and utterances >= TRAINING_UTTERANCES:
        return ""
    return (
        "This is too little to train an attacker whose EER decides ranks: expected at least "
        f"{TRAINING_UTTERANCES} utterances and {TRAINING_SPEAKERS} speakers with two or more each, "
        f"found {utterances:,} and {repeated:,}."
    )


def explain_few_speakers(trial_sets: Collection[SpeechSet]) -> str:
    """Return why ranks on these trial sets would say little, as a sentence; empty where the speakers that rank are
    enough."""
    split = ranked_split(trial_sets) if trial_sets else ""
    count = len({who.name for one in trial_sets if one.usual_split == split for who in one.speakers})
    if not trial_sets or count >= EVALUATION_SPEAKERS:
        return ""
    return (
        f"The EERs that rank are of {count} speaker{'' if count == 1 else 's'} (split {split}). With fewer than "
        f"{EVALUATION_SPEAKERS}, the order of similar systems can be chance: import more, or read ranks with care."
    )


def possible_utilities(trial_sets: Collection[SpeechSet]) -> tuple[str, ...]:
    """Return the metrics of utility that these trial sets allow, the usual one first."""
    found = [PITCH]
    if trial_sets and all(one.transcribed == one.utterances for one in trial_sets):
        found.insert(0, WER)
    if trial_sets and not explain_no_gain(trial_sets):
        found.append(GAIN)
    return tuple(found)


def explain_no_gain(trial_sets: Iterable[SpeechSet]) -> str:
    """Return why the gain of voice distinctiveness cannot be measured on all of these trial sets; empty where it
    can."""
    counts = {one.name: sum(who.utterances > 1 for who in one.speakers) for one in trial_sets}
    few = [f"{name} has {count}" for name, count in counts.items() if count < LEAST_SPEAKERS]
    needs = f"at least {LEAST_SPEAKERS} speakers with two or more utterances in each trial set"
    return f"The gain of voice distinctiveness is not offered. It takes {needs}: {', '.join(few)}." if few else ""


def propose_choices(sets: Collection[SpeechSet], engines: Engines, *, edition: str, title: str) -> Choices:
    """Return every choice with its default: the portal evaluates where an attacker can run here, else the teams do."""
    trials = usable_trial_sets(sets)
    evaluation = Evaluation("teams")
    utilities = possible_utilities(trials)
    if engines.attackers:
        recognizer = engines.recognizers[0] if engines.recognizers and WER in utilities else ""
        trained = engines.trainings[0] if engines.trainings and not explain_little_training(sets) else ""
        evaluation = Evaluation("portal", (engines.attackers[0],), recognizer, trained)
        if not recognizer:
            utilities = tuple(one for one in utilities if one != WER)
    return Choices(edition, title, tuple(one.name for one in trials), utilities, utilities[:1], evaluation)


# The recipe ----------------------------------------------------------------------------------------


def make_recipe(sets: Collection[SpeechSet], choices: Choices) -> Recipe:
    """Return the recipe of these choices on the data sets of a corpus.

    Raises:
        ValueError: no trial set that can be attacked is among those chosen.
    """
    chosen = [one for one in usable_trial_sets(sets) if one.name in choices.sets]
    if not chosen:
        raise ValueError("Expected at least one trial set that can be attacked, found none.")
    training = training_sets(sets) if choices.evaluation.training else ()
    wanted = (EER, *(one for one in UTILITIES if one in choices.utilities))
    recognition = _recognition_sets(chosen) if WER in wanted else {}
    evaluation = choices.evaluation
    semi_informed = (SEMI_INFORMED,) if evaluation.training else ()
    averages = tuple(_average(metric, chosen, recognition, choices.weights) for metric in wanted)
    track = Track(TRACK, (choices.language,), averages=averages, ranking=_ranking(chosen, choices))
    return Recipe(
        edition=choices.edition,
        title=choices.title,
        anonymised_suffix=SUFFIX,
        baselines=(),
        attack_models=(*UNTRAINED_ATTACKS, *semi_informed),
        uncertain=(),
        data_sets=MappingProxyType(_data_sets(sets, chosen, training, recognition, choices.language)),
        metrics=_metrics(wanted, choices.ranked_by),
        tracks=MappingProxyType({TRACK: track}),
        results=_result_lines() if evaluation.by_teams else None,
        evaluation=evaluation,
        keeps_duration=choices.keeps_duration,
    )


def _data_sets(
    sets: Collection[SpeechSet],
    chosen: Sequence[SpeechSet],
    training: Sequence[SpeechSet],
    recognition: Mapping[str, Sequence[SpeechSet]],
    language: str,
) -> dict[str, DataSet]:
    """Return each enrolment set before the trial sets that need it, then what is recognised, then what is trained
    on."""
    by_name = {one.name: one for one in sets}
    made: dict[str, DataSet] = {}
    for one in chosen:
        trials = count_trials(one, sets)
        if one.enrolment in by_name:
            made.setdefault(one.enrolment, _data_set(by_name[one.enrolment], language))
        counts = {} if trials is None else {name: getattr(trials, name) for name in ("models", "targets", "nontargets")}
        made[one.name] = replace(_data_set(one, language), gender=one.gender, enrolment=one.enrolment, **counts)
    for name, parts in recognition.items():
        speakers = {who.name for one in parts for who in one.speakers}
        made[name] = DataSet(
            name=name,
            role="recognition",
            split=parts[0].usual_split,
            gender="all",
            language=language,
            parts=tuple(one.name for one in parts),
            utterances=sum(one.utterances for one in parts),
            speakers=len(speakers),
        )
    return made | {one.name: _data_set(one, language) for one in training}


def _data_set(one: SpeechSet, language: str) -> DataSet:
    return DataSet(
        name=one.name,
        role=one.role,
        split=one.usual_split,
        gender="all",
        language=language,
        utterances=one.utterances,
        speakers=len(one.speakers),
    )


def _recognition_sets(chosen: Iterable[SpeechSet]) -> dict[str, list[SpeechSet]]:
    """Return the trial sets of one subset together, as the challenge recognises them: ``libri_dev_asr`` of both
    genders."""
    found: dict[tuple[str, str], list[SpeechSet]] = {}
    for one in chosen:
        found.setdefault((one.name.partition("_trial")[0], one.usual_split), []).append(one)
    prefixes = [prefix for prefix, _ in found]
    return {
        (f"{prefix}_asr" if prefixes.count(prefix) == 1 else f"{prefix}_{split}_asr"): parts
        for (prefix, split), parts in found.items()
    }


def _metrics(wanted: Iterable[str], ranked_by: Collection[str]) -> tuple[MetricRule, ...]:
    rules = [MetricRule(one, one == EER or one in ranked_by, ESTIMATORS[one]) for one in wanted]
    return (*rules, *(MetricRule(metric, False, estimator) for metric, estimator in BESIDE))


def _average(
    metric: str,
    chosen: Iterable[SpeechSet],
    recognition: Mapping[str, Sequence[SpeechSet]],
    weights: Mapping[str, float],
) -> Average:
    """Return equal weights where nothing else is said; a recognition set weighs what its trial sets do."""
    by_split: dict[str, dict[str, float]] = {}
    groups = recognition if metric == WER else {one.name: (one,) for one in chosen}
    for name, parts in groups.items():
        weight = sum(weights.get(one.name, 1.0) for one in parts)
        if weight > 0:
            by_split.setdefault(parts[0].usual_split, {})[name] = weight
    shares = {split: MappingProxyType(_shares(row)) for split, row in by_split.items()}
    return Average(metric, LABELS[metric], MappingProxyType(shares), ESTIMATORS[metric])


def _shares(weights: Mapping[str, float]) -> dict[str, float]:
    total = sum(weights.values())
    return {name: weight / total for name, weight in weights.items()}


def ranked_split(chosen: Iterable[SpeechSet]) -> str:
    """Return the split that ranks: test where there is one."""
    splits = dict.fromkeys(one.usual_split for one in chosen)
    return "test" if "test" in splits else list(splits)[-1]


def _ranking(chosen: Sequence[SpeechSet], choices: Choices) -> Ranking:
    minimum = choices.minimum_pitch_correlation
    gates = () if minimum is None else (Gate(PITCH, minimum, False, _pairs(chosen), ESTIMATORS[PITCH]),)
    return Ranking(
        split=ranked_split(chosen),
        attack_model=SEMI_INFORMED if choices.evaluation.training else UNTRAINED_ATTACKS[-1],
        privacy=MetricName(EER, ESTIMATORS[EER]),
        minimum_eers=choices.minimum_eers,
        policy="cumulative",
        inclusive=True,
        note_within=0.05,
        utilities=tuple(Utility(one, UTILITIES[one], ESTIMATORS[one]) for one in choices.ranked_by),
        ties="equal rank, in the order of higher EER",
        several_systems="the one with the best utility is ranked",
        late="unranked",
        gates=gates if PITCH in choices.utilities else (),
    )


def _pairs(chosen: Iterable[SpeechSet]) -> tuple[tuple[str, ...], ...]:
    """Trial sets that differ by their gender alone are held against a gate by their mean."""
    groups: dict[tuple[str, str], list[str]] = {}
    for one in chosen:
        alike = re.sub(f"_{one.gender}(?=_|$)", "", one.name)
        groups.setdefault((one.usual_split, alike), []).append(one.name)
    return tuple(tuple(names) for names in groups.values())


def _result_lines() -> ResultLines:
    """Of the score files of teams: one results directory, for no evaluator is trained again."""
    return ResultLines(SCORE_LINES, (), (), (), "", (), ())


# The text ------------------------------------------------------------------------------------------


def write_recipe(recipe: Recipe, *, comment: str = "") -> str:
    """Return a recipe as TOML; `parse_recipe` reads the same recipe again.

    Args:
        comment: lines for the top of the file.
    """
    lines = [f"# {line}".rstrip() for line in comment.splitlines()]
    lines += ["", *_scalars(recipe, ("edition", "title", "anonymised_suffix", "baselines", "attack_models"))]
    lines += [*_scalars(recipe, ("keeps_duration", "uncertain")), "", "[data_sets]"]
    for name, one in recipe.data_sets.items():
        lines.append(f"{_key(name)} = {_inline(one, {'name'})}")
    if recipe.evaluation != Evaluation():
        lines += ["", "[evaluation]", *_scalars(recipe.evaluation)]
    if recipe.emotions:
        lines += ["", "[emotions]", f"labels = {write_value(recipe.emotions)}"]
    if recipe.results is not None:
        lines += ["", "[results]", *_scalars(recipe.results)]
    lines.append("")
    for rule in recipe.metrics:
        lines += ["[[metrics]]", *_scalars(rule)]
    for name, track in recipe.tracks.items():
        lines += _track_lines(_key(name), track)
    return "\n".join(lines).lstrip("\n") + "\n"


def _track_lines(name: str, track: Track) -> Iterator[str]:
    yield from ("", f"[tracks.{name}]", *_scalars(track, ("languages", "surprise_languages")))
    for average in track.averages:
        yield from ("", f"[[tracks.{name}.averages]]", *_scalars(average, ("metric", "estimator", "label")))
        for split, weights in average.weights.items():
            yield f"weights.{_key(split)} = {_table(weights.items())}"
    if track.ranking is None:
        return
    yield from ("", f"[tracks.{name}.ranking]", *_scalars(track.ranking, ("split", "attack_model")))
    yield f"privacy = {_inline(track.ranking.privacy)}"
    skipped = {"split", "attack_model", "privacy", "utilities", "gates"}
    yield from _scalars(track.ranking, [one.name for one in fields(Ranking) if one.name not in skipped])
    yield f"utilities = [{', '.join(map(_inline, track.ranking.utilities))}]"
    for gate in track.ranking.gates:
        yield from ("", f"[[tracks.{name}.ranking.gates]]", *_scalars(gate))


def _given(found: Any, skipped: Collection[str] = ()) -> Iterator[tuple[str, Any]]:
    """Yield the fields of a dataclass that are not as they are without being written."""
    for one in fields(found):
        value = getattr(found, one.name)
        if one.name not in skipped and value is not None and (one.default is MISSING or value != one.default):
            yield one.name, value


def _scalars(found: Any, names: Collection[str] | None = None) -> list[str]:
    given = dict(_given(found))
    return [f"{name} = {write_value(given[name])}" for name in (given if names is None else names) if name in given]


def _inline(found: Any, skipped: Collection[str] = ()) -> str:
    return _table(_given(found, skipped))


def _table(items: Iterable[tuple[str, Any]]) -> str:
    return f"{{ {', '.join(f'{_key(name)} = {write_value(value)}' for name, value in items)} }}"


def _key(name: str) -> str:
    return name if _BARE_KEY.match(name) else write_value(name)


def write_value(found: Any) -> str:
    """Return a value as TOML."""
    if isinstance(found, bool):
        return "true" if found else "false"
    if isinstance(found, tuple | list):
        return f"[{', '.join(map(write_value, found))}]"
    if isinstance(found, float):
        return f"{found:g}" if float(f"{found:g}") == found else repr(found)
    if isinstance(found, int):
        return str(found)
    return json.dumps(str(found), ensure_ascii=False).replace("\x7f", "\\u007f")
