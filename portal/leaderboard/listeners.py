"""What listeners said, beside the objective numbers of a leaderboard and of a system.

The form of the study decides which numbers are compared: the attacker's EER with that of listeners, the
recogniser's word errors beside intelligibility or the words that listeners wrote down. Numbers of listeners come from
the tables of an analysis, objective ones from the leaderboard; nothing is computed here. Everybody sees what is
published; an organizer of the edition sees the newest analysis of every other closed study too, marked as a preview.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlencode

from django.urls import reverse

from common.rounding import fixed, round_to_interval
from evaluation.app.objective_results.selectors import group_curves, read_originals
from evaluation.figures.style import SYNTHETIC
from evaluation.formats.results import AttackModel
from evaluation.metrics.catalogue import ESTIMATORS
from evaluation.objective_results.leaderboard_entries import (
    ShownAverage,
    make_entry,
    make_original_entry,
    select_shown,
)
from evaluation.objective_results.values import ObjectiveValues
from evaluation.protocols.published import load_published_correlations
from evaluation.protocols.ranking import entries
from listening.analysis.answers.scales import MEAN
from listening.analysis.figures.view import SIMULATED
from listening.analysis.reading.inputs import ORIGINAL
from listening.analysis.tables import Results
from listening.app.models import Condition, Study
from listening.app.results.figures import Reader, shown_figures
from listening.app.results.labels import METHOD, ORIGINAL_LABEL, privacy_in_doubt, privacy_in_words
from listening.app.results.rules import warn_of_few
from listening.app.results.selectors import Shown, list_notes, list_shown_analyses, with_outdated
from portal.challenges.models import Edition
from portal.leaderboard.figures import Drawing, ShownTest, describe_figure
from portal.leaderboard.selectors import Leaderboard, columns_of, describe_system
from portal.leaderboard.tables import measured_of
from portal.submissions.models import Submission

LISTENERS, OBJECTIVE, EER = "listeners", "objective", "eer"
NUMBER = ("value", "low", "high", "group")
CSV_COLUMNS = ("study", "is_simulated", "scores", "system", "label", "by", "measure", "unit", "attack_model", *NUMBER)


PERCENT_DIGITS, DIGITS = 1, 3
LEADERBOARD_LEVEL = 0.95  # of the intervals on leaderboards
EARLIER = "An earlier version of it was heard."


@dataclass(frozen=True)
class Quantity:
    """A column of a form of study in method.toml: an average of the leaderboard, or numbers of an analysis.

    `key`: of the average, and in files; `unit`: of its values, such as ``%``; `by`: `OBJECTIVE` or `LISTENERS`; `how`:
    estimator and attack; `table`, `column`: where the analysis has the numbers, of the rows with the values in `rows`,
    and for unprotected speech of those in `of_original` where these are others. Columns of computed numbers are left
    out where there are none.
    """

    key: str
    title: str = ""
    unit: str = ""
    table: str = ""
    column: str = ""
    rows: Mapping[str, str] = field(default_factory=dict)
    of_original: Mapping[str, str] = field(default_factory=dict)
    is_common: bool = False
    by: str = LISTENERS
    how: str = ""

    @property
    def heading(self) -> str:
        """Return title and unit, such as ``EER of listeners, %``."""
        return f"{self.title}, {self.unit}" if self.unit else self.title


@dataclass(frozen=True)
class PanelValue:
    """A number with its interval, in the unit of its quantity.

    `group`: letters of systems that are alike; `note`: why there is no number, or its attack model where it is another;
    `attack`: its attack model, empty where it has none.
    """

    quantity: Quantity
    value: float | None = None
    low: float | None = None
    high: float | None = None
    group: str = ""
    is_reported: bool = False
    note: str = ""
    attack: str = ""

    @property
    def texts(self) -> tuple[str, str]:
        """Return number and interval, rounded to it; of listeners no more exact than one that has an interval."""
        if self.value is None:
            return "", ""
        is_share = self.quantity.unit == "%"
        if self.quantity.by == LISTENERS and (self.low is None or self.high is None):
            return fixed(self.value, 0 if is_share else 1 if abs(self.value) > 1 else 2), ""
        unit = None if self.is_reported else self.quantity.unit
        return round_to_interval(self.value, self.low, self.high, PERCENT_DIGITS if is_share else DIGITS, unit)


@dataclass(frozen=True)
class PanelRow:
    """A system. `key`: its name on the leaderboard, empty for original speech; `note`: of an earlier version."""

    key: str
    label: str
    numbers: tuple[PanelValue, ...]
    note: str = ""


@dataclass(frozen=True)
class Heard:
    """A system of a study that stands on the leaderboard. `is_outdated`: which shows a later version of it."""

    heard: str
    entry: entries.LeaderboardEntry
    is_outdated: bool = False


@dataclass(frozen=True)
class ObjectiveComparison:
    """The table of one study. `scores`: kind of the scores that listeners' numbers rest on; empty of no kind. `level`:
    of the intervals of listeners' numbers; objective ones are those of the leaderboard.
    """

    scores: str
    quantities: tuple[Quantity, ...]
    rows: tuple[PanelRow, ...]
    level: float = LEADERBOARD_LEVEL

    @property
    def reading(self) -> str:
        """Return what listeners' equal error rates say of privacy; empty where they compared no voices."""
        return privacy_in_words(*self.unprotected) if self.unprotected else ""

    @property
    def is_in_doubt(self) -> bool:
        """Return whether these rates may say nothing of privacy."""
        return bool(self.unprotected and privacy_in_doubt(*self.unprotected))

    @property
    def unprotected(self) -> tuple[float | None, float | None] | None:
        """Return the equal error rate of unprotected speech and the upper end of its interval, as shares.

        None where listeners compared no voices.
        """
        numbers = ((row, one) for row in self.rows for one in row.numbers if one.quantity.by == LISTENERS)
        rates = [(row, one) for row, one in numbers if one.quantity.key.endswith("_eer")]
        found = next((one for row, one in rates if not row.key), None)
        rate, high = (found.value, found.high) if found else (None, None)
        return (None if rate is None else rate / 100, None if high is None else high / 100) if rates else None

    @property
    def numbers(self) -> list[PanelValue]:
        """Return all numbers there are."""
        return [one for row in self.rows for one in row.numbers if one.value is not None]

    @property
    def has_notes(self) -> bool:
        return any(row.note for row in self.rows)

    @property
    def has_groups(self) -> bool:
        return any(one.group for one in self.numbers)

    @property
    def is_bare(self) -> bool:
        """Return whether some number has no interval."""
        return any(one.low is None for one in self.numbers)

    def as_data(self) -> list[dict[str, Any]]:
        """Return each system with its numbers by measure, for JSON."""
        return [
            {
                "system": row.key or None,
                "label": row.label,
                "remark": row.note,
                "numbers": {
                    one.quantity.key: {
                        "by": one.quantity.by,
                        "unit": one.quantity.unit,
                        "attack_model": one.attack or None,
                    }
                    | {name: getattr(one, name) for name in NUMBER}
                    for one in row.numbers
                    if one.value is not None
                },
            }
            for row in self.rows
        ]

    def csv_rows(self, study: str, is_simulated: bool) -> Iterator[tuple[Any, ...]]:
        """Yield one row for each number, below `CSV_COLUMNS`."""
        for row in self.rows:
            for one in row.numbers:
                if one.value is not None:
                    what = one.quantity
                    scores = self.scores if what.by == LISTENERS else ""
                    of_system = (study, "yes" if is_simulated else "no", scores, row.key or ORIGINAL, row.label)
                    of_number = what.by, what.key, what.unit, one.attack
                    yield (*of_system, *of_number, *(getattr(one, name) for name in NUMBER))


