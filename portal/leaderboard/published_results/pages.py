"""Results of papers: what papers and challenges print, one line a system, as a table and a figure.

What was chosen stands in the address, so that each view can be linked to and downloaded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from urllib.parse import urlencode

from django.http import QueryDict
from django.urls import reverse

from common.rounding import fixed, round_to_interval
from common.tables import Cell, Column, Table, number_table, plain_table
from evaluation.figures.tradeoff import SystemPoint
from evaluation.formats.results import explain_attack
from evaluation.metrics.catalogue import find_metric
from evaluation.objective_results.leaderboard_entries import ShownAverage
from evaluation.protocols.published import ORIGINAL
from evaluation.protocols.published_view import (
    ATTACKED,
    AVERAGE,
    EER,
    SPLITS,
    PublishedLine,
    PublishedTask,
    PublishedValue,
    is_further,
    list_measures,
    list_tasks,
    list_trial_sets,
    read_lines,
    select_numbers,
)
from portal.leaderboard.figures import Drawing, describe_figure, figure_key
from portal.leaderboard.pages import above_chance_note

DIGITS = 3
FIRST = "2022"
UNSTATED = "attack model not stated"
COLUMNS = (
    "edition",
    "system",
    "data_set",
    "gender",
    "metric",
    "estimator",
    "attack_model",
    "value",
    "source",
    "table",
    "note",
)


@dataclass(frozen=True)
class PublishedChoice:
    """What a reader asked for.

    Attributes:
        data_set: of trials, or `AVERAGE`.
        attack: the attack model of an attacker's numbers.
    """

    task: PublishedTask
    split: str
    data_set: str
    attack: str

    @cached_property
    def lines(self) -> list[PublishedLine]:
        return read_lines(self.task, self.split, self.data_set, self.attack)

    @cached_property
    def measures(self) -> list[tuple[str, str]]:
        """Return those of which any line has a number."""
        return [key for key in list_measures(self.task) if any(key in line.values for line in self.lines)]

    @property
    def query(self) -> str:
        """Return the end of the address."""
        named = {"edition": self.task.key, "split": self.split, "set": self.data_set, "attack": self.attack}
        return urlencode(named)


def read_choice(given: QueryDict) -> PublishedChoice:
    """Return what an address asks for; whatever it names that is not there is as if it were not named."""
    tasks = {one.key: one for one in list_tasks()}
    task = tasks.get(given.get("edition", ""), tasks[FIRST])
    split = given.get("split", "") if given.get("split") in SPLITS else SPLITS[0]
    sets = list_sets(task, split)
    data_set = given.get("set", "") if given.get("set") in sets else sets[0]
    attack = given.get("attack", "") if given.get("attack") in task.attacks else task.strongest
    return PublishedChoice(task, split, data_set, attack)


def list_sets(task: PublishedTask, split: str) -> list[str]:
    """Return the average where the edition has one, then the sets of a split."""
    return [*([AVERAGE] if task.track.averages else []), *list_trial_sets(task, split)]


def published_page(choice: PublishedChoice) -> dict[str, Any]:
    """Return everything on the page."""
    drawing = draw_plane(choice)
    return {
        "choice": choice,
        "tasks": list_tasks(),
        "splits": SPLITS,
        "attacks": choice.task.attacks,
        "sets": [(name, "average" if name == AVERAGE else name) for name in list_sets(choice.task, choice.split)],
        "table": make_table(choice),
        "further": [find_metric(*key).label for key in choice.measures if is_further(key[0])],
        "notes": list(_notes(choice)),
        "figure": _figure(choice, drawing) if drawing else None,
        "sources": list_sources(choice),
        "query": choice.query,
    }


def make_table(choice: PublishedChoice, *, is_file: bool = False) -> Table:
    """Return a line for each published system.

    Args:
        is_file: with every measure and digit, as files have them, and with a column for the attack model of each line.
    """
    measures = [key for key in choice.measures if is_file or not is_further(key[0])]
    columns = [Column("system", "System")]
    for key in measures:
        metric = find_metric(*key)
        note = _printed_attack(choice) if key[0] in ATTACKED else ""
        columns.append(Column(metric.key, metric.label, kind="num", unit=metric.unit, note=note))
    columns += [Column("attack_model", "Attack model")] if is_file else []
    columns.append(Column("source", "Source"))
    rows: list[tuple[Cell | str, ...]] = []
    for line in choice.lines:
        attacks = dict.fromkeys(_attack_of(one) for key, one in line.values.items() if key[0] in ATTACKED)
        attack = ("; ".join(attacks),) if is_file else ()
        cells = [_cell(line.values.get(key), key, choice, is_file=is_file) for key in measures]
        rows.append((line.system, *cells, *attack, _sources_of(line, measures, choice)))
    words = "As printed; averages by the weights of the recipe, rounded. –: not printed."
    return plain_table("Results of papers", columns, rows, caption=words, styles="strip sparse", missing="–")


def list_sources(choice: PublishedChoice) -> list[str]:
    """Where the numbers of the lines stand, in the order of the lines."""
    values = (line.values[key] for line in choice.lines for key in choice.measures if key in line.values)
    return list(dict.fromkeys(source for value in values for source in value.sources))


def published_rows(choice: PublishedChoice) -> Iterator[tuple[Any, ...]]:
    """Yield the printed numbers behind the page, with their sources, the names of the columns first."""
    yield COLUMNS
    systems = [line.system for line in choice.lines]
    for one in select_numbers(choice.task, systems, choice.split, choice.data_set, choice.attack):
        yield (choice.task.recipe.edition, *(getattr(one, name) for name in COLUMNS[1:]))


def draw_plane(choice: PublishedChoice) -> Drawing | None:
    """Draw the EER against the first measure without an attacker; None where fewer than two systems have both."""
    privacy = next((key for key in choice.measures if key[0] == EER), None)
    utility = next((key for key in choice.measures if key[0] not in ATTACKED), None)
    if privacy is None or utility is None:
        return None
    metric = find_metric(*utility)
    unit = f" {metric.unit}" if metric.unit else ""
    points = []
    for line in choice.lines:
        if privacy in line.values and utility in line.values:
            eer, useful = line.values[privacy].value, line.values[utility].value
            kind: Any = "original" if line.system == ORIGINAL else "published"
            words = f"{line.system}: EER {fixed(eer, 1)} %, {metric.label} {fixed(useful, 2)}{unit}"
            points.append(SystemPoint(line.system, eer, useful, kind, words=words, link=f"?{choice.query}#table"))
    column = ShownAverage(utility[0], metric, utility[1])
    return Drawing("plane", column, points=tuple(points)) if len(points) > 1 else None


# Parts ---------------------------------------------------------------------------------------------


def _sources_of(line: PublishedLine, measures: Sequence[tuple[str, str]], choice: PublishedChoice) -> str:
    """Return the numbers of the sources of a line's cells."""
    numbered = {source: str(number) for number, source in enumerate(list_sources(choice), start=1)}
    found = dict.fromkeys(one for key in measures if key in line.values for one in line.values[key].sources)
    return ", ".join(numbered[source] for source in found)


