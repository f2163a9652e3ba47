"""Who may see what of a study's results, one rule for page, CSV, JSON, figure, bundle and panel.

While a study is open nobody sees anything, its organizers neither. Of a closed one they see everything; everybody else
sees what is published, once the leaderboard of the edition, where there is one, is public too. Teams are no nearer to
it than anybody else, but for the utterances of their own systems. What names single listeners is only ever shown to the
organizers.
"""

from __future__ import annotations

import re
from dataclasses import replace
from enum import StrEnum

from common.tables import DataTable
from listening.analysis.tables import ABOUT_LISTENERS, ABOUT_UTTERANCES, EFFECTS, Results
from portal.submissions.rules import Relation

FEWEST_PEOPLE = 3  # of two, who knows their own answers can tell the other's
STANDING = "standing"  # among rules: all exclusions in force
KEY = re.compile(r"\b[0-9a-f]{16}\b")  # as `inputs` calls people and sessions


class ResultsPart(StrEnum):
    """What there is to see of results."""

    RESULTS = "results"  # figures and tables over many listeners
    UTTERANCES = "utterances"  # tables of single utterances, and their audio
    LISTENERS = "listeners"  # tables of single listeners
    BUNDLE = "bundle"  # ratings, settings and figures in one file


def may_see(part: ResultsPart, relation: Relation, *, is_published: bool) -> bool:
    """Return whether somebody in this relation may see this part of a closed study's results.

    Args:
        relation: organizer; member of a team whose system was heard; anybody else.
        is_published: whether results and leaderboard are public.
    """
    if relation is Relation.ORGANIZER:
        return True
    if part is ResultsPart.RESULTS:
        return is_published
    return part is ResultsPart.UTTERANCES and relation is Relation.TEAM and is_published


def part_of_table(name: str) -> ResultsPart:
    """Return to which part a table belongs. Of those about utterances a team may see the rows of its own systems."""
    if name in ABOUT_LISTENERS:
        return ResultsPart.LISTENERS
    return ResultsPart.UTTERANCES if name in ABOUT_UTTERANCES else ResultsPart.RESULTS


def warn_of_few(results: Results) -> str:
    """Return that listeners are fewer than an interval needs, so that no system is called better; else empty."""
    listeners, fewest = results.counts.get("listeners", 0), int(results.settings.get("least_clusters") or 0)
    compared = "conditions" if results.is_crossed else "systems"
    return f"Too few listeners ({listeners}) to compare {compared}." if listeners < fewest else ""


def rows_for_everybody(table: DataTable) -> DataTable:
    """Return a table of results without the rows that are for organizers.

    Of what leaving listeners out changes these are all but the standing exclusions: other rules may catch one listener,
    whose mean follows from the means and numbers of ratings before and after.
    """
    if table.name not in EFFECTS:
        return table
    place = table.columns.index("rule")
    return replace(table, rows=tuple(row for row in table.rows if row[place] == STANDING))


def notes_on_nobody(results: Results) -> tuple[str, ...]:
    """Return the notes that name no listener: neither one of the tables nor any other by a key."""
    tables = [table for table in results.tables.values() if "listener" in table.columns]
    tokens = {str(token) for table in tables for token in table.values("listener")}
    return tuple(
        note for note in results.remarks if not KEY.search(note) and not any(token in note for token in tokens)
    )
