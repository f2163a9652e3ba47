"""``vp results``: the numbers of a system, recomputed, and for its own team the reported ones beside."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from typing import Any

from common.errors import CommandError
from common.terminal import FINE, NONE, PROBLEMS, print_json, print_paragraph, print_table, print_text
from portal.client.api import Portal, add_server_arguments, open_portal

DESCRIPTION = (
    "Show every objective number of a system with its interval and what it rests on; of your own systems also what the "
    "submission reports, and whether that agrees."
)
AGREES = {True: "agrees", False: "DISAGREES", None: ""}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the command."""
    parser.add_argument("system", metavar="SYSTEM", help="name or label of a system, such as vpc2022-t11-p1 or T11-p1")
    parser.add_argument("--version", dest="wanted_version", type=int, metavar="N", help="another than the newest one")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--csv", action="store_true", help="every digit as CSV")
    form.add_argument("--json", action="store_true", help="every digit as JSON")
    add_server_arguments(parser)


def run(options: argparse.Namespace) -> int:
    """Ask and say; the exit code is 1 where a reported number disagrees with the recomputed one."""
    with open_portal(options.server) as portal:
        path = f"systems/{find_name(portal, options.system)}/values"
        query = {} if options.wanted_version is None else {"version": options.wanted_version}
        if options.csv:
            sys.stdout.write(portal.text(path, "text/csv", **query))
            return FINE
        values = portal.get(path, **query)
    if options.json:
        print_json(values)
        return FINE
    return _say_values(values)


def find_name(portal: Portal, wanted: str) -> str:
    """The name by which addresses know a system; where several editions have the label it must be the name.

    Raises:
        CommandError: there is no such system, or there are several.
    """
    systems = list(portal.every("systems/"))
    exact = [one["name"] for one in systems if one["name"] == wanted]
    found = exact or [one["name"] for one in systems if one["label"].casefold() == wanted.casefold()]
    if len(found) == 1:
        return str(found[0])
    if found:
        raise CommandError(f"{wanted}: several editions have it. Say which: {', '.join(found)}.")
    raise CommandError(f"{wanted}: there is no such system, or none that you may see. vp status lists your own.")


def _say_values(values: dict[str, Any]) -> int:
    print_text(f"{values['label']}, version {values['version']}, {values['edition'] or 'no edition'}")
    numbers = values["numbers"]
    if numbers:
        has_reported = any(number.get("reported") is not None for number in numbers)
        head = ("data set", "gender", "number", "attack", "value", "interval", "n", "rests on")
        print_table(head + (("reported", "") if has_reported else ()), [_row(one, has_reported) for one in numbers])
    elif not values["speech"]:
        print_text("No number could be computed." if values["measured_at"] else "No number has been computed yet.")
    if values["speech"]:
        print_text("\nMeasured on the audio")
        rows = [
            (one["data_set"], one["gender"], one["metric"], f"{one['value']:.4g}", one["unit"], f"{one['n']:,}")
            for one in values["speech"]
        ]
        print_table(("data set", "gender", "number", "value", "unit", "n"), rows)
    _say_missing(values.get("missing", ()))
    return PROBLEMS if any(number.get("agrees") is False for number in numbers) else FINE


def _say_missing(missing: Iterable[dict[str, Any]]) -> None:
    """What could not be computed, by reason."""
    by_reason: dict[str, list[str]] = {}
    for one in missing:
        by_reason.setdefault(one["reason"], []).append(one["what"])
    for reason, numbers in by_reason.items():
        print_paragraph(f"Missing ({len(numbers)}), because {reason}:")
        for number in numbers:
            print_paragraph(number, indent="  ")


def _row(number: dict[str, Any], has_reported: bool) -> tuple[str, ...]:
    interval = NONE if number["low"] is None else f"{number['low']:.4g} to {number['high']:.4g}"
    name = f"{number['metric']} ({number['estimator']})" if number["estimator"] else number["metric"]
    count = NONE if number["n"] is None else f"{number['n']:,}"
    value = number.get("category") or f"{number['value']:.4g}"
    attack = number["attack_model"] or NONE
    cells = (number["data_set"], number["gender"], name, attack, value, interval, count, number["basis"])
    if not has_reported:
        return cells
    reported = number.get("reported")
    shown = NONE if reported is None else number.get("reported_category") or f"{reported:.4g}"
    return (*cells, shown, AGREES[number.get("agrees")])
