"""Results of papers: what papers and challenges print, one line a system, beside systems of a leaderboard here.

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
from common.tables import Cell, Column, Table, number_columns, number_table, plain_table
from evaluation.app.runs.kinds import describe_evaluators, explain_unlike_papers
from evaluation.attackers.training.report import PUBLISHED_TABLE_1, PublishedRow
from evaluation.figures.bars import SystemBar
from evaluation.figures.tradeoff import SystemPoint
from evaluation.formats.results import AttackModel, explain_attack
from evaluation.metrics.catalogue import Metric, find_metric
from evaluation.protocols.published import ORIGINAL, is_as_shipped
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
from evaluation.protocols.ranking.entries import LeaderboardEntry, MeasuredValue
from portal.challenges.models import Edition
from portal.leaderboard.figures import Drawing, describe_figure, figure_key, link_of, list_places
from portal.leaderboard.pages import above_chance_note
from portal.leaderboard.selectors import Leaderboard, ShownAverage, build_leaderboard, list_public_editions
from portal.leaderboard.tables import average_cell, measured_of

DIGITS = 3
FIRST = "2022"
PLANE = "plane"
UNSTATED = "attack model not stated"
PARTS = {"numbers": "Numbers", "figures": "Figures", "listeners": "What listeners said"}
TRAINED = AttackModel.SEMI_INFORMED
SOURCE = Column("source", "Source")
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
        utility: metric and estimator on the axis beside the EER.
        systems: published ones that are shown.
        edition: whose systems are laid over; None for none.
    """

    task: PublishedTask
    split: str
    data_set: str
    attack: str
    utility: tuple[str, str]
    systems: tuple[str, ...]
    edition: Edition | None

    @cached_property
    def every_line(self) -> list[PublishedLine]:
        return read_lines(self.task, self.split, self.data_set, self.attack)

    @cached_property
    def lines(self) -> list[PublishedLine]:
        return [line for line in self.every_line if line.system in self.systems]

    @cached_property
    def measures(self) -> list[tuple[str, str]]:
        """Those of which any line has a number."""
        return [key for key in list_measures(self.task) if any(key in line.values for line in self.every_line)]

    @cached_property
    def leaderboard(self) -> Leaderboard | None:
        """The leaderboard whose systems are laid over: averages of the same split only."""
        if self.edition is None or self.data_set != AVERAGE:
            return None
        found = build_leaderboard(self.edition)
        return found if found.policy.split == self.split else None

    @property
    def query(self) -> str:
        """The end of the address."""
        named = {"edition": self.task.key, "split": self.split, "set": self.data_set, "by": self.utility[0]}
        named |= {"attack": self.attack}
        over = {"over": self.edition.name} if self.edition else {}
        if len(self.systems) == len(self.every_line):
            return urlencode(named | over)
        shown = [("of", self.task.key), *(("system", name) for name in self.systems)]
        return urlencode([*(named | over).items(), *shown])


def read_choice(given: QueryDict) -> PublishedChoice:
    """What an address asks for; whatever it names that is not there is as if it were not named."""
    tasks = {one.key: one for one in list_tasks()}
    task = tasks.get(given.get("edition", ""), tasks[FIRST])
    split = given.get("split", "") if given.get("split") in SPLITS else SPLITS[0]
    sets = list_sets(task, split)
    data_set = given.get("set", "") if given.get("set") in sets else sets[0]
    attack = given.get("attack", "") if given.get("attack") in task.attacks else task.strongest
    lines = read_lines(task, split, data_set, attack)
    known = list_utilities(task, lines)
    utility = next((key for key in known if key[0] == given.get("by")), known[0])
    # The names of another task say nothing about this one.
    wanted = given.getlist("system") if given.get("of") == task.key else []
    names = tuple(line.system for line in lines)
    systems = tuple(name for name in names if name in wanted) or names
    public = Edition.objects.filter(is_listed=True, published_at__isnull=False)
    edition = public.filter(name=given.get("over", "")).select_related("corpus").first()
    return PublishedChoice(task, split, data_set, attack, utility, systems, edition)


def list_utilities(task: PublishedTask, lines: Sequence[PublishedLine]) -> list[tuple[str, str]]:
    """What may stand on the axis beside the EER: measures without an attacker of which any line has a number."""
    known = (key for key in list_measures(task) if key[0] not in ATTACKED)
    return [key for key in known if any(key in line.values for line in lines)]