# Numbers side by side ------------------------------------------------------------------------------


NOT_RATED, ONE_KIND_RATED = "not rated", "one kind of pairs only"
FORMS = {form: [Quantity(**one) for one in columns] for form, columns in METHOD["beside"].items()}


def _columns_of(results: Results) -> list[Quantity]:
    """Return the columns of a form of study, and one for each further question that is answered on a scale."""
    columns = list(FORMS[results.study["form"]])
    if results.study["form"] == Study.Form.ANSWERS:
        means = {row["question"] for row in results.records("common", "estimates", measure=MEAN)}
        return columns + [
            Quantity(key, one.title, "", "estimates", "value", {"question": key, "measure": MEAN}, is_common=True)
            for key, one in results.questions.items()
            if key in means
        ]
    known = {one.rows["task"] for one in columns if "task" in one.rows}
    for question in results.questions.values() if results.study["form"] == Study.Form.RATING else ():
        of = {"task": question.key}
        if question.key in known:
            continue
        if question.compares_voices:
            columns.append(Quantity(f"{question.key}_eer", f"{question.title}: EER", "%", "detection", "eer", of))
        else:
            columns.append(Quantity(question.key, question.title, "", "summary", "mean", of | {"kind": "all"}))
    return columns


def compare_with_objective(
    results: Results,
    scores: str,
    columns: Sequence[ShownAverage],
    heard: Iterable[Heard],
    original: entries.LeaderboardEntry | None = None,
    attack: str = "",
) -> ObjectiveComparison:
    """Return the systems of a study that stand on a leaderboard, the original first, then by the attacker's EER.

    Args:
        scores: ``raw`` or ``normalised``.
        columns: the averages of the leaderboard.
        original: unprotected speech as the leaderboard has it.
        attack: the attack model of the systems' EERs.
    """
    columns_of_form = _columns_of(results)
    found = (
        (_listeners(one, results, scores) if one.table else _computed(one, columns, attack)) for one in columns_of_form
    )
    parts = [part for part in found if part is not None]
    systems = sorted(heard, key=lambda one: -(one.entry.privacy.value if one.entry.privacy else -1.0))
    entries = [("", ORIGINAL, original, ORIGINAL_LABEL, "")]
    entries += [
        (one.entry.key, one.heard, one.entry, one.entry.label, EARLIER if one.is_outdated else "") for one in systems
    ]
    rows = [
        PanelRow(key, label, tuple(read(heard_as, entry) for _, read in parts), note)
        for key, heard_as, entry, label, note in entries
    ]
    is_scored = any(one.table and not one.is_common for one in columns_of_form)
    filled = [row for row in rows if any(one.value is not None for one in row.numbers)]
    return ObjectiveComparison(
        scores if is_scored else "", tuple(quantity for quantity, _ in parts), tuple(filled), results.level
    )


