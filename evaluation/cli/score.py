"""``score``: every detection metric of one or several Kaldi score files of the same trials."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np

from evaluation.commands.terminal import (
    CommandError,
    heading,
    problem_rows,
    report_problems,
    say,
    say_json,
    say_table,
    show,
)
from evaluation.figures.det import MOST_CURVES
from evaluation.formats.kaldi import read_utt2spk
from evaluation.formats.problems import Problem
from evaluation.formats.score_measures import join_files
from evaluation.formats.scores import JoinedScores
from evaluation.metrics.bootstrap import DETECTION_MEASURES, Interval, bootstrap_detection, draw_speakers
from evaluation.metrics.catalogue import DETECTION_METRICS
from evaluation.metrics.detection import DetectionMetrics, detection_metrics
from evaluation.notebook import FIGURE_ENDINGS, save_det

DESCRIPTION = (
    "Equal error rates by three estimators, C_llr, min C_llr, linkability, ZEBRA, AUC and minDCF of Kaldi score files; "
    "with intervals over speakers and a DET figure on request."
)
LEVEL = 0.95
_IN_PERCENT = {"kaldi_eer", "rocch_eer", "speechbrain_eer"}
_UNREADABLE = {"missing-file", "not-a-file", "wrong-encoding", "not-text", "empty-file"}

Intervals = Mapping[str, Interval]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the command."""
    parser.add_argument(
        "--scores", required=True, type=Path, nargs="+", metavar="FILE", help="lines of <model> <utterance> <score>"
    )
    parser.add_argument("--label", nargs="+", metavar="NAME", help="what to call each score file, in the same order")
    parser.add_argument(
        "--trials", required=True, type=Path, metavar="FILE", help="lines of <model> <utterance> target|nontarget"
    )
    parser.add_argument(
        "--bootstrap",
        type=_positive,
        metavar="N",
        help="95 %% intervals from N resamples of the speakers, such as 1000",
    )
    parser.add_argument("--seed", type=int, metavar="S", help="of the resamples (default 0)")
    parser.add_argument(
        "--utt2spk", type=Path, metavar="FILE", help="speaker of each trial utterance (default: beside the trials)"
    )
    parser.add_argument(
        "--det",
        type=Path,
        nargs="+",
        default=[],
        metavar="FILE",
        help="DET figure, by its ending as svg, pdf or png; csv: the numbers of the curve",
    )


def run(options: argparse.Namespace) -> int:
    """Measure, report, draw; the exit code."""
    _check_options(options)
    names = options.label or _short_names(options.scores)
    joined = {name: _joined(path, options.trials) for name, path in zip(names, options.scores, strict=True)}
    measured = {name: detection_metrics(one.target_scores, one.nontarget_scores) for name, one in joined.items()}
    problems = tuple(dict.fromkeys(problem for one in joined.values() for problem in one.problems))
    intervals = _intervals(joined, options) if options.bootstrap else {}
    for path in options.det:
        _save(path, measured)
    if options.json:
        say_json(_content(options, names, joined, measured, intervals, problems))
    else:
        _say_numbers(joined, measured, intervals)
        _say_footnotes(options, measured)
    return report_problems(problems)


def _positive(text: str) -> int:
    number = int(text) if text.isascii() and text.isdigit() else 0
    if number < 2:
        raise argparse.ArgumentTypeError(f"expected a number of resamples of 2 or more, found “{text}”")
    return number


def _check_options(options: argparse.Namespace) -> None:
    if not options.bootstrap and (options.seed is not None or options.utt2spk):
        raise CommandError("Expected --bootstrap with --seed or --utt2spk, found none. Add --bootstrap 1000.")
    if options.seed is not None and options.seed < 0:
        raise CommandError(f"--seed: expected a number of 0 or more, found {options.seed}.")
    given = options.label if options.label is not None else options.scores
    if len(set(given)) != len(options.scores):
        what = "--label: expected a name" if options.label is not None else "--scores: expected a path"
        raise CommandError(f"{what} of its own for each of {len(options.scores)} score files, found {len(set(given))}.")
    if options.det and len(options.scores) > MOST_CURVES:
        raise CommandError(f"--det: expected at most {MOST_CURVES} score files, found {len(options.scores)}.")
    for path in options.det:
        if path.suffix[1:].lower() not in FIGURE_ENDINGS:
            wanted = ", ".join(FIGURE_ENDINGS)
            raise CommandError(f"{path}: expected a figure that ends in {wanted}, found “{path.suffix}”.")


def _short_names(paths: Sequence[Path]) -> list[str]:
    """What tells the files apart: a file called ``scores`` goes by the name of its folder."""
    names = [path.parent.name if path.name == "scores" and path.parent.name else path.name for path in paths]
    return names if len(set(names)) == len(names) else [str(path) for path in paths]


def _joined(scores: Path, trials: Path) -> JoinedScores:
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