def list_sets(task: PublishedTask, split: str) -> list[str]:
    """The average where the edition has one, then the sets of a split."""
    return [*([AVERAGE] if task.track.averages else []), *list_trial_sets(task, split)]


def published_page(choice: PublishedChoice) -> dict[str, Any]:
    """Everything on the page."""
    tasks = list_tasks()
    drawings = list_published_drawings(choice)
    utilities = list_utilities(choice.task, choice.every_line)
    return {
        "choice": choice,
        "tasks": tasks,
        "splits": SPLITS,
        "attacks": choice.task.attacks,
        "sets": [(name, "average" if name == AVERAGE else name) for name in list_sets(choice.task, choice.split)],
        "utilities": [(key[0], find_metric(*key).label) for key in utilities],
        "systems": [(line.system, line.system in choice.systems) for line in choice.every_line],
        "editions": list(dict.fromkeys([*list_public_editions(), *([choice.edition] if choice.edition else [])])),
        "table": make_table(choice),
        "further": make_further_table(choice),
        "published": published_table(),
        "notes": list(_differences(choice)),
        "figures": [_figure(choice, one) for one in drawings.values()],
        "sources": list_sources(choice),
        "query": choice.query,
    }


def make_table(choice: PublishedChoice, *, is_file: bool = False) -> Table:
    """A line for each published system, then those of the leaderboard that is laid over.

    Args:
        is_file: with every measure and digit, as files have them, and with a column for the attack model of each line.
    """
    measures = [key for key in choice.measures if is_file or not is_further(key[0])]
    metrics = [find_metric(*key) for key in measures]
    columns = _columns_of(measures, choice)
    columns += [Column("attack_model", "Attack model"), SOURCE] if is_file else [SOURCE]
    rows: list[tuple[Cell | str, ...]] = []
    for line in choice.lines:
        attacks = dict.fromkeys(_attack_of(one) for key, one in line.values.items() if key[0] in ATTACKED)
        attack = ("; ".join(attacks),) if is_file else ()
        cells = [_cell(line.values.get(key), key, choice, is_file=is_file) for key in measures]
        rows.append((line.system, *cells, *attack, _sources_of(line, measures, choice)))
    if leaderboard := choice.leaderboard:
        found = _columns(measures, leaderboard)
        for entry in leaderboard.entries:
            measured = [measured_of(entry, column) if column else None for column in found]
            cells = [
                average_cell(one, metric.unit) if one else Cell() for one, metric in zip(measured, metrics, strict=True)
            ]
            aside = "unprotected" if entry.kind == "original" else entry.team_name
            name = Cell(_name_here(choice, entry), link=link_of(entry), aside=aside)
            here = AttackModel.UNPROTECTED if entry.kind == "original" else leaderboard.policy.attack_model
            rows.append((name, *cells, *((str(here),) if is_file else ()), "this portal"))
    words = "As printed; averages by the weights of the recipe, rounded."
    words += " Systems of this portal: 95 % intervals beneath." if choice.leaderboard else ""
    words += " –: neither printed nor measured here." if choice.leaderboard else " –: not printed."
    return plain_table("Results of papers", columns, rows, caption=words, styles="strip sparse", missing="–")


def make_further_table(choice: PublishedChoice) -> Table | None:
    """What else was printed of those systems: other measures of the attacks, recalls of emotions."""
    measures = [key for key in choice.measures if is_further(key[0])]
    lines = [line for line in choice.lines if any(key in line.values for key in measures)]
    if not lines:
        return None
    rows: list[list[Cell | str]] = [
        [
            line.system,
            *(_cell(line.values.get(key), key, choice, is_brief=True) for key in measures),
            _sources_of(line, measures, choice),
        ]
        for line in lines
    ]
    columns = [*_columns_of(measures, choice, is_brief=True), SOURCE]
    is_attacked = any(key[0] in ATTACKED for key in measures)
    words = (
        f"Attacks: {_printed_attack(choice) or AttackModel.UNPROTECTED}; of original speech, unprotected. "
        * is_attacked
    )
    words += "–: not printed. Not on leaderboards of this portal; pages of systems have them."
    return plain_table("Further measures", columns, rows, caption=words, styles="strip sparse", missing="–")


def _columns_of(
    measures: Sequence[tuple[str, str]], choice: PublishedChoice, *, is_brief: bool = False
) -> list[Column]:
    found = [Column("system", "System")]
    for key in measures:
        metric = find_metric(*key)
        note = _attacks(choice) if key[0] in ATTACKED and not is_brief else ""
        found.append(Column(metric.key, metric.label, kind="num", unit=metric.unit, note=note))
    return found


