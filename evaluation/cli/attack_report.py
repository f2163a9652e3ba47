"""What ``attack`` says of its numbers: tables for a terminal, content for JSON.

A number that rests on a part of its trials, or on too few, is marked by a star, whose reason stands below the table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from common import terminal
from common.problems import Problem
from evaluation.cli.attack_lists import Lists
from evaluation.formats.results import Gender, Speech
from evaluation.metrics.catalogue import EXPOSURE_METRICS, EXTRA_METRICS, find_metric, format_heading, format_value
from evaluation.objective_results.attack import attacks_of_training
from evaluation.objective_results.compute import Objective
from evaluation.objective_results.values import Number
from evaluation.objective_results.voice_extras import WORTH

_SHOWN = (("eer", "kaldi"), ("eer", "rocch"), ("min_cllr", "pav"), ("linkability", ""))
_VOICES = ("gain_of_voice_distinctiveness", "de_identification")


def print_numbers(objective: Objective, tests: Sequence[Lists], training: Speech) -> None:
    """Print the numbers of each trial set and attack model, and what limits them."""
    rows, every = [], list(objective.numbers.values())
    header = ["trials", "attacker"]
    for metric in (find_metric(*key) for key in _SHOWN):
        header += [format_heading(metric), "95 % interval"] if metric.key == "kaldi_eer" else [format_heading(metric)]
    for one in tests:
        for attack in attacks_of_training(training):
            found = {
                (number.identity.metric, number.identity.estimator): number
                for number in every
                if number.identity.data_set == one.name and number.identity.attack_model is attack
            }
            if found:
                rows.append([one.name, str(attack), *_cells(found)])
    if not rows:
        return
    terminal.print_table(header, rows, numbers_from=2)
    for note in dict.fromkeys(number.note for number in every if number.note):
        marked = [number for number in every if number.note == note]
        tested = dict.fromkeys(f"{one.identity.data_set}, {one.identity.attack_model}" for one in marked)
        terminal.print_paragraph(f"* {'; '.join(tested)}: {note}.")
    _print_exposure(every, tests, training)
    _print_voices(every)
    _print_extras(every)


def _print_exposure(numbers: Sequence[Number], tests: Sequence[Lists], training: Speech) -> None:
    """Print what the EER hides, a table for each trial set; intervals below the measures that have one."""
    by_test = {(one.identity.data_set, one.identity.attack_model, one.identity.metric): one for one in numbers}
    for test in tests:
        every = [(test.name, attack) for attack in attacks_of_training(training)]
        columns = [column for column in every if any((*column, key) in by_test for key in EXPOSURE_METRICS)]
        rows = []
        for key, metric in EXPOSURE_METRICS.items():
            found = [by_test.get((*column, key)) for column in columns]
            rows.append([format_heading(metric), *(_marked(one) if one else terminal.NONE for one in found)])
            if any(one is not None and one.has_interval for one in found):
                rows.append(["  95 % interval", *(_limits(one) if one else terminal.NONE for one in found)])
        if columns:
            terminal.print_text()
            header = [f"{test.name}, beyond the EER", *(str(attack) for _, attack in columns)]
            terminal.print_table(header, rows, numbers_from=1)


def _cells(found: Mapping[tuple[str, str], Number]) -> list[str]:
    cells = []
    for key in _SHOWN:
        number = found[key]
        cells.append(_marked(number))
        if key == ("eer", "kaldi"):
            cells.append(_limits(number))
    return cells


def _marked(number: Number) -> str:
    return format_value(number.value, number.metric) + ("*" if number.note else "")


def _limits(number: Number) -> str:
    if number.low is None or number.high is None:
        return terminal.NONE
    return f"{format_value(number.low, number.metric)} to {format_value(number.high, number.metric)}"


def _print_voices(numbers: Sequence[Number]) -> None:
    voices = [number for number in numbers if number.identity.metric in _VOICES]
    if voices:
        terminal.print_text()
        rows = [
            [one.identity.data_set, format_heading(one.metric), format_value(one.value, one.metric), _limits(one)]
            for one in voices
        ]
        terminal.print_table(["trials", "voices", "value", "95 % interval"], rows, numbers_from=2)


def _print_extras(numbers: Sequence[Number]) -> None:
    """Print gender preservation and the inversion attack, with what each is worth."""
    extras = [one for one in numbers if one.identity.metric in EXTRA_METRICS and one.identity.gender is Gender.ALL]
    if not extras:
        return
    rows = []
    for one in extras:
        form = ", originals" if one.identity.speech is Speech.ORIGINAL else ""
        rows.append([one.identity.data_set, format_heading(one.metric) + form, format_value(one.value, one.metric)])
    terminal.print_text()
    terminal.print_table(["speakers", "extras", "value"], rows, numbers_from=2)
    for metric, sentence in WORTH.items():
        terminal.print_text()
        terminal.print_paragraph(f"{EXTRA_METRICS[metric].label}: {sentence}")


def attack_content(name: str, folder: Path, objective: Objective, problems: Sequence[Problem]) -> dict[str, object]:
    """Return an attack for JSON: every number with all that identifies it, its unit and what limits it."""
    tested = ("data_set", "gender", "metric", "estimator", "speech", "attack_model")
    numbers = [
        {name: getattr(one.identity, name) for name in tested}
        | {"value": one.value, "unit": one.metric.unit, "low": one.low, "high": one.high, "n": one.n, "note": one.note}
        for one in objective.numbers.values()
    ]
    missing = [{"what": one.what, "reason": one.reason} for one in objective.missing]
    return {
        "attacker": name,
        "results": str(folder),
        "numbers": numbers,
        "missing": missing,
        "problems": terminal.problem_rows(problems),
    }
