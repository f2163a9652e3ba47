"""Queries and processor time of leaderboard and results with 40 systems and 1,000 sessions of a listening test."""

from __future__ import annotations

import sys
from time import process_time
from typing import Any

from benchmarks._measuring import Figure, measure_least_seconds, open_portal, report

QUERIES, SECONDS = 19, 0.3  # fewer than 20


def main() -> int:
    with open_portal():
        from django.urls import reverse

        from tests.portal.large_challenge import LargeChallenge, Size, clients

        grown = LargeChallenge(Size(utterances=6000, jobs=500, files=150))
        grown.close_study()
        pages = {
            "leaderboard": reverse("leaderboard:detail", args=[grown.edition.name]),
            "results of a system": reverse("systems:detail", args=[grown.system.name]),
            "results of a listening test": reverse("studies:results", args=[grown.study.name]),
        }
        [(_, client)] = clients(grown, ["organizer"])
        return report(*(figure for what, address in pages.items() for figure in measure_page(what, client, address)))


def measure_page(what: str, client: Any, address: str) -> tuple[Figure, Figure]:
    """Return the queries and the processor time of one request."""
    from tests.portal.large_challenge import count_queries

    assert client.get(address).status_code == 200, address  # what is kept for all requests is there from now on
    with count_queries() as count:
        client.get(address)
    [seconds] = measure_least_seconds(lambda: client.get(address), clock=process_time)
    page = f"Page with 40 systems, 1,000 sessions: {what}"
    return Figure(page, count(), QUERIES, "queries"), Figure(page, seconds, SECONDS, "s")


if __name__ == "__main__":
    sys.exit(main())