def _sources_of(line: PublishedLine, measures: Sequence[tuple[str, str]], choice: PublishedChoice) -> str:
    """The numbers of the sources of a line's cells."""
    numbered = {source: str(number) for number, source in enumerate(list_sources(choice), start=1)}
    found = dict.fromkeys(one for key in measures if key in line.values for one in line.values[key].sources)
    return ", ".join(numbered[source] for source in found)


def list_sources(choice: PublishedChoice) -> list[str]:
    """Where the numbers of the lines stand, in the order of the lines."""
    return list(
        dict.fromkeys(
            source
            for line in choice.lines
            for key in choice.measures
            if key in line.values
            for source in line.values[key].sources
        )
    )


def published_rows(choice: PublishedChoice) -> Iterator[tuple[Any, ...]]:
    """The printed numbers behind the page, with their sources, the names of the columns first."""
    yield COLUMNS
    for one in _numbers(choice):
        yield (choice.task.recipe.edition, *(getattr(one, name) for name in COLUMNS[1:]))


def list_published_drawings(choice: PublishedChoice) -> dict[str, Drawing]:
    """The plane of EER and utility, and bars of both, of those that have them."""
    privacy = next((key for key in choice.measures if key[0] == EER), None)
    found: dict[str, Drawing] = {}
    column = _shown(choice.utility)
    points = list(_points(choice, privacy)) if privacy else []
    if len(points) > 1:
        found[PLANE] = Drawing(PLANE, column, points=tuple(points))
    for key in (privacy, choice.utility):
        bars = list(_bars(choice, key)) if key else []
        if key and len(bars) > 1:
            slug = key[0].replace("_", "-")
            found[slug] = Drawing(slug, _shown(key), bars=tuple(sorted(bars, key=lambda one: -one.value)))
    return found


# Parts ---------------------------------------------------------------------------------------------


def _numbers(choice: PublishedChoice) -> Sequence[Any]:
    return select_numbers(choice.task, choice.systems, choice.split, choice.data_set, choice.attack)


def _shown(key: tuple[str, str]) -> ShownAverage:
    return ShownAverage(key[0], find_metric(*key), key[1])


def _cell(
    value: PublishedValue | None,
    key: tuple[str, str],
    choice: PublishedChoice,
    *,
    is_file: bool = False,
    is_brief: bool = False,
) -> Cell:
    """A printed number. `is_brief`: without the attack model, where the caption says it."""
    if value is None:
        return Cell()
    exact = fixed(value.value, DIGITS) if value.is_average else value.text
    text = _rounded(value.value, None, find_metric(*key).unit) if value.is_average and not is_file else _short(exact)
    attack = _attack_of(value) if key[0] in ATTACKED else ""
    named = attack if attack != _printed_attack(choice) and not is_brief else ""
    note = "; ".join(filter(None, [named, "sources differ" if value.note else ""]))
    return Cell(text, value=value.value, note=note, title=value.note or exact)


def _rounded(value: float, interval: tuple[float | None, float | None] | None, unit: str) -> str:
    """As a page shows it: in the digits that its interval allows, few of them without one."""
    return round_to_interval(value, *(interval or (None, None)), DIGITS, unit)[0]


def _short(text: str) -> str:
    """A printed number with a true minus; one with very many digits in three, as the official scripts print it."""
    return text.replace("-", "−") if len(text.partition(".")[2]) <= DIGITS + 1 else fixed(float(text), DIGITS)


def _name_here(choice: PublishedChoice, entry: LeaderboardEntry) -> str:
    """With the edition: published systems have labels of the same kind."""
    return f"{entry.label} ({choice.edition.name})" if choice.edition else entry.label


def _columns(measures: Sequence[tuple[str, str]], leaderboard: Leaderboard) -> list[ShownAverage | None]:
    """The averages of the leaderboard that are those of the page's columns, by metric."""
    by_metric = {one.key: one for one in leaderboard.averages}
    return [by_metric.get(metric) for metric, _ in measures]


def _overlaid_values(choice: PublishedChoice, metric: str) -> Iterator[tuple[LeaderboardEntry, MeasuredValue]]:
    leaderboard = choice.leaderboard
    column = next((one for one in leaderboard.averages if one.key == metric), None) if leaderboard else None
    if leaderboard and column:
        for entry in leaderboard.entries:
            if (measured := measured_of(entry, column)) is not None:
                yield entry, measured