Part = tuple[Quantity, Callable[[str, entries.LeaderboardEntry | None], PanelValue]]


def _computed(one: Quantity, columns: Sequence[ShownAverage], attack: str) -> Part | None:
    """Return an average of the leaderboard, read by entry; None where it has none. An original has no attack."""
    column = next((column for column in columns if column.key == one.key), None)
    if column is None:
        return None
    called, is_attacked = ESTIMATORS.get(column.estimator, column.estimator), bool(attack) and one.key == EER
    called = ", ".join(filter(None, [called, attack if is_attacked else ""]))
    title, unit = one.title or column.metric.label, column.metric.unit
    quantity = replace(one, title=title, unit=unit, by=OBJECTIVE, how=called)

    def read(_: str, entry: entries.LeaderboardEntry | None) -> PanelValue:
        found = measured_of(entry, column) if entry else None
        if found is None:
            return PanelValue(quantity)
        is_original = is_attacked and entry is not None and entry.kind == "original"
        note = AttackModel.UNPROTECTED.value if is_original else ""
        made = PanelValue(quantity, found.value, found.low, found.high, is_reported=found.is_reported, note=note)
        return replace(made, attack=note or (attack if is_attacked else ""))

    return quantity, read


def _listeners(one: Quantity, results: Results, scores: str) -> Part | None:
    """Return a column of a table of the analysis, read by system; None where no such row has a number."""
    table = "common" if one.is_common else scores, one.table
    rows = results.records(*table, **one.rows)
    if not rows or (one.by == OBJECTIVE and all(row.get(one.column) is None for row in rows)):
        return None
    by_system = {row.get("system", row.get("condition")): row for row in rows}
    if one.of_original and (originals := results.records(*table, **one.of_original)):
        by_system[ORIGINAL] = originals[0]
    factor = 100.0 if one.unit == "%" else 1.0

    def read(heard: str, _: entries.LeaderboardEntry | None) -> PanelValue:
        row = by_system.get(heard, {})
        cells = [row.get(f"{one.column}{end}") for end in ("", "_low", "_high")]
        value, low, high = (factor * cell if isinstance(cell, (int, float)) else None for cell in cells)
        # Letters stand for the headline of their table alone.
        group = row.get("group", row.get("letters")) if one.column in ("mean", "eer", "value") else None
        is_unknown = value is None and heard == ORIGINAL and one.column == "eer"
        missing = (ONE_KIND_RATED if row else NOT_RATED) if is_unknown else ""
        return PanelValue(one, value, low, high, str(group or ""), note=missing)

    return one, read