def _cell(
    value: PublishedValue | None, key: tuple[str, str], choice: PublishedChoice, *, is_file: bool = False
) -> Cell:
    if value is None:
        return Cell()
    exact = fixed(value.value, DIGITS) if value.is_average else value.text
    text = _rounded(value.value, find_metric(*key).unit) if value.is_average and not is_file else _short(exact)
    attack = _attack_of(value) if key[0] in ATTACKED else ""
    named = attack if attack != _printed_attack(choice) else ""
    note = "; ".join(filter(None, [named, "sources differ" if value.note else ""]))
    return Cell(text, value=value.value, note=note, title=value.note or exact)


def _rounded(value: float, unit: str) -> str:
    """Return a value in the few digits of a page."""
    return round_to_interval(value, None, None, DIGITS, unit)[0]


def _short(text: str) -> str:
    """Return a printed number with a true minus; one with very many digits in three, as the official scripts print
    it."""
    return text.replace("-", "−") if len(text.partition(".")[2]) <= DIGITS + 1 else fixed(float(text), DIGITS)


def _notes(choice: PublishedChoice) -> Iterator[str]:
    """Yield what a reader has to know before comparing."""
    task = choice.task
    if choice.attack:
        yield explain_attack(choice.attack)
    if not task.track.averages:
        yield f"The challenge of {task.title} printed no averages: choose one data set at a time."
    if choice.lines and all(line.system == ORIGINAL or line.system[0] == "B" for line in choice.lines):
        yield "Of this choice only baselines were published as a file; results of participants are in the papers."
    for line in choice.lines:
        noted = {find_metric(*key).label: (key, one.note) for key, one in line.values.items() if one.note}
        further = [label for label, (key, _) in noted.items() if choice.data_set == AVERAGE and is_further(key[0])]
        for label, (_, note) in noted.items():
            if label not in further:
                yield f"{line.system}, {label}: {note[:1].lower()}{note[1:]}"
        if further:
            yield f"{line.system}, {', '.join(further)}: sources differ; the first counts, files have all of them."
    made = [find_metric(*key).label for key in choice.measures if choice.data_set == AVERAGE and is_further(key[0])]
    if made:
        yield f"{', '.join(made)}: the challenge printed no averages; these are by the weights of its other averages."


def _attack_of(value: PublishedValue) -> str:
    return value.attack_model or UNSTATED


def _printed_attack(choice: PublishedChoice) -> str:
    """Return the attack model that the sources say of the numbers of systems; where some say none, both."""
    own = [line for line in choice.lines if line.system != ORIGINAL]
    return " or ".join(
        dict.fromkeys(_attack_of(one) for line in own for key, one in line.values.items() if key[0] in ATTACKED)
    )


def _figure(choice: PublishedChoice, drawing: Drawing) -> dict[str, Any]:
    """Return a figure as `components/figure.html` takes it."""
    mark = figure_key(drawing.description(), "svg").rpartition("/")[2][:12]

    def address(extension: str, **form: str) -> str:
        return f"{reverse('published:figure', args=[extension])}?{choice.query}&{urlencode({'v': mark} | form)}"

    label, unit = drawing.column.metric.label, drawing.column.metric.unit
    rows = ((one.name, _rounded(one.eer, "%"), _rounded(one.utility, unit)) for one in drawing.points)
    above = above_chance_note(drawing.points)
    words = {
        "title": "Privacy against utility",
        "caption": f"Right: more private.{above} Open: published; filled: original speech.",
        "alt": f"EER against {label} of {len(drawing.points)} systems; the numbers follow as a table.",
        "numbers": number_table("The plane in numbers", ["System", "EER, %", drawing.column.heading], rows, styles=""),
    }
    return describe_figure(drawing, words, address)