def _points(choice: PublishedChoice, privacy: tuple[str, str]) -> Iterator[SystemPoint]:
    for line in choice.lines:
        eer, utility = line.values.get(privacy), line.values.get(choice.utility)
        if eer and utility:
            kind: Any = "original" if line.system == ORIGINAL else "published"
            words = _words(line.system, "published", eer.value, utility.value, find_metric(*choice.utility))
            yield SystemPoint(line.system, eer.value, utility.value, kind, words=words, link=f"?{choice.query}#table")
    utilities = {entry.key: one for entry, one in _overlaid_values(choice, choice.utility[0])}
    places = list_places(choice.leaderboard) if choice.leaderboard else {}
    for entry, eer_of in _overlaid_values(choice, EER):
        if measured := utilities.get(entry.key):
            name = _name_here(choice, entry)
            yield SystemPoint(
                name,
                eer_of.value,
                measured.value,
                entry.kind,
                eer_interval=eer_of.interval,
                utility_interval=measured.interval,
                words=_words(name, "here", eer_of.value, measured.value, find_metric(*choice.utility)),
                link=link_of(entry),
                place=places.get(entry.label),
            )


def _bars(choice: PublishedChoice, key: tuple[str, str]) -> Iterator[SystemBar]:
    for line in choice.lines:
        if found := line.values.get(key):
            told = f"{line.system}: {_rounded(found.value, None, find_metric(*key).unit)}, published"
            yield SystemBar(line.system, found.value, is_baseline=True, words=told, link=f"?{choice.query}#table")
    places = list_places(choice.leaderboard) if choice.leaderboard else {}
    for entry, one in _overlaid_values(choice, key[0]):
        name = _name_here(choice, entry)
        told = f"{name}: {_rounded(one.value, one.interval, find_metric(*key).unit)}"
        look: dict[str, Any] = {"is_baseline": entry.kind != "system", "place": places.get(entry.label, 0)}
        yield SystemBar(name, one.value, one.low, one.high, words=told, link=link_of(entry), **look)


def _words(name: str, of: str, eer: float, utility: float, metric: Metric) -> str:
    unit = f" {metric.unit}" if metric.unit else ""
    return f"{name} ({of}): EER {fixed(eer, 1)} %, {metric.label} {fixed(utility, 2)}{unit}"


def _differences(choice: PublishedChoice) -> Iterator[str]:
    """What a reader has to know before comparing."""
    task = choice.task
    if choice.edition and (said := explain_unlike_papers(choice.edition.recipe, choice.edition.corpus)):
        yield said
    if choice.attack:
        yield explain_attack(choice.attack)
    if not task.track.averages:
        yield f"The challenge of {task.title} printed no averages: choose one data set at a time."
    if choice.every_line and all(line.system == ORIGINAL or line.system[0] == "B" for line in choice.every_line):
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
    if choice.edition is None:
        return
    if choice.leaderboard is None:
        yield f"Systems of {choice.edition} have averages of their own split only: choose the average of that split."
        return
    yield from _differences_from(choice.leaderboard, task, _printed_attack(choice))


def _attack_of(value: PublishedValue) -> str:
    return value.attack_model or UNSTATED


def _printed_attack(choice: PublishedChoice) -> str:
    """The attack model that the sources say of the numbers of systems; where some say none, both."""
    own = [line for line in choice.every_line if line.system != ORIGINAL]
    return " or ".join(
        dict.fromkeys(_attack_of(one) for line in own for key, one in line.values.items() if key[0] in ATTACKED)
    )


def _attacks(choice: PublishedChoice) -> str:
    """The attack model of the numbers in print, and that of the systems that are laid over where it is another one."""
    printed = _printed_attack(choice)
    here = choice.leaderboard.policy.attack_model if choice.leaderboard else printed
    return printed if here == printed else f"{printed} in print, {here} here"


