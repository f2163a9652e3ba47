"""The DET figure: sound files, its curves and the numbers beside them."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np
import pytest

from common.errors import InputError
from common.tables import DataTable
from evaluation.figures.det import MOST_CURVES, describe, det_numbers, draw_det
from evaluation.figures.style import for_page
from evaluation.metrics.detection import detection_metrics
from evaluation.notebook import save_det, table_metrics
from tests.evaluation.score_sets import normal_scores
from tests.evaluation.svg import texts, title_and_description

TESTS = {
    "unprotected": detection_metrics(*(side * 2 for side in normal_scores(1, 300, 2000))),
    "lazy <a> & $x$": detection_metrics(*reversed(normal_scores(2, 300, 2000))),
}


def test_det_names_each_test_with_its_numbers():
    svg = draw_det(TESTS)
    first = TESTS["unprotected"]
    assert f"unprotected: EER {100 * first.kaldi_eer:.1f} %, min C_llr {first.min_cllr:.3f}" in texts(svg)
    assert any(text.startswith("lazy <a> & $x$: EER") for text in texts(svg))
    assert title_and_description(svg) == ("DET curves", describe(TESTS))
    assert "300 target and 2000 nontarget trials" in describe(TESTS)


@pytest.mark.parametrize("estimator", ["kaldi", "rocch"])
def test_det_numbers_are_those_of_the_curve(estimator):
    table = det_numbers(TESTS, estimator=estimator)
    for label, test in TESTS.items():
        (_, key, _, *rates), *points = [row for row in table.rows if row[0] == label]
        assert (key, *rates) == (f"{estimator}_eer", *[getattr(test, f"{estimator}_eer")] * 2)
        corners = test.det.corners()
        assert [row[2] for row in points] == corners.thresholds.tolist()
        assert [row[3] for row in points] == corners.false_alarm_rate.tolist()
        assert [row[4] for row in points] == corners.miss_rate.tolist()


def test_numbers_beside_a_figure_hold_no_formula():
    table = DataTable(("system", "+x"), (("=HYPERLINK(1)", -1.5), ("-1", None)))
    assert table.csv() == "system,'+x\n'=HYPERLINK(1),-1.5\n-1,\n"


@pytest.mark.parametrize(("target", "nontarget"), [([1.0] * 4, [1.0] * 9), ([0.0], [1.0])])
def test_det_of_separable_tied_and_tiny_scores_is_drawn(target, nontarget):
    assert draw_det({"x": detection_metrics(target, nontarget)}).startswith(b"<?xml")


def test_det_refuses_nothing_too_much_and_unknown_estimators():
    one = TESTS["unprotected"]
    with pytest.raises(InputError, match="1 to 8 tests in a DET figure, found 0"):
        draw_det({})
    with pytest.raises(InputError, match="found 9"):
        draw_det({str(number): one for number in range(MOST_CURVES + 1)})
    with pytest.raises(InputError, match="found 'cosine'"):
        draw_det({"x": one}, estimator="cosine")
    with pytest.raises(InputError, match="expected a figure as svg, pdf, png, csv"):
        save_det("x.jpeg", {"x": one})


def test_notebook_tells_what_equal_scores_leave_open():
    test = detection_metrics(np.zeros(300), np.zeros(300))
    with pytest.warns(UserWarning, match="constant: equal scores leave the EER anywhere from 0.0 to 100.0 %"):
        table = table_metrics({"constant": test})
    assert table["constant"].isna().all()
    assert "equal scores leave the EER anywhere from 0.0 to 100.0 %" in test._repr_html_()


def test_notebook_shows_metrics_as_tables_and_figures_by_themselves(tmp_path):
    table = table_metrics(TESTS)
    assert list(table.columns) == list(TESTS)
    assert table.loc["EER (Kaldi), %", "unprotected"] == 100 * TESTS["unprotected"].kaldi_eer
    assert f"<td>{TESTS['unprotected'].min_cllr:.6g}</td>" in TESTS["unprotected"]._repr_html_()
    figure = save_det(tmp_path / "det.pdf", TESTS)
    assert figure.axes
    assert figure._repr_svg_() == draw_det(TESTS).decode()


def test_figure_is_the_same_after_another_library_named_the_namespace_of_svg():
    before = draw_det(TESTS)
    import qrcode.image.svg

    ElementTree.register_namespace("svg", qrcode.image.svg.SvgFragmentImage._SVG_namespace)
    assert (draw_det(TESTS) == before) is True
    assert for_page(before, "one", "A figure").startswith("<svg ")
