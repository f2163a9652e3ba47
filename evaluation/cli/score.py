"""``vp score``: every detection metric of one or several Kaldi score files of the same trials."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from typer import Argument, Option

from common.errors import CommandError
from common.parameters import AsJson
from common.problems import Problem
from common.terminal import print_json, print_problems, print_table, print_text, problem_rows
from evaluation.cli.arguments import require_entries, writing
from evaluation.figures.det import MOST_CURVES
from evaluation.formats.equal_scores import note_few_trials
from evaluation.formats.kaldi import read_utt2spk
from evaluation.formats.scores import JoinedScores
from evaluation.metrics.bootstrap import DETECTION_MEASURES, Interval, Replicates, bootstrap_detection, draw_speakers
from evaluation.metrics.catalogue import (
    DETECTION_METRICS,
    EXPOSURE_METRICS,
    NO_VALUE,
    format_heading,
    format_value,
)
from evaluation.metrics.detection import DetectionMetrics, detection_metrics
from evaluation.metrics.exposure import Exposure, Trials, bootstrap_exposure, measure_exposure
from evaluation.metrics.linkability import FEW_TARGETS_EXPLANATION, note_few_targets
from evaluation.notebook import FIGURE_ENDINGS, save_det
from evaluation.objective_results.recomputation import encode_trials, join_files

LEVEL = 0.95
_MARK = "*"  # of D_sys of few targets
_IN_PERCENT = {"kaldi_eer", "rocch_eer", "speechbrain_eer"}
_UNREADABLE = {"missing-file", "not-a-file", "wrong-encoding", "not-text", "long-line", "empty-file"}


@dataclass(frozen=True)
class _Result:
    """A score file without errors and what it gives; no intervals where none were asked for."""

    name: str
    path: Path
    joined: JoinedScores
    metrics: DetectionMetrics
    trials: Trials
    exposure: Exposure
    intervals: Mapping[str, Interval] = field(default_factory=dict)
    exposure_intervals: Mapping[str, Interval] = field(default_factory=dict)


@dataclass(frozen=True)
class _Wanted:
    """What was asked for."""

    trials: Path
    bootstrap: int | None
    seed: int | None
    utt2spk: Path | None
    det: Sequence[Path]


def score(
    scores: Annotated[list[Path], Argument(metavar="SCORES", help="Files of lines MODEL UTTERANCE SCORE.")],
    trials: Annotated[Path, Option(metavar="FILE", help="Lines of MODEL UTTERANCE target|nontarget.")],
    label: Annotated[
        list[str] | None, Option(metavar="NAME", help="Label of each score file, in the same order; repeat it.")
    ] = None,
    bootstrap: Annotated[
        int | None,
        Option(min=2, metavar="N", help="95 % intervals from N resamples of the speakers, such as 1000."),
    ] = None,
    seed: Annotated[
        int | None, Option(min=0, metavar="S", help="Seed of the resamples, by default names of the speakers.")
    ] = None,
    utt2spk: Annotated[
        Path | None, Option(metavar="FILE", help="Speaker of each trial utterance, by default beside the trials.")
    ] = None,
    det: Annotated[
        list[Path] | None,
        Option(
            metavar="FILE",
            help="DET figure, by its ending as svg, pdf or png; csv: the numbers of the curve. May be repeated.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Measure Kaldi score files: EERs by three estimators, C_llr, min C_llr, linkability, ZEBRA, AUC and minDCF.

    Also privacy beyond the EER: targets found at few false alarms, ranks, single speakers. Intervals over speakers and
    a DET figure on request. A file whose scores have errors gets no numbers: those of what is left would be of another
    test.

        vp score scores --trials trials --bootstrap 1000 --det det.svg
        vp score mine/scores other/scores --trials trials --json
    """
    wanted = _Wanted(trials, bootstrap, seed, utt2spk, det or ())
    _check(wanted, scores, label)
    names = label or _short_names(scores)
    paths = dict(zip(names, scores, strict=True))
    every = {name: _join(path, trials) for name, path in paths.items()}
    problems = tuple(dict.fromkeys(problem for joined in every.values() for problem in joined.problems))
    results = [_measure(name, paths[name], joined) for name, joined in every.items() if joined.complete]
    if bootstrap and results:
        results = _with_intervals(results, wanted, bootstrap)
    for path in wanted.det if results else ():
        with writing(path):
            save_det(path, {one.name: one.metrics for one in results})
    if as_json:
        measured = {one.name: _measured_content(one) for one in results}
        rows = [_row(name, paths[name], joined, measured.get(name)) for name, joined in every.items()]
        print_json(_content(wanted, rows, problems))
    else:
        if results:
            _print_numbers(results)
            _print_exposure(results)
            _print_footnotes(wanted, results)
        for name, joined in every.items():
            if not joined.complete:
                print_text(f"\n{name}: no numbers. {_without_numbers(joined)}")
    return print_problems(problems)