def _differences_from(leaderboard: Leaderboard, task: PublishedTask, printed_attack: str) -> Iterator[str]:
    edition = leaderboard.edition
    recipe = edition.recipe
    if recipe.edition != task.recipe.edition or not is_as_shipped(recipe):
        yield f"Data: {edition} has other data sets, trials or weights than {task.title}."
    published = {one.metric: one.estimator for one in task.track.averages}
    for column in leaderboard.averages:
        theirs = published.get(column.key)
        if theirs is not None and theirs != column.estimator:
            here, printed = (find_metric(column.key, one).label for one in (column.estimator, theirs))
            if here == printed:
                here, printed = f"{here} by {column.estimator or 'the portal'}", f"by {theirs or 'the challenge'}"
            yield f"Estimator: {here} here, {printed} in print."
    attack = leaderboard.policy.attack_model
    if printed_attack and attack != printed_attack:
        yield f"Attack model: {_explain_attack(attack)} for {edition}; {_explain_attack(printed_attack)} in print."
    yield f"Evaluator: {edition}: {describe_evaluators(recipe)}. Published numbers: the challenge's own evaluators."
    if edition.corpus and edition.corpus.is_synthetic:
        yield f"Speech: that of {edition} is synthetic."


def _explain_attack(attack: str) -> str:
    """With how its attacker was trained, where one attack is named."""
    if attack not in list(AttackModel):
        return attack
    return f"{attack} (attacker {'' if attack == TRAINED else 'not '}trained on anonymised speech)"


def _figure(choice: PublishedChoice, drawing: Drawing) -> dict[str, Any]:
    """A figure as `components/figure.html` takes it."""
    mark = figure_key(drawing.description(), "svg").rpartition("/")[2][:12]

    def address(extension: str, **form: str) -> str:
        where = reverse("published:figure", args=[drawing.slug, extension])
        return f"{where}?{choice.query}&{urlencode({'v': mark} | form)}"

    words = _plane_words(choice, drawing) if drawing.points else _bar_words(choice, drawing)
    return describe_figure(drawing, words, address)


def _plane_words(choice: PublishedChoice, drawing: Drawing) -> dict[str, Any]:
    label = drawing.column.metric.label
    ours = "; grey: baselines, in colour: systems of this portal" if choice.leaderboard else ""
    above = above_chance_note(one.eer for one in drawing.points)
    rows = (
        (
            one.name,
            _rounded(one.eer, one.eer_interval, "%"),
            _rounded(one.utility, one.utility_interval, drawing.column.metric.unit),
        )
        for one in drawing.points
    )
    return {
        "title": "Privacy against utility",
        "caption": f"Right: more private.{above} Open: published; filled: original speech{ours}.",
        "alt": f"EER against {label} of {len(drawing.points)} systems; the numbers follow as a table.",
        "numbers": number_table("The plane in numbers", ["System", "EER, %", drawing.column.heading], rows, styles=""),
    }


def _bar_words(choice: PublishedChoice, drawing: Drawing) -> dict[str, Any]:
    heading = drawing.column.heading
    ours = " In colour: systems of this portal. Thin lines: 95 % intervals." if choice.leaderboard else ""
    above = above_chance_note(one.value for one in drawing.bars) if drawing.column.key == EER else ""
    rows = ((one.name, _rounded(one.value, (one.lower, one.upper), drawing.column.metric.unit)) for one in drawing.bars)
    return {
        "title": drawing.column.metric.label,
        "caption": f"Hatched: published systems, baselines, original speech.{ours}{above}",
        "alt": f"A bar for each of {len(drawing.bars)} systems; the numbers follow as a table.",
        "numbers": number_table(f"{heading} in numbers", ["System", heading], rows, styles=""),
    }


# Trained attackers of a paper -----------------------------------------------------------------------


def published_table() -> Table:
    """Trained attackers and selections of targets: what Franzreb et al. report, never measured here."""
    return plain_table(
        "Table 1 of the paper",
        [Column("name", "Anonymiser, targets, evaluation"), *number_columns("EER", "VER_S", "VER_T")],
        map(_published_attack, PUBLISHED_TABLE_1),
        caption="Table 1 of the paper: mean ± standard deviation over three seeds, per cent.",
        styles="strip",
    )


def _published_attack(row: PublishedRow) -> list[str]:
    evaluation = "with reversed gradient" if row.with_classifier else "SpAnE"
    # The table names the configurations of private kNN-VC alone, by the weight of predicted durations and candidates.
    named = f"private kNN-VC {row.anonymizer}" if row.anonymizer.startswith("(") else row.anonymizer
    numbers = (row.eer, row.source_error, row.target_error)
    texts = (f"{fixed(100 * one.mean, 1)} ± {fixed(100 * one.deviation, 1)}" for one in numbers)
    return [f"{named}, {row.selection}, {evaluation}", *texts]
