"""What was measured of the methods: read and shown as it stands in the file."""

from dataclasses import replace

import pytest

from anonymization.cli.listing import method_as_dict
from anonymization.methods.measured import find_measured, reaches_voice, read_measurements, wilson_interval
from anonymization.methods.registry import get_method, methods
from common.rounding import fixed
from portal.systems.anonymization.charts import list_measured


def test_list_has_the_parts_of_each_recipe():
    recipes = [method for method in methods() if getattr(method, "pipeline", ())]
    assert len(recipes) > 20
    for method in recipes:
        told = method_as_dict(method)
        is_as_published = method.name.startswith(("mcadams", "pitch-shift"))
        assert told["fidelity"] == ("published" if is_as_published else "lite")
        assert [part["slot"] for part in told["pipeline"]] == ["content", "voice", "prosody", "synthesis"]
        assert told["measured"]["version"] == method.version


def test_every_built_in_method_was_measured_in_its_version():
    unmeasured = [method.name for method in methods() if find_measured(method) is None]
    assert unmeasured == []


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