def _check(wanted: _Wanted, scores: Sequence[Path], labels: Sequence[str] | None) -> None:
    if not wanted.bootstrap and (wanted.seed is not None or wanted.utt2spk):
        raise CommandError("Expected --bootstrap with --seed or --utt2spk, found none. Add --bootstrap 1000.")
    given = scores if labels is None else labels
    if len(set(given)) != len(scores):
        what = "SCORES: expected a path" if labels is None else "--label: expected a name"
        raise CommandError(f"{what} of its own for each of {len(scores)} score files, found {len(set(given))}.")
    if wanted.det and len(scores) > MOST_CURVES:
        raise CommandError(f"--det: expected at most {MOST_CURVES} score files, found {len(scores)}.")
    for path in wanted.det:
        if path.suffix[1:].lower() not in FIGURE_ENDINGS:
            endings = ", ".join(FIGURE_ENDINGS)
            raise CommandError(f"{path}: expected a figure that ends in {endings}, found “{path.suffix}”.")


def _short_names(paths: Sequence[Path]) -> list[str]:
    """Return labels that distinguish the files: a file called ``scores`` takes the name of its folder."""
    names = [path.parent.name if path.name == "scores" and path.parent.name else path.name for path in paths]
    return names if len(set(names)) == len(names) else [str(path) for path in paths]


def _join(scores: Path, trials: Path) -> JoinedScores:
    joined = join_files(scores, trials)
    for problem in joined.problems:
        if problem.code in _UNREADABLE:
            raise CommandError(problem.sentence())
    if not joined.targets.any() or joined.targets.all():
        found = f"{np.count_nonzero(joined.targets)} targets among {joined.targets.size} scored trials"
        reasons = [problem.sentence() for problem in joined.problems][:1]
        sentence = f"{scores}: expected scores of target and nontarget trials of {trials}, found {found}."
        raise CommandError(" ".join([sentence, *reasons]))
    return joined


def _measure(name: str, path: Path, joined: JoinedScores) -> _Result:
    measured, encoded = detection_metrics(joined.target_scores, joined.nontarget_scores), encode_trials(joined)
    return _Result(name, path, joined, measured, encoded, measure_exposure(encoded))


def _without_numbers(joined: JoinedScores) -> str:
    """Return why scores with errors give no numbers, in a sentence."""
    if joined.open_eer:
        return f"{joined.open_eer[:1].upper()}{joined.open_eer[1:]}."
    return "The scores have errors, and numbers of what is left would be those of another test."


def _with_intervals(results: Sequence[_Result], wanted: _Wanted, resamples: int) -> list[_Result]:
    """Return the same draws for every file, so that their measures are paired."""
    path = wanted.utt2spk or wanted.trials.parent / "utt2spk"
    if not path.is_file():
        raise CommandError(
            f"{path}: expected the speaker of each trial utterance for --bootstrap, found no such file. "
            "Name it with --utt2spk."
        )
    speaker_of: dict[str, str] = require_entries(read_utt2spk(path, str(path)))
    columns = [_speakers(one.joined, speaker_of, path) for one in results]
    everyone = sorted({name for models, owners in columns for name in (*models, *owners)})
    random = None if wanted.seed is None else np.random.default_rng(wanted.seed)
    draws = draw_speakers(everyone, resamples, random)
    found = []
    for one, sides in zip(results, columns, strict=True):
        scores, targets = one.joined.scores, one.joined.targets
        replicates = bootstrap_detection(scores, targets, *sides, draws, measures=tuple(DETECTION_MEASURES))
        hidden = bootstrap_exposure(one.trials, sides[1], draws, one.exposure)
        intervals, beyond = (_find_intervals(part) for part in (replicates, hidden))
        found.append(replace(one, intervals=intervals, exposure_intervals=beyond))
    return found