# Utterance by utterance ----------------------------------------------------------------------------


CORRELATED = {"naturalness", "intelligibility", "1 − WER"}


def read_correlations(results: Results, scores: str) -> dict[str, Any]:
    """Return how ratings go with what a recogniser understood and with each other; empty where unknown."""
    rows = [
        row
        for row in results.records(scores, "correlations")
        if row["pearson"] is not None and {row["first"], row["second"]} <= CORRELATED
    ]
    if not rows:
        return {}
    printed = {one.pair: one for one in load_published_correlations("2022")}
    return {
        "rows": rows,
        "utterances": max(int(row["utterances"] or 0) for row in rows),
        "intelligibility": printed[frozenset({"intelligibility", "1 − WER"})],
        "naturalness": printed[frozenset({"naturalness", "1 − WER"})],
    }


@dataclass(frozen=True)
class StudyPanel:
    """A study on a page: its numbers, where its results are, whether only organizers see it yet.

    `has_links`: whether systems lead to their pages.
    """

    shown: Shown
    form: Study.Form
    is_preview: bool
    listeners: int
    comparison: ObjectiveComparison
    has_links: bool
    correlations: Mapping[str, Any]
    address: str
    notes: Sequence[str]

    @property
    def study(self) -> Study:
        return self.shown.study

    @property
    def cautions(self) -> list[str]:
        """Return the warnings and notes that stand beside the numbers."""
        return [*([self.comparison.reading] if self.comparison.is_in_doubt else []), *self.notes]

    @property
    def is_scored(self) -> bool:
        """Return whether its table rests on raw or on normalised scores, so that there is a switch."""
        return bool(self.comparison.scores)


def leaderboard_listeners(user: Any, leaderboard: Leaderboard, scores: str) -> dict[str, Any]:
    """Return objective beside subjective results, a table for each study; empty where there is none.

    Returns:
        `figure`: DET curves that stand beside those of the page (`components/figure.html`); `lowest`: by name of a
        system in which questions listeners found it the worst (label, study, count and questions).
    """
    studies = list(studies_on_leaderboard(user, leaderboard, scores))
    if not studies:
        return {}
    figures = (_listeners_det(one.shown, scores) for one in studies if not one.is_preview)
    figure = next((one for one in figures if one is not None), None)
    return _context(studies, scores) | {"figure": figure, "lowest": find_lowest(studies[0])}


def listeners_as_dict(user: Any, leaderboard: Leaderboard, scores: str) -> dict[str, Any]:
    """Return the same for JSON."""
    data = [
        {
            "study": one.study.name,
            "title": one.study.title,
            "form": one.form,
            "is_simulated": one.study.is_simulated,
            "is_preview": one.is_preview,
            "published_at": one.study.results_published_at.isoformat() if one.study.results_published_at else None,
            "scores": one.comparison.scores or None,
            "notes": [*one.notes, *([one.comparison.reading] if one.comparison.reading else [])],
            "systems": one.comparison.as_data(),
        }
        for one in studies_on_leaderboard(user, leaderboard, scores)
    ]
    return {"listeners": data} if data else {}


