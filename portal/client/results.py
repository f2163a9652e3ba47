"""``vp results``: the numbers of a system, recomputed, and for its own team the reported ones beside."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Annotated, Any

from typer import Argument, Option

from common.errors import CommandError
from common.parameters import require_one
from common.rounding import fixed, round_to_interval
from common.terminal import FINE, NONE, PROBLEMS, print_json, print_paragraph, print_table, print_text
from evaluation.metrics.catalogue import find_metric
from portal.client.api import Portal, Server, open_portal
from portal.client.status import HOW_NAMED, WHOSE, find_submission

WITHDRAWN = ": withdrawn"
AVERAGE = "average"  # begins the names of weighted averages
DECIMALS_OF_UNKNOWN = 4  # of a metric that this program does not know
AGREES = {True: "agrees", False: "DISAGREES", None: ""}


def show_results(
    system: Annotated[str, Argument(metavar="SYSTEM", help=f"{HOW_NAMED}, or number of a submission.")],
    version: Annotated[int | None, Option(metavar="N", help="Version, by default the newest.")] = None,
    shows_all: Annotated[bool, Option("--all", help="Every measure, and from what it was computed.")] = False,
    csv: Annotated[bool, Option("--csv", help="All numbers with every digit, as CSV.")] = False,
    as_json: Annotated[bool, Option("--json", help="All numbers with every digit, as JSON.")] = False,
    server: Server = None,
) -> int:
    """Show the objective numbers of a system: averages first, then those of each data set.

    Each has its unit, condition and interval; of your own systems also what the submission reports, and whether that
    agrees. The exit code is 1 where a reported number disagrees with the recomputed one.

        vp results T11-p1
        vp results vpc2022-t11-p1 --version 2 --csv
    """
    require_one({"--all": shows_all, "--csv": csv, "--json": as_json}, is_required=False)
    with open_portal(server) as portal:
        query = {} if version is None else {"version": version}
        if system.isdecimal():
            submission = find_submission(portal, system)
            name, query = submission["system"], {"version": submission["version"]} | query
        else:
            name = find_name(portal, system)
        path = f"systems/{name}/values"
        if csv:
            sys.stdout.write(portal.text(path, "text/csv", **query))
            return FINE
        values = portal.get(path, **query)
    if as_json:
        print_json(values)
        return FINE
    return _say_values(values, shows_all=shows_all)


def find_name(portal: Portal, wanted: str) -> str:
    """Return the name by which addresses know a system; where several editions have the label it must be the name.

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
    raise CommandError(f"{wanted}: there is no such system, or none that you may see. {WHOSE}")


def _say_values(values: dict[str, Any], *, shows_all: bool) -> int:
    state = f": {values['state']}" if values.get("state") else ""  # an older portal says neither this nor a summary
    print_text(f"{values['label']}, version {values['version']}, {values['edition'] or 'no edition'}{state}")
    for sentence in values.get("summary", ()):
        print_paragraph(sentence)
    later = "" if state == WITHDRAWN else " yet"
    numbers = values["numbers"]
    if numbers:
        averages = [one for one in numbers if one["data_set"].startswith(AVERAGE)]
        averaged = {(one["metric"], one["estimator"]) for one in averages}
        of_sets = [one for one in numbers if not one["data_set"].startswith(AVERAGE)]
        shown = [
            one
            for one in of_sets
            if shows_all or (one["metric"], one["estimator"]) in averaged or one.get("agrees") is False
        ]
        for title, rows in (("Weighted averages", averages), ("By data set", shown)):
            _print_numbers(title, rows, shows_all=shows_all)
        for note in dict.fromkeys(one["note"] for one in (*averages, *shown) if one.get("note")):
            marked = (one for one in (*averages, *shown) if one.get("note") == note)
            print_paragraph(f"\n* {'; '.join(dict.fromkeys(_test_of(one) for one in marked))}: {note}.")
        if len(shown) < len(of_sets):
            print_paragraph(f"\n{len(of_sets) - len(shown)} more numbers: --all shows them, --csv has every digit.")
    elif not values["speech"]:
        print_text("No number could be computed." if values["measured_at"] else f"No number has been computed{later}.")
    if values["speech"]:
        print_text("\nMeasured on the audio")
        rows = [
            (one["data_set"], one["gender"], _measure(one), _plain(one), f"{one['n']:,}") for one in values["speech"]
        ]
        print_table(("data set", "gender", "measure", "value", "n"), rows)
    if values["measured_at"] or not values["speech"]:
        _say_missing(values.get("missing", ()))
    else:
        print_text(f"\nNo other number has been computed{later}.")
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


def _print_numbers(title: str, numbers: Sequence[dict[str, Any]], *, shows_all: bool) -> None:
    """A table of numbers: of which set, what with its unit, under which condition; originals are told from others."""
    if not numbers:
        return
    has_reported = any(number.get("reported") is not None for number in numbers)
    head: tuple[str, ...] = ("data set", "gender", "measure", "condition", "value", "95 % interval", "n")
    head += (("rests on",) if shows_all else ()) + (("reported", "") if has_reported else ())
    print_text(f"\n{title}")
    print_table(head, [_row(one, has_reported=has_reported, shows_all=shows_all) for one in numbers])


def _label_and_decimals(number: dict[str, Any]) -> tuple[str, int]:
    """Of a metric; one that is newer than this program is shown by its key."""
    try:
        metric = find_metric(number["metric"], number["estimator"])
    except LookupError:
        by = f" ({number['estimator']})" if number["estimator"] else ""
        return f"{number['metric']}{by}", DECIMALS_OF_UNKNOWN
    return metric.label, metric.decimals


def _measure(number: dict[str, Any]) -> str:
    """Such as ``EER (Kaldi), %``."""
    label, _ = _label_and_decimals(number)
    return f"{label}, {number['unit']}" if number["unit"] else label


def _plain(number: dict[str, Any], which: str = "value") -> str:
    """Return a number without an interval; never with an exponent, as no page has one."""
    text = f"{number[which]:.4g}"
    return fixed(number[which], _label_and_decimals(number)[1]) if "e" in text else text


def _test_of(number: dict[str, Any]) -> str:
    return ", ".join(filter(None, (number["data_set"].replace("_", " "), number["attack_model"])))


def _row(number: dict[str, Any], *, has_reported: bool, shows_all: bool) -> tuple[str, ...]:
    _, decimals = _label_and_decimals(number)
    unit = number["unit"] if number["is_recomputed"] else None
    value, interval = round_to_interval(number["value"], number["low"], number["high"], decimals, unit)
    condition = number["attack_model"] or (f"{number['speech']} speech" if number["speech"] else NONE)
    count = NONE if number["n"] is None else f"{number['n']:,}"
    if number["data_set"].startswith(AVERAGE) and number["n"]:
        count += " set" if number["n"] == 1 else " sets"
    of = number["data_set"].replace("_", " ") if number["data_set"].startswith(AVERAGE) else number["data_set"]
    cells: tuple[str, ...] = (
        of,
        number["gender"],
        _measure(number),
        condition,
        (number.get("category") or value) + ("*" if number.get("note") else ""),
        interval or NONE,
        count,
    )
    cells += (number["basis"],) if shows_all else ()
    if not has_reported:
        return cells
    reported = number.get("reported")
    shown = NONE if reported is None else number.get("reported_category") or _plain(number, "reported")
    return (*cells, shown, AGREES[number.get("agrees")])