def _find_intervals(replicates: Mapping[str, Replicates]) -> dict[str, Interval]:
    """By measure, of those that have one."""
    found = {key: each.find_interval(LEVEL) for key, each in replicates.items()}
    return {key: each for key, each in found.items() if each is not None}


def _speakers(joined: JoinedScores, speaker_of: Mapping[str, str], path: Path) -> tuple[list[str], list[str]]:
    utterances = [name.decode() for name in joined.utterances.tolist()]
    without = [name for name in dict.fromkeys(utterances) if name not in speaker_of]
    if without:
        raise CommandError(
            f"{path}: expected the speaker of each trial utterance, found none for {len(without)}, "
            f"such as “{without[0]}”."
        )
    models = [name.decode() for name in joined.models.tolist()]
    return models, [speaker_of[name] for name in utterances]


def _print_numbers(results: Sequence[_Result]) -> None:
    every = [one.metrics for one in results]
    # name, key of the interval, a cell for each file
    rows: list[tuple[str, str, list[str]]] = [
        ("target trials", "", [str(one.n_target) for one in every]),
        ("nontarget trials", "", [str(one.n_nontarget) for one in every]),
        *(
            (format_heading(metric), key, [_cell(key, one) for one in every])
            for key, metric in DETECTION_METRICS.items()
        ),
        ("ZEBRA category", "", [one.zebra.category for one in every]),
        ("Kaldi threshold", "", [f"{one.kaldi_threshold:.6g}" for one in every]),
    ]
    header, table = [""], [[label] for label, _, _ in rows]
    for place, one in enumerate(results):
        header += [one.name, f"{100 * LEVEL:g} % interval"] if one.intervals else [one.name]
        for line, (_, key, cells) in zip(table, rows, strict=True):
            line += [cells[place], _limits(one.intervals, key)] if one.intervals else [cells[place]]
    print_table(header, table, numbers_from=1)


def _cell(key: str, measured: DetectionMetrics) -> str:
    mark = _MARK if key == "linkability" and note_few_targets(measured.n_target) else ""
    return format_value(measured.values()[key], DETECTION_METRICS[key]) + mark


def _print_exposure(results: Sequence[_Result]) -> None:
    """What the EER hides, as a table of its own."""
    header = ["beyond the EER"]
    rows = [[format_heading(metric)] for metric in EXPOSURE_METRICS.values()]
    for one in results:
        values, limits = one.exposure.values(), one.exposure_intervals
        header += [one.name, f"{100 * LEVEL:g} % interval"] if limits else [one.name]
        for row, (key, metric) in zip(rows, EXPOSURE_METRICS.items(), strict=True):
            row.append(format_value(values.get(key), metric))
            if limits:
                found = limits.get(key)
                both = [format_value(limit, metric) for limit in (found.lower, found.upper)] if found else []
                row.append(" to ".join(both))
    print_text()
    print_table(header, rows, numbers_from=1)
    told = dict.fromkeys(reason for one in results for reason in one.exposure.reasons.values())
    lines = [f"{NO_VALUE}: {reason}." for reason in told]
    if any(one.exposure.ranks is not None and one.exposure.ranks.is_fitted for one in results):
        lines.append("Ranks: a beta-binomial fitted to them, because there are fewer than 10 utterances for each.")
    if lines:
        print_text("\n" + "\n".join(lines))


def _limits(intervals: Mapping[str, Interval], key: str) -> str:
    """Return the note next to the value of a row."""
    if key not in intervals:
        return ""
    limits, decimals = _in_unit(key, intervals[key]), DETECTION_METRICS[key].decimals
    return f"{limits['lower']:.{decimals}f} to {limits['upper']:.{decimals}f}"


