"""Photograph every page of a running portal, check each, and make contact sheets.

The folder gets `pages/` and `sheets/` with pictures, `report.csv` with a line for each picture, and `summary.txt`.
"""

from __future__ import annotations

import argparse
import csv
import os
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from tests.photographs.taking import Look

RULES = {
    "taller than its limit": lambda look: [f"{look.height} px"] if look.is_too_tall else [],
    "scrolls sideways": lambda look: look.sideways[:1],
    "axe": lambda look: look.axe,
    "console": lambda look: look.console,
    "content security policy": lambda look: look.csp,
    "other hosts": lambda look: look.hosts,
    "failed": lambda look: look.failed,
}
OF_ONE_PAGE = ("taller than its limit", "scrolls sideways")
LONGEST = 300  # characters of what is told of one problem


def say(text: str) -> None:
    print(text, flush=True)


def read_arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.photographs", description=__doc__)
    parser.add_argument("--portal", required=True, metavar="URL", help="address of the running portal")
    parser.add_argument("--data", required=True, type=Path, metavar="FOLDER", help="its data folder, to log in")
    parser.add_argument("--to", required=True, type=Path, metavar="FOLDER", help="where the pictures go")
    parser.add_argument("--browsers", type=int, default=2, help="how many work at a time")
    parser.add_argument("--most", type=int, default=3, help="objects of each address pattern at most")
    parser.add_argument(
        "--only", nargs="+", default=(), metavar="TEXT", help="pages whose pattern (editions:new) or address has it"
    )
    return parser.parse_args(given)


def write_report(file: Path, looks: Iterable[Look]) -> None:
    from tests.photographs.taking import Look

    with file.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        names = [one.name for one in fields(Look)]
        writer.writerow(names)
        for look in looks:
            values = [getattr(look, name) for name in names]
            writer.writerow(["; ".join(value) if isinstance(value, list) else value for value in values])


def summarize(looks: Sequence[Look], missing: Sequence[str], seconds: float) -> str:
    """Counts, then by rule what breaks it: each problem once, with the pages that have it."""
    pages = {(look.number, look.state) for look in looks}
    lines = [
        f"{len({look.number for look in looks})} pages with {len(pages)} states, {len(looks)} looks, {seconds:.0f} s",
        f"by role: {dict(Counter(role for _, role in {(look.number, look.role) for look in looks}))}",
    ]
    if missing:
        lines.append(f"without an object in this portal, or for nobody to see: {', '.join(missing)}")
    for rule, find in RULES.items():
        met: dict[str, list[str]] = {}
        for look in looks:
            where = " ".join(filter(None, [str(look.number), look.address, look.role, look.state, str(look.width)]))
            for problem in dict.fromkeys(find(look)):
                words = f"{where}: {problem}" if rule in OF_ONE_PAGE else problem
                met.setdefault(words[:LONGEST], []).append(f"{where} {look.theme}")
        lines += ["", f"{rule}: {len(met) or 'nothing'}"]
        for words, places in met.items():
            lines.append(f"  {words}")
            if rule not in OF_ONE_PAGE:
                lines += [f"    {place}" for place in places[:5]] + [f"    and {len(places) - 5} more"][
                    : len(places) > 5
                ]
    return "\n".join(lines) + "\n"


def main() -> None:
    options = read_arguments()
    if not (options.data / "secret_key").is_file():
        sys.exit(f"{options.data} is not the data folder of a portal: it has no secret_key.")
    started = time.monotonic()
    # Before the settings are read.
    os.environ |= {"PORTAL_DATA_DIR": str(options.data), "DJANGO_SETTINGS_MODULE": "portal.config.settings"}
    import django

    django.setup()
    from tests.photographs import finding, sheets, states, taking

    portal = "{0.scheme}://{0.netloc}".format(urlsplit(options.portal))
    people = finding.list_people(options.most)
    sessions = {role: finding.log_in(user) for role, user in people.items() if user}
    cookies = {role: sessions[role].session_key or "" if role in sessions else "" for role in people}

    def tell(looks: list[taking.Look], waiting: int) -> None:
        """Keep what is known, in case that this ends early."""
        (options.to / "summary.txt").write_text(summarize(looks, (), time.monotonic() - started), encoding="utf-8")
        write_report(options.to / "report.csv", looks)
        say(f"{len(looks)} looks, {waiting} pages are waiting")

    try:
        is_wanted = lambda *words: not options.only or any(one in word for one in options.only for word in words)  # noqa: E731
        addresses = [one for one in finding.list_addresses(options.most) if is_wanted(*one)]
        pages, answers = finding.find_pages(portal, cookies, addresses)
        say(f"{len(addresses)} addresses, {len(pages)} different pages")
        found: list[tuple[str, str, str, states.Act | None]]
        found = [(page.pattern, page.address, page.role, None) for page in pages]
        found += [one for one in states.list_states(pages, portal) if is_wanted(*one[:2])]
        tasks = [taking.Shot(number, *one) for number, one in enumerate(found, 1)]
        for name in ("pages", "sheets"):
            (options.to / name).mkdir(parents=True, exist_ok=True)
        looks = taking.photograph_all(
            tasks, portal=portal, cookies=cookies, folder=options.to / "pages", browsers=options.browsers, tell=tell
        )
    finally:
        for session in sessions.values():
            session.delete()
    looks += [
        taking.Look(0, one.pattern, one.address, one.role, "", status=one.status, failed=[str(one.status)])
        for one in answers
        if one.status >= 500
    ]
    write_report(options.to / "report.csv", looks)
    made = sheets.make_sheets(looks, options.to / "pages", options.to / "sheets")
    known = {look.pattern for look in looks} | {one.pattern for one in answers if one.status == 405}
    names = [one.name for one in finding.list_patterns() if one.is_visited and is_wanted(one.name)]
    summary = summarize(looks, [name for name in names if name not in known], time.monotonic() - started)
    (options.to / "summary.txt").write_text(summary, encoding="utf-8")
    say(f"{summary}\n{made} sheets; all is in {options.to}")


if __name__ == "__main__":
    main()
