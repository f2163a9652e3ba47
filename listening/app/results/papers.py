"""What listeners said here beside the results paper of 2022: its figures 6 and 8, with a reference and colours that a
reader chooses, and its correlations beside those of a study.

A section of the page of published results. It shows the studies that this person may see results of, as the leaderboard
does; the files of its figures are drawn when they are asked for, and kept by what they show.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlencode

from django.http import Http404, HttpResponse, QueryDict
from django.urls import reverse

from common.rounding import fixed, round_to_interval
from common.tables import Cell, Column, Table, plain_table
from evaluation.figures.json_figures import describe_plot
from evaluation.figures.style import ImageFormat, Theme
from evaluation.protocols.published import PublishedCorrelation, load_published_correlations
from listening.analysis.figures.labels import sentence
from listening.analysis.figures.papers import MOST_COLOURS, PAIRS, list_paper_figures, name_measure
from listening.analysis.figures.view import SIMULATED, Figure, View
from listening.analysis.reading.inputs import ORIGINAL
from listening.app.results.figures import FORMATS, list_numbers
from listening.app.results.labels import ORIGINAL_LABEL, SCORES, label_of
from listening.app.results.pages import chosen_scores
from listening.app.results.selectors import Shown, list_shown_analyses, shown_analysis_for
from portal.core.panels import Panel
from portal.core.signed_urls import CONTENT_TYPES, secured
from portal.leaderboard.figures import draw_file, figure_key

PAPER = "2022"
RATING = "rating"
FIGURE_S = 300  # a browser may keep a figure so long; its address changes with what it shows
USUAL_COLOURS = 5  # as many systems as figure 8 of the paper has
DIGITS = 2


@dataclass(frozen=True)
class PaperChoice:
    """What a reader asked for. `reference`: of figure 6; `coloured`: systems of figure 8."""

    shown: Shown
    scores: str
    reference: str
    coloured: tuple[str, ...]
    labels: dict[str, str] = field(default_factory=dict)

    @property
    def query(self) -> list[tuple[str, str]]:
        return [("reference", self.reference), *(("colour", one) for one in self.coloured)]

    def list_figures(self) -> list[Figure]:
        printed = {one.pair: one.pearson for one in load_published_correlations(PAPER)}
        scores: Any = self.scores
        return list_paper_figures(self.shown.results, scores, self.reference, self.coloured, printed)


@dataclass(frozen=True)
class PaperDrawing:
    """A figure as the process that draws it reads it."""

    figure: Figure

    def description(
        self,
        image_format: ImageFormat = "svg",
        theme: Theme = "light",
        *,
        narrow: bool = False,  # noqa: ARG002 (one shape for all screens)
    ) -> str:
        plot: Any = self.figure.plot
        words = {"title": self.figure.title, "description": self.figure.alt}
        stamp = SIMULATED if self.figure.is_simulated else ""
        return describe_plot(plot, theme=theme, image_format=image_format, stamp=stamp, **words)


def papers_panel(request: Any, choice: Any) -> Panel | None:
    """The correlations of the paper, and figures 6 and 8 of a study of the edition that is laid over.

    Args:
        choice: a `portal.leaderboard.published_results.pages.PublishedChoice`.
    """
    printed = load_published_correlations(choice.task.recipe.edition)
    found = list_shown_analyses(request.user, choice.edition) if choice.edition else []
    studies = [one.study for one in found if one.study.form == RATING]
    if not studies and not printed:
        return None
    context: dict[str, Any] = {
        "is_of_paper": bool(printed),
        "edition": choice.edition,
        "studies": studies,
        "fields": parse_qsl(choice.query),
        "scores_choices": SCORES.items(),
        "most_colours": MOST_COLOURS,
    }
    paper = None
    if studies:
        name = next((one.name for one in studies if one.name == request.GET.get("study")), studies[0].name)
        paper = _read_choice(shown_analysis_for(request.user, name), request.GET)
        context |= _study_context(paper)
    context["correlations"] = _correlations(load_published_correlations(PAPER), paper)
    return Panel("papers", "listening/results/_papers_panel.html", context)


def figure_file(shown: Shown, scores: str, name: str, extension: str, query: QueryDict) -> HttpResponse:
    """A drawn figure, or "not found".

    Raises:
        DrawingError: it is not drawn just now.
    """
    if shown.analysis is None or shown.study.form != RATING or scores not in SCORES:
        raise Http404
    choice = _read_choice(shown, query, scores)
    drawing = next((PaperDrawing(one) for one in choice.list_figures() if one.name == name), None)
    content = draw_file(drawing, extension, query.get("theme", "light"))
    response = secured(HttpResponse(content, content_type=CONTENT_TYPES[f".{extension}"]), FIGURE_S)
    response["Content-Disposition"] = f'inline; filename="{shown.study.name}-{scores}-{name}.{extension}"'
    return response


def _read_choice(shown: Shown, query: QueryDict, scores: str = "") -> PaperChoice:
    """What an address asks for; whatever it names that is not there is as if it were not named."""
    view = View(shown.results)
    scores = scores or chosen_scores(query)
    rated: Any = scores
    rows = (row for name in ("summary", "utterances") for row in view.rows(rated, name))
    present = {str(row["system"]) for row in rows}
    names = [name for name in view.names if name in present]
    systems = sorted((name for name in names if name != ORIGINAL), key=lambda one: view.labels[one])
    wanted = [one for one in query.getlist("colour") if one in systems]
    reference = query.get("reference", "")
    known = names or [ORIGINAL]
    usual = ORIGINAL if ORIGINAL in known else known[0]
    labels = {one: label_of(one, view.labels) if one != ORIGINAL else ORIGINAL_LABEL for one in (*names, usual)}
    coloured = tuple(dict.fromkeys(wanted))[:MOST_COLOURS] or tuple(systems[:USUAL_COLOURS])
    return PaperChoice(shown, scores, reference if reference in known else usual, coloured, labels)


def _study_context(paper: PaperChoice) -> dict[str, Any]:
    figures = [_shown_figure(paper, one) for one in paper.list_figures()]
    study = paper.shown.study
    return {
        "study": study,
        "is_preview": not paper.shown.is_published,
        "address": f"{reverse('studies:results', args=[study.name])}?{urlencode({'scores': paper.scores})}",
        "scores": paper.scores,
        "references": [(name, label, name == paper.reference) for name, label in paper.labels.items()],
        "colours": [(name, label, name in paper.coloured) for name, label in paper.labels.items() if name != ORIGINAL],
        "coloured": paper.coloured,
        "figures_6": [one for one in figures if one["name"].startswith("violin")],
        "figures_8": [one for one in figures if one["name"].startswith("colours")],
    }


def _shown_figure(paper: PaperChoice, figure: Figure) -> dict[str, Any]:
    """A figure as `components/figure.html` takes it."""
    mark = figure_key(PaperDrawing(figure).description(), "svg").rpartition("/")[2][:12]

    def address(extension: str, **more: str) -> str:
        arguments = [paper.shown.study.name, paper.scores, figure.name, extension]
        url = reverse("studies:results-paper-figure", args=arguments)
        return f"{url}?{urlencode([*paper.query, *({'v': mark} | more).items()])}"

    return {
        "name": figure.name,
        "title": figure.title,
        "alt": figure.alt,
        "size": figure.size,
        "caption": figure.reading,
        "method": figure.caption,
        "image": address("svg"),
        "dark": address("svg", theme="dark"),
        "numbers": list_numbers(figure),
        "downloads": [{"url": address(one), "label": one.upper()} for one in FORMATS],
    }


def _correlations(printed: Sequence[PublishedCorrelation], paper: PaperChoice | None) -> Table:
    """What the paper prints of each pair, beside what the study has."""
    here = {}
    if paper is not None:
        rows = paper.shown.results.records(paper.scores, "correlations")
        here = {frozenset({name_measure(row["first"]), name_measure(row["second"])}): row for row in rows}
    columns = [Column("pair", "Of each utterance"), Column("printed", "VoicePrivacy 2022", kind="num")]
    if paper is not None:
        simulated = "simulated" if paper.shown.study.is_simulated else ""
        columns += [Column("here", "This study", kind="num", note=simulated)]
        columns += [Column("utterances", "Utterances", kind="num")]
    by_pair = {one.pair: one for one in printed}
    lines: list[tuple[Cell | str, ...]] = []
    for first, second in PAIRS:
        pair = frozenset({first, second})
        one, row = by_pair.get(pair), here.get(pair)
        cells = (f"{sentence(first)} and {second}", fixed(one.pearson, DIGITS) if one else "")
        if paper is None:
            lines.append(cells)
            continue
        value, low, high = (row[name] for name in ("pearson", "pearson_low", "pearson_high")) if row else (None,) * 3
        if row is None or not isinstance(value, float):
            lines.append((*cells, Cell(), Cell()))
            continue
        text, span = round_to_interval(value, low, high, DIGITS)
        lines.append((*cells, Cell(text, span, value=value), str(row["utterances"])))
    caption = "Pearson; of the paper over five systems, of a study over all."
    return plain_table("Correlations", columns, lines, caption=caption, styles="strip", missing="–")