def _print_footnotes(wanted: _Wanted, results: Sequence[_Result]) -> None:
    seed = "drawn by their names" if wanted.seed is None else f"seed {wanted.seed}"
    drawn = f"{wanted.bootstrap} resamples of the speakers of trials and models, {seed}"
    notes = [f"Intervals: {drawn}."] if wanted.bootstrap else []
    notes += [f"DET figure: {path}" for path in wanted.det]
    if few := dict.fromkeys(filter(None, (note_few_targets(one.metrics.n_target) for one in results))):
        notes.append(f"{_MARK} {'; '.join(few)}. {FEW_TARGETS_EXPLANATION}")
    for one in results:
        if few_trials := note_few_trials(one.metrics.n_target, one.metrics.n_nontarget):
            notes.append(f"The EERs of {one.name} are {few_trials}.")
    lows = [
        one.intervals["kaldi_eer"].lower if "kaldi_eer" in one.intervals else one.metrics.kaldi_eer for one in results
    ]
    if any(low > 0.5 for low in lows):
        notes.append(
            "An EER above 50 %: the attacker is misled, or the scores are distances. “EER, better sign” is the EER "
            "after inverting the sign."
        )
    if notes:
        print_text("\n" + "\n".join(notes))


def _content(wanted: _Wanted, rows: Sequence[Mapping[str, object]], problems: Sequence[Problem]) -> dict[str, object]:
    """Return every number is in the unit that `units` names by its key, wherever it stands."""
    metrics = DETECTION_METRICS | EXPOSURE_METRICS
    units = {key: metric.unit for key, metric in metrics.items()}
    content: dict[str, object] = {"trials": str(wanted.trials), "units": units, "results": rows}
    if wanted.bootstrap:
        content["bootstrap"] = {"resamples": wanted.bootstrap, "seed": wanted.seed, "level": LEVEL}
    return content | {"problems": problem_rows(problems)}


def _row(name: str, path: Path, joined: JoinedScores, measured: Mapping[str, object] | None) -> dict[str, object]:
    row: dict[str, object] = {"name": name, "scores": str(path)}
    row |= {key: getattr(joined, key) for key in ("missing", "not_finite")}
    if measured is None:
        return row | {"metrics": None, "reason": _without_numbers(joined)}
    return row | dict(measured)


def _measured_content(one: _Result) -> dict[str, object]:
    named = ("n_target", "n_nontarget", "kaldi_threshold", "speechbrain_threshold")
    row: dict[str, object] = {name: getattr(one.metrics, name) for name in named}
    row |= {"metrics": dict(one.metrics.values()), "zebra_category": one.metrics.zebra.category}
    row["linkability_note"] = note_few_targets(one.metrics.n_target)
    row["eer_note"] = note_few_trials(one.metrics.n_target, one.metrics.n_nontarget)
    if one.intervals:
        row["intervals"] = {key: _in_unit(key, each) for key, each in one.intervals.items()}
    return row | {"exposure": _exposure_content(one)}


def _exposure_content(one: _Result) -> dict[str, object]:
    """Return what the EER hides; the names of the speakers are those of the files that were given."""
    found, ranks = one.exposure, one.exposure.ranks
    content: dict[str, object] = {"metrics": dict(found.values()), "reasons": dict(found.reasons)}
    content["speakers"] = [
        asdict(each) | {"kaldi_eer": 100 * each.kaldi_eer, "linkability_note": note_few_targets(each.n_target)}
        for each in found.speakers
    ]
    if ranks is not None:
        content["ranks"] = {"counts": ranks.counts.tolist(), "fitted": ranks.is_fitted, "left_out": ranks.n_left_out}
    if one.exposure_intervals:
        content["intervals"] = {key: asdict(each) for key, each in one.exposure_intervals.items()}
    return content


def _in_unit(key: str, interval: Interval) -> dict[str, Any]:
    scale = 100 if key in _IN_PERCENT else 1
    return asdict(interval) | {name: scale * getattr(interval, name) for name in ("estimate", "lower", "upper")}
