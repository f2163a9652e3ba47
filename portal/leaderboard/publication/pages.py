"""What the pages of publication and of freezing show: who stands on the leaderboard, and who would as of a time."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from datetime import datetime
from typing import Any

from evaluation.protocols.ranking.policy import condition_in_words
from portal.challenges.models import Edition
from portal.leaderboard.pages import leaderboard_page
from portal.leaderboard.selectors import build_leaderboard, rank_leaderboard, submissions_on_leaderboard
from portal.submissions.models import Submission
from portal.submissions.pages import UNDER_WAY
from portal.submissions.selectors import STOPPED, count_offered, count_released


def publish_page(edition: Edition) -> dict[str, Any]:
    """Who stands on the leaderboard, for the question whether to publish or freeze it."""
    leaderboard = build_leaderboard(edition)
    systems = [entry for entry in leaderboard.entries if entry.kind == "system"]
    standing = submissions_on_leaderboard(edition)
    return {
        "edition": edition,
        "leaderboard": leaderboard,
        "n_offered": count_offered(standing),
        "n_released": count_released(standing) if edition.published_at else 0,
        "n_systems": len(systems),
        "n_baselines": sum(entry.kind == "baseline" for entry in leaderboard.entries),
        "has_original": any(entry.kind == "original" for entry in leaderboard.entries),
        "n_under_way": Submission.objects.filter(system__edition=edition, state__in=UNDER_WAY).exclude(STOPPED).count(),
        "teams": sorted({entry.team_name for entry in systems}),
        "heard": _published_tests(edition),
        "n_ranked": len({row.entry.key for table in leaderboard.table.tables for row in table.ranked}),
    }


def again_page(edition: Edition, query: Mapping[str, str]) -> dict[str, Any]:
    """Return the leaderboard as it would be published again, by the recipe of now.

    Args:
        query: of the address, as the page of the leaderboard takes it.
    """
    if edition.recipe_changed_at is None:
        return {"edition": edition}
    page = leaderboard_page(rank_leaderboard(edition), query, with_figures=False)
    page["changes"] = [one for one in page["changes"] if one.is_pending]
    entries = [one for one in page["leaderboard"].entries if one.kind != "original"]
    page["unmeasured"] = [one.label for one in entries if one.privacy is None and not one.utilities]
    return page


def _published_tests(edition: Edition) -> str:
    """Return the listening tests whose published results are public only while the leaderboard is, as words; else
    empty."""
    tests = edition.studies.filter(results_published_at__isnull=False).order_by("results_published_at", "pk")
    return " and ".join(f"“{title}”" for title in tests.values_list("title", flat=True))


def freeze_page(edition: Edition, at: datetime | None) -> dict[str, Any]:
    """Who stands on the leaderboard, and once a time is chosen, what it would hold as of then."""
    page = publish_page(edition)
    if at is None:
        return page
    frozen = copy(edition)
    frozen.frozen_at = at
    preview = publish_page(frozen)
    leaderboard = preview["leaderboard"]
    preview["tables"] = [
        {"title": condition_in_words(one.minimum, one.upper, leaderboard.policy), "rows": one.ranked}
        for one in leaderboard.table.tables
    ]
    standing = {entry.key for entry in preview["leaderboard"].entries if entry.kind == "system"}
    gone = [entry for entry in page["leaderboard"].entries if entry.kind == "system" and entry.key not in standing]
    return page | {"at": at, "preview": preview, "gone": gone}