def find_lowest(panel: StudyPanel) -> dict[str, dict[str, Any]]:
    """Return by name the systems that have the lowest mean of a question in a study, with these questions.

    Of a question that fewer than three systems have a mean of, nothing is said.
    """
    found: dict[str, dict[str, Any]] = {}
    systems = [row for row in panel.comparison.rows if row.key]
    for place, quantity in enumerate(panel.comparison.quantities):
        means = [(value, row) for row in systems if (value := row.numbers[place].value) is not None]
        if quantity.table == "summary" and len(means) > 2:
            row = min(means, key=lambda pair: pair[0])[1]
            told = {"label": row.label, "study": panel.study, "count": len(means), "questions": []}
            found.setdefault(row.key, told)["questions"].append(quantity.title)
    return found


def system_listeners(
    user: Any, edition: Edition, submission: Submission, values: ObjectiveValues, scores: str, query: str = ""
) -> dict[str, Any]:
    """Return what listeners said of one system, beside its objective averages; empty where they said nothing.

    Args:
        query: of the address that leads to this version of the system.
    """
    policy, track = edition.policy, edition.ranked_track
    known = columns_of(edition)
    entry = make_entry(values, known, policy, track, **describe_system(submission))
    columns = select_shown(known, [entry])
    studies, figure = list[StudyPanel](), None
    for shown, heard in _heard_in(user, edition, {entry.key: entry}):
        if heard:
            address = reverse("studies:results", args=[shown.study.name])
            if shown.results.study["form"] != Study.Form.ANSWERS:  # where no page is about one system alone
                address = reverse("studies:results-system", args=[shown.study.name, heard[0].heard])
            evaluated = read_originals(edition, edition.frozen_at)
            original = make_original_entry([values], known, policy, edition.recipe, track, evaluated)
            comparison = compare_with_objective(shown.results, scores, columns, heard, original, policy.attack_model)
            panel = _make_panel(shown, scores, comparison, address, has_links=False)
            studies.append(panel)
            figure = figure or _joint_det(shown, scores, heard[0], submission, values, columns[0], query)
    return _context(studies, scores) | {"figure": figure} if studies else {}


def _joint_det(
    shown: Shown,
    scores: str,
    heard: Heard,
    submission: Submission,
    values: ObjectiveValues,
    column: ShownAverage,
    query: str,
) -> dict[str, Any] | None:
    """Return the figure of the DET curves of listeners and attackers; None where one of them is not known.

    Of the attackers the tests on the first data set with a number of the test by which the edition ranks.
    """
    rows, edition = shown.results.records(scores, "det", system=heard.heard), submission.system.edition
    if not rows or heard.is_outdated or edition is None:
        return None
    policy, sets = edition.policy, edition.recipe.data_sets
    privacy = policy.privacy
    known = {
        name: {
            attack: test
            for attack, test in tests.items()
            if values.number(privacy.metric, privacy.estimator, data_set=name, attack_model=AttackModel(attack))
        }
        for name, tests in group_curves(values.score_sets).items()
        if name in sets and sets[name].split == policy.split
    }
    name = next((name for name, tests in known.items() if policy.attack_model in tests), None)
    if name is None:
        return None
    task = rows[0]["task"]
    own = [row for row in rows if row["task"] == task and None not in (row["miss_rate"], row["false_alarm_rate"])]
    [rates] = shown.results.records(scores, "detection", system=heard.heard, task=task)
    words = "Simulated listeners" if shown.study.is_simulated else "Listeners"
    if rates["eer"] is not None:
        words += f": EER {fixed(100 * rates['eer'], 1)} %"
    listeners = {
        "words": words,
        "miss_rate": [row["miss_rate"] for row in own],
        "false_alarm_rate": [row["false_alarm_rate"] for row in own],
        "eer": rates["eer"],
        "least": (0.5 / max(rates["n_target"], 1), 0.5 / max(rates["n_nontarget"], 1)),
        "place": 0,
    }
    tests = []
    for place, (attack, test) in enumerate(known[name].items()):
        is_original = attack == AttackModel.UNPROTECTED
        label = f"attacker on original {name}" if is_original else f"{attack} attacker on {name}"
        counts = test.target_count, test.nontarget_count
        tests.append(ShownTest(label, test.key, *counts, place=None if is_original else place + 1))
    corpus = submission.system.corpus
    stamps = {SYNTHETIC: corpus is not None and corpus.is_synthetic, SIMULATED: shown.study.is_simulated}
    stamp = "\n".join(words for words, is_so in stamps.items() if is_so)
    drawing = Drawing(f"det-{shown.study.name}", column, tuple(tests), name, stamp=stamp, further=(listeners,))

    def address(extension: str, **form: str) -> str:
        start = f"{reverse('systems:det', args=[submission.system.name, extension])}{query or '?'}"
        return f"{start}{'&' if query else ''}{urlencode({'scores': scores} | form)}"

    title = f"DET curves of listeners and attackers, {shown.study.title}"
    return describe_figure(drawing, {"title": title, "alt": title, "drawing": drawing}, address)


