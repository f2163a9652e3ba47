"""Sections that an app adds to pages and files of apps below it, which know nothing of it.

A leaderboard's page shows what listeners said of its systems, but results must not import listening tests: so the app
above names, when it is ready, the function that makes its section, and the page asks for what there is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from django.utils.module_loading import import_string

Place = Literal["leaderboard", "system", "edition"]
_makers: dict[Place, list[str]] = {}


@dataclass(frozen=True)
class Panel:
    """A section for one reader.

    Attributes:
        name: of its part in JSON files.
        template: what the page includes, with `panel`, this one.
        context: what the template shows.
        data: the same for files, plain; None where files have none.
        figure: DET curves that stand beside those of the page (`components/figure.html`); None for none.
        lowest: of a leaderboard, by name of a system in which questions listeners found it the worst (label, study,
            count and questions).
    """

    name: str
    template: str
    context: Mapping[str, Any] = field(default_factory=dict)
    data: Any = None
    figure: Mapping[str, Any] | None = None
    lowest: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def add_panel(place: Place, maker: str) -> None:
    """Add a section to a page.

    Args:
        maker: dotted name of a function, imported when it is first needed. It takes the request, whose user and query
            decide what is shown, and what the page is about (a `portal.leaderboard.selectors.Leaderboard`, the
            `portal.systems.selectors.SystemNumbers` of a system, an `Edition`), and gives a `Panel`, or None for none.
    """
    _makers.setdefault(place, []).append(maker)


def make_panels(place: Place, request: Any, subject: Any) -> list[Panel]:
    """The sections that this reader sees on a page, in the order in which they were added."""
    made = (import_string(maker)(request, subject) for maker in _makers.get(place, ()))
    return [one for one in made if one is not None]


def panel_data(place: Place, request: Any, subject: Any) -> dict[str, Any]:
    """The same for a file, by the names of the sections."""
    return {one.name: one.data for one in make_panels(place, request, subject) if one.data is not None}
