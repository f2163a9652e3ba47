"""The page that compares the anonymisers: figures, table and files hold what was measured, once for each method."""

import csv
import io
import json

import pytest
from django.urls import reverse

from anonymization.methods.measured import read_measurements
from anonymization.methods.registry import get_method, methods
from portal.leaderboard.method_comparison import pages as method_pages

pytestmark = pytest.mark.django_db


def test_page_shows_parts_and_numbers_of_every_method(client):
    page = client.get(reverse("anonymizers:comparison")).content.decode()
    for method in map(get_method, read_measurements().methods):
        assert page.count(f">{method.name}") >= 2, method.name
        for part in method.pipeline:
            assert part.title in page.replace("&amp;", "&"), part.title


def test_files_have_every_digit_of_what_was_measured(client):
    found = read_measurements()
    answer = client.get(reverse("anonymizers:json")).content
    [original, copies, *rows] = json.loads(answer)["methods"]
    for row, one in ((original, found.original), (copies, found.copied)):
        assert row["word_errors_moonshine-tiny"] == one.word_errors["moonshine-tiny"]
        assert (row["ignorant_ge2e"], row["semi_informed"]) == (one.ignorant["ge2e"], one.semi_informed)
    by_name = {row["method"]: row for row in rows}
    assert list(by_name) == [method.name for method in methods()]
    for name, one in found.methods.items():
        row = by_name[name]
        assert [row[f"word_errors_{recognizer}"] for recognizer in found.recognizers] == list(one.word_errors.values())
        assert row["lazy_informed_wespeaker-resnet34"] == one.lazy_informed["wespeaker-resnet34"]
        for kept in ("semi_informed", "rho_f0", "gvd_db", "naturalness", "to_given_vector", "nearer_than_own"):
            assert row[kept] == getattr(one, kept)
        words = one.word_errors["moonshine-tiny"]
        assert row["intelligible"] == (words <= 1.5 * copies["word_errors_moonshine-tiny"])
        shares = [row["nearer_than_own"], row["nearer_than_other"]]
        assert row["voice_reached"] == (None if None in shares else min(shares) > 0.5)
    assert {True, None} <= {row["voice_reached"] for row in rows}
    lines = list(csv.DictReader(io.StringIO(client.get(reverse("anonymizers:csv")).content.decode())))
    assert [line["method"] for line in lines[2:]] == list(by_name)
    assert [line["fidelity"] for line in lines[2:]] == [by_name[name]["fidelity"] for name in by_name]
    assert {row["fidelity"] for row in rows} == {"published", "lite"}
    latex = client.get(reverse("anonymizers:latex")).content.decode()
    assert all(name.replace("_", r"\_") in latex for name in found.methods)


def test_each_attack_has_a_figure_with_the_original_speech_and_every_method():
    drawings = method_pages.list_method_drawings()
    assert list(drawings) == ["ignorant", "lazy-informed", "semi-informed"]
    found = read_measurements()
    unprotected = found.original.ignorant["wespeaker-resnet34"]
    for slug, drawing in drawings.items():
        original, *points = drawing.points
        assert original.kind == "original"
        is_trained = slug == "semi-informed"
        assert original.eer == 100 * (found.original.semi_informed if is_trained else unprotected)
        rates = {point.name: point.eer for point in points}
        kept = {name: getattr(one, slug.replace("-", "_")) for name, one in found.methods.items()}
        assert rates == {name: 100 * (eer if is_trained else eer["wespeaker-resnet34"]) for name, eer in kept.items()}
        assert all(point.words.startswith(f"{point.name}: EER ") for point in drawing.points)


def test_unknown_figure_is_not_found(client):
    answer = client.get(reverse("anonymizers:figure", args=["oracle", "svg"]))
    assert "missing=1" in answer["Location"]