def _listeners_det(shown: Shown, scores: str) -> dict[str, Any] | None:
    """Return the stored figure of the DET curves of listeners who compared voices; None where none is drawn."""
    task = next((one.key for one in shown.results.questions.values() if one.compares_voices), None)
    if task is None or shown.analysis is None:
        return None
    analysis, reader = shown.analysis, Reader(shown.study.name, scores, frozenset())
    drawn = shown_figures(analysis.results, reader, analysis.figures, analysis.fingerprint[:12], f"det-{task}")
    return {**drawn[0], "title": f"DET curves of listeners, {shown.study.title}"} if drawn else None


def studies_on_leaderboard(user: Any, leaderboard: Leaderboard, scores: str) -> Iterator[StudyPanel]:
    """Yield the studies that this person may see beside a leaderboard, with the systems that stand on it."""
    on_leaderboard = {entry.key: entry for entry in leaderboard.entries if entry.kind != "original"}
    original = next((entry for entry in leaderboard.entries if entry.kind == "original"), None)
    for shown, heard in _heard_in(user, leaderboard.edition, on_leaderboard):
        if heard:
            address = reverse("studies:results", args=[shown.study.name])
            of = leaderboard.columns, heard, original, leaderboard.policy.attack_model
            comparison = compare_with_objective(shown.results, scores, *of)
            yield _make_panel(shown, scores, comparison, address, has_links=True)


def _context(studies: list[StudyPanel], scores: str) -> dict[str, Any]:
    return {"studies": studies, "scores": scores, "has_switch": any(one.is_scored for one in studies)}


def _make_panel(
    shown: Shown, scores: str, comparison: ObjectiveComparison, address: str, *, has_links: bool
) -> StudyPanel:
    return StudyPanel(
        shown=shown,
        form=Study.Form(shown.results.study["form"]),
        is_preview=not shown.is_published,
        listeners=shown.results.counts.get("listeners", 0),
        comparison=comparison,
        has_links=has_links,
        correlations=read_correlations(shown.results, scores),
        address=address,
        notes=[*filter(None, [warn_of_few(shown.results)]), *list_notes(shown)],
    )


def _heard_in(user: Any, edition: Edition, entries: dict[str, Any]) -> Iterator[tuple[Shown, list[Heard]]]:
    """Yield each study that this person may see, with those of its systems that are asked for by their names."""
    studies = list_shown_analyses(user, edition)
    if not studies:
        return
    rows = Condition.objects.filter(study__in=[one.study for one in studies], submission__system__name__in=entries)
    rows = rows.exclude(submission__state=Submission.State.WITHDRAWN)  # an analysis without it has no page of it
    found: dict[int, list[Heard]] = {}
    for study, code, name, is_outdated in with_outdated(rows, edition).values_list(
        "study", "code", "submission__system__name", "is_outdated"
    ):
        found.setdefault(study, []).append(Heard(code, entries[name], is_outdated))
    for shown in studies:
        systems = found.get(shown.study.pk, [])
        yield shown, systems if any(one.table for one in _columns_of(shown.results)) else []