def _intervals(joined: Mapping[str, JoinedScores], options: argparse.Namespace) -> dict[str, Intervals]:
    """The same draws for every file, so that their measures are paired."""
    path = options.utt2spk or options.trials.parent / "utt2spk"
    if not path.is_file():
        raise CommandError(
            f"{path}: expected the speaker of each trial utterance for --bootstrap, found no such file. "
            "Name it with --utt2spk."
        )
    speaker_of = read_utt2spk(path, str(path)).content
    columns = {name: _speakers(one, speaker_of, path) for name, one in joined.items()}
    everyone = sorted({name for models, owners in columns.values() for name in (*models, *owners)})
    draws = draw_speakers(everyone, options.bootstrap, np.random.default_rng(options.seed or 0))
    found: dict[str, Intervals] = {}
    for name, one in joined.items():
        models, owners = columns[name]
        replicates = bootstrap_detection(
            one.scores, one.targets, models, owners, draws, measures=tuple(DETECTION_MEASURES)
        )
        found[name] = {key: each.interval(LEVEL) for key, each in replicates.items()}
    return found


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


def _save(path: Path, measured: Mapping[str, DetectionMetrics]) -> None:
    try:
        save_det(path, measured)
    except OSError as error:
        raise CommandError(f"{path}: expected a file that can be written, found “{error.strerror}”.") from error


def _say_numbers(
    joined: Mapping[str, JoinedScores], measured: Mapping[str, DetectionMetrics], intervals: Mapping[str, Intervals]
) -> None:
    every = measured.values()
    left_out = [one.missing + one.not_finite for one in joined.values()]
    # name, key of the interval, a cell for each file
    rows: list[tuple[str, str, list[str]]] = [
        ("target trials", "", [str(one.n_target) for one in every]),
        ("nontarget trials", "", [str(one.n_nontarget) for one in every]),
        *([("trials without a score", "", [str(number) for number in left_out])] if any(left_out) else []),
        *(
            (heading(metric), key, [show(one.values()[key], metric) for one in every])
            for key, metric in DETECTION_METRICS.items()
        ),
        ("ZEBRA category", "", [one.zebra.category for one in every]),
        ("Kaldi threshold", "", [f"{one.kaldi_threshold:.6g}" for one in every]),
    ]
    if not intervals:
        say_table(["", *measured], [[name, *cells] for name, _, cells in rows], numbers_from=1)
        return
    header = [cell for name in measured for cell in (name, f"{100 * LEVEL:g} % interval")]
    table = []
    for label, key, cells in rows:
        limits = [_limits(intervals[name], key) for name in measured]
        table.append([label, *(each for pair in zip(cells, limits, strict=True) for each in pair)])
    say_table(["", *header], table, numbers_from=1)


def _limits(intervals: Intervals, key: str) -> str:
    """What stands beside the value of a row."""
    if key not in intervals:
        return ""
    interval, metric = intervals[key], DETECTION_METRICS[key]
    scale = 100 if key in _IN_PERCENT else 1
    return f"{scale * interval.lower:.{metric.decimals}f} to {scale * interval.upper:.{metric.decimals}f}"


def _say_footnotes(options: argparse.Namespace, measured: Mapping[str, DetectionMetrics]) -> None:
    notes = []
    if options.bootstrap:
        notes.append(
            f"Intervals: {options.bootstrap} resamples of the speakers of trials and models, seed {options.seed or 0}."
        )
    notes += [f"DET figure: {path}" for path in options.det]
    if any(one.kaldi_eer > 0.5 for one in measured.values()):
        notes.append("An EER above 50 %: the attacker is misled, or the scores are distances.")
    if notes:
        say()
    for note in notes:
        say(note)


def _content(
    options: argparse.Namespace,
    names: Sequence[str],
    joined: Mapping[str, JoinedScores],
    measured: Mapping[str, DetectionMetrics],
    intervals: Mapping[str, Intervals],
    problems: Sequence[Problem],
) -> dict[str, object]:
    results = []
    for name, path in zip(names, options.scores, strict=True):
        one, trials = measured[name], joined[name]
        result: dict[str, object] = {
            "name": name,
            "scores": str(path),
            "n_target": one.n_target,
            "n_nontarget": one.n_nontarget,
            "missing": trials.missing,
            "not_finite": trials.not_finite,
            "metrics": dict(one.values()),
            "zebra_category": one.zebra.category,
            "kaldi_threshold": one.kaldi_threshold,
            "speechbrain_threshold": one.speechbrain_threshold,
        }
        if intervals:
            result["intervals"] = {key: _in_unit(key, each) for key, each in intervals[name].items()}
        results.append(result)
    units = {key: metric.unit for key, metric in DETECTION_METRICS.items()}
    content: dict[str, object] = {"trials": str(options.trials), "units": units, "results": results}
    if options.bootstrap:
        content["bootstrap"] = {"resamples": options.bootstrap, "seed": options.seed or 0, "level": LEVEL}
    return content | {"problems": problem_rows(problems)}


def _in_unit(key: str, interval: Interval) -> dict[str, object]:
    scale = 100 if key in _IN_PERCENT else 1
    return asdict(interval) | {name: scale * getattr(interval, name) for name in ("estimate", "lower", "upper")}
