"""What was measured of the methods: read, shown and documented as it stands in the file."""

import itertools
import re
from dataclasses import replace
from pathlib import Path

import pytest
from django.conf import settings

from anonymization.cli.listing import method_as_dict
from anonymization.methods.contract import keeps_duration
from anonymization.methods.measured import find_measured, reaches_voice, read_measurements, wilson_interval
from anonymization.methods.registry import get_method, methods
from common.rounding import fixed
from portal.systems.anonymization.charts import list_measured


def document_rows(found):
    """The lines of the table in docs/methods.md, that of the original speech first."""
    heads = found.heads
    lines = [f"| {' | '.join(['method', *heads])} |", "| --- |" + " ---: |" * len(heads)]
    rows = {"original speech": found.original, "copies by HiFi-GAN": found.copied}
    for name, one in found.methods.items():
        marks = ", ".join(found.find_shortfalls(one))
        rows[f"`{name}` ({marks})" if marks else f"`{name}`"] = one
    for name, one in rows.items():
        cells = (f"{cell.text} ({cell.interval})" if cell.interval else cell.text for cell in found.row(one))
        lines.append(f"| {' | '.join([name, *cells])} |")
    return lines


SLOTS = ("content", "voice", "prosody", "synthesis")


def document_recipes(recipes):
    """The lines of the table of recipes in docs/methods.md, as table III of the results paper of 2022: the parts of
    each method that is put together of some, and the state of each part."""
    lines = [f"| {' | '.join(['recipe', 'fidelity', *SLOTS, 'duration'])} |", "| --- |" + " --- |" * (len(SLOTS) + 2)]
    for method in recipes:
        parts = {part.slot: f"{part.title} ({part.state})" for part in getattr(method, "pipeline", ())}
        if parts:
            kept = "kept" if keeps_duration(method) else "another"
            cells = [
                f"`{method.name}`",
                getattr(method, "fidelity", ""),
                *(parts.get(slot, "–") for slot in SLOTS),
                kept,
            ]
            lines.append(f"| {' | '.join(cells)} |")
    return lines


def test_documentation_has_the_numbers_that_were_measured():
    page = Path(settings.BASE_DIR, "docs", "methods.md").read_text()
    found = read_measurements()
    for line in document_rows(found):
        assert line in page, line
    for told in (found.date, found.speech, found.acceptance_speech, found.trained, *found.recognizers, *found.encoders):
        assert told in page, told


def test_documentation_and_list_have_the_parts_of_each_recipe():
    page = Path(settings.BASE_DIR, "docs", "methods.md").read_text()
    lines = document_recipes(methods())
    assert "\n".join(lines) in page
    recipes = [method for method in methods() if getattr(method, "pipeline", ())]
    assert len(lines) == len(recipes) + 2
    for method in recipes:
        told = method_as_dict(method)
        is_as_published = method.name.startswith(("mcadams", "pitch-shift"))
        assert told["fidelity"] == ("published" if is_as_published else "lite")
        assert [part["slot"] for part in told["pipeline"]] == list(SLOTS)
        assert told["measured"]["version"] == method.version


def test_every_built_in_method_was_measured_in_its_version():
    unmeasured = [method.name for method in methods() if find_measured(method) is None]
    assert unmeasured == []


def list_rows(name, heading):
    """The names of the methods in the first column of a table of the documentation."""
    text = Path(settings.BASE_DIR, "docs", name).read_text().split(heading, 1)[1]
    lines = itertools.takewhile(lambda line: line.startswith("|"), text.lstrip("\n").splitlines()[2:])
    return [name for line in lines for name in re.findall("`([a-z0-9-]+)`", line.split("|")[1])]


@pytest.mark.parametrize(
    ("page", "table"),
    [
        ("methods.md", "pseudo-speakers), its options (fixed for a run), and what was measured."),
        (
            "anonymizers.md",
            "and pipes (reported as errors) and hidden files (reported as notes) are left out.",
        ),
    ],
)
def test_documentation_lists_the_methods_that_there_are(page, table):
    assert sorted(list_rows(page, table)) == sorted(method.name for method in methods())


@pytest.mark.parametrize(
    ("share", "count", "low", "high"),
    [
        (0.1, 10, 0.017876, 0.404150),  # R 4.3: prop.test(1, 10, correct = FALSE)
        (0.0, 10, 0.0, 0.277533),
        (0.5, 100, 0.403832, 0.596168),
    ],
)
def test_interval_of_a_share_is_wilsons(share, count, low, high):
    assert wilson_interval(share, count) == pytest.approx((low, high), abs=2e-5)


def test_page_shows_a_method_beside_the_original_speech():
    table = list_measured(get_method("t04"))["table"]
    rows = [[cell.text for cell in row.cells] for row in table.rows]
    found = find_measured(get_method("t04"))
    assert [column.heading for column in table.columns] == ["Measure", "Original", "Copies by HiFi-GAN", "This method"]
    words = [fixed(100 * found.word_errors[name], 1) for name in ("moonshine-tiny", "whisper-base")]
    assert [row[3] for row in rows[:2]] == words
    assert [cell.interval for cell in table.rows[0].cells[1:]] == ["7.2 to 15.2", "6.5 to 14.2", "3.4 to 9.5"]
    assert [cell.interval for cell in table.rows[2].cells[1:]] == ["", "", ""]
    assert rows[2][3] == fixed(100 * found.ignorant["wespeaker-resnet34"], 1)


@pytest.mark.parametrize(
    ("own", "other", "reached"), [(0.6, 0.6, True), (0.6, 0.5, False), (0.5, 0.6, False), (None, None, None)]
)
def test_voice_is_reached_where_most_outputs_are_nearer_to_it(own, other, reached):
    one = replace(read_measurements().original, nearer_than_own=own, nearer_than_other=other)
    assert reaches_voice(one) is reached
    shortfalls = read_measurements().find_shortfalls(one)
    assert shortfalls == (("voice not reached",) if reached is False else ())
