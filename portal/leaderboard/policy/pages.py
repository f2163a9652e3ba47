"""What the pages of a policy show: the live one in words, and who would move by its draft."""

from __future__ import annotations

from typing import Any

from django.utils.html import format_html

from common.tables import Cell, Column, Table, plain_table
from evaluation.metrics.catalogue import find_metric
from evaluation.protocols.ranking.entries import RankingRow
from evaluation.protocols.ranking.policy import LeaderboardPolicy, condition_in_words, policy_in_words
from evaluation.protocols.ranking.ranking import ConditionMoves, Move, moves
from portal.challenges.models import Edition
from portal.leaderboard.selectors import load_entries, policy_by, rank_leaderboard
from portal.leaderboard.services import FROZEN
from portal.leaderboard.tables import place_in_words

ABSENT = "not in this condition"


def edited_policy(edition: Edition) -> LeaderboardPolicy:
    """What the form starts from: the draft, or the live policy where there is none."""
    return policy_by(edition, edition.draft_policy or edition.leaderboard_policy)


def policy_page(edition: Edition) -> dict[str, Any]:
    """Return the live policy in words, and what a draft would change on the leaderboard by the adopted recipe."""
    entries, measured_at = load_entries(edition)
    live = rank_leaderboard(edition, entries, measured_at, edition.leaderboard_policy)
    page: dict[str, Any] = {"edition": edition, "live": live, "live_words": policy_in_words(live.policy)}
    if not edition.draft_policy:
        return page
    draft = rank_leaderboard(edition, entries, measured_at, edition.draft_policy)
    before, after = page["live_words"], policy_in_words(draft.policy)
    changes = [_changes(found, live.policy, draft.policy) for found in moves(live.table, draft.table)]
    return page | {
        "draft": draft,
        "problem": FROZEN if edition.frozen_at else "",
        "dropped_words": [words for words in before if words not in after],
        "new_words": [words for words in after if words not in before],
        "changes": changes,
        "n_moves": sum(len(one["moves"]) for one in changes),
    }


def _changes(found: ConditionMoves, live: LeaderboardPolicy, draft: LeaderboardPolicy) -> dict[str, Any]:
    table, policy = (found.after, draft) if found.after else (found.before, live)
    upper = table.upper if table else None
    title = condition_in_words(found.minimum, upper, policy)
    utility = find_metric(table.utility.metric, table.utility.estimator).label if table else found.utility
    listed = [_move(one) for one in found.moves]
    return {
        "title": title,
        "utility": utility,
        "is_new": found.before is None,
        "is_gone": found.after is None,
        "moves": listed,
        "table": _moves_table(f"Who moves: {title}, by {utility}", listed),
        "unmoved": found.unmoved,
    }


def _moves_table(title: str, listed: list[dict[str, Any]]) -> Table | None:
    if not listed:
        return None
    heads = ("System", "Team", "Live", "Draft")
    rows = ([move["entry"].label, move["entry"].team_name, move["before"], _draft_cell(move)] for move in listed)
    return plain_table(title, (Column(head, head) for head in heads), rows, styles="strip")


def _draft_cell(move: dict[str, Any]) -> Cell:
    drawn = format_html('<span class="move" data-direction="{}">{}</span>', move["direction"], move["after"])
    return Cell(move["after"], drawing=drawn)


def _move(move: Move) -> dict[str, Any]:
    before, after = _place(move.before), _place(move.after)
    ranks = (move.before.rank if move.before else None, move.after.rank if move.after else None)
    direction = "up" if _height(ranks[1]) > _height(ranks[0]) else "down" if ranks[0] != ranks[1] else "same"
    return {"entry": move.entry, "before": before, "after": after, "direction": direction}


def _place(row: RankingRow | None) -> str:
    return ABSENT if row is None else place_in_words(row)


def _height(rank: int | None) -> float:
    return float("-inf") if rank is None else -rank
