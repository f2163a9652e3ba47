"""Trade-off, bars and similarity matrices: sound files, and numbers equal to the results they draw."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from evaluation.figures.bars import Bars, GroupValue, bar_numbers, bars_of, draw_bars
from evaluation.figures.bars import describe as describe_bars
from evaluation.figures.similarity import describe as describe_similarity
from evaluation.figures.similarity import draw_similarity, similarity_numbers
from evaluation.figures.style import PALETTES
from evaluation.figures.tradeoff import SystemPoint, draw_tradeoff, points_of, tradeoff_numbers
from evaluation.formats.claims import Claim, ClaimIdentity, Gender
from evaluation.formats.results import read_results
from evaluation.metrics.averages import AverageError
from evaluation.metrics.catalogue import GAIN_OF_VOICE_DISTINCTIVENESS, PITCH_CORRELATION
from evaluation.metrics.errors import MetricInputError
from evaluation.metrics.voice_similarity import voice_distinctiveness_of_embeddings
from evaluation.protocols.recipes import load_recipe
from tests.evaluation.reference import SHARED
from tests.evaluation.svg import assert_sound, fills, texts, title_and_description

R2022 = SHARED / "vpc2022" / "results"
needs_results = pytest.mark.skipif(not R2022.is_dir(), reason=f"{R2022} is not here")
POINTS = (
    SystemPoint("Original", 3.8, 8.5, "original"),
    SystemPoint("B2", 7.8, 9.0, "baseline"),
    SystemPoint("T11-p1", 21.0, 7.4, team="T11", rank=1),
    SystemPoint("T11-p3", 31.5, 9.4, team="T11", rank=2),
    SystemPoint("T04-p1", 21.3, 7.5, team="T04"),
)
BARS = Bars(
    PITCH_CORRELATION,
    (
        GroupValue("libri dev", Gender.FEMALE, 0.637, 0.6, 0.67),
        GroupValue("libri dev", Gender.MALE, 0.529),
        GroupValue("vctk dev", Gender.FEMALE, -0.1, -0.2, 0.0),
    ),
)


def voices(speakers: int = 6, single: bool = False):
    random = np.random.default_rng(3)
    names = [f"s{n}" for n in range(speakers) for _ in range(4)]
    own = np.repeat(random.normal(size=(speakers, 12)), 4, axis=0)
    original = own + 0.3 * random.normal(size=own.shape)
    anonymised = own @ random.normal(size=(12, 12)) + random.normal(size=own.shape)
    kept = slice(0, -3) if single else slice(None)
    return voice_distinctiveness_of_embeddings(original[kept], anonymised[kept], names[kept])


def test_tradeoff_is_a_sound_figure():
    assert_sound(partial(draw_tradeoff, POINTS, minimum_eers=(15, 20, 25, 30)))


def test_tradeoff_names_systems_ranks_and_conditions():
    svg = draw_tradeoff(POINTS, minimum_eers=(15, 20, 25, 30))
    assert {"Original", "B2", "T11-p1", "T11-p3", "condition 1", "2", "3", "4"} < set(texts(svg))
    assert title_and_description(svg)[1] == (
        "Original: EER 3.80 %, WER 8.50 %. B2: EER 7.80 %, WER 9.00 %. T11-p1: EER 21.00 %, WER 7.40 %. "
        "T11-p3: EER 31.50 %, WER 9.40 %. T04-p1: EER 21.30 %, WER 7.50 %. "
        "Dashed lines: minimum EER of each condition, 15, 20, 25, 30 %."
    )
    assert tradeoff_numbers(POINTS).rows[2] == ("T11-p1", "T11", "system", 21.0, 7.4, 1)
    assert len(tradeoff_numbers(POINTS).csv().splitlines()) == 1 + len(POINTS)


@pytest.mark.parametrize(
    "point",
    [SystemPoint("x", np.nan, 1), SystemPoint("x", 101, 1), SystemPoint("x", 1, -1), SystemPoint("x", 1, 1, "y")],
)
def test_tradeoff_refuses_what_is_no_rate(point):
    with pytest.raises(MetricInputError, match="x: expected an EER of 0 to 100"):
        draw_tradeoff([point])
    with pytest.raises(MetricInputError, match="at least one system"):
        draw_tradeoff([])


@needs_results
@pytest.mark.parametrize(
    ("system", "eer", "wer"),
    [("tts_old_c", 11.809, 8.285), ("tts_joint_nsf_hifigan", 9.183, 7.560), ("mcadams", 7.769, 9.030)],
)
def test_tradeoff_points_of_the_baselines_are_the_published_averages(system, eer, wer):
    results = next(one for one in read_results(R2022) if one.system == system)
    original, point = points_of(results, load_recipe("2022"), kind="baseline")
    assert (round(point.eer, 3), round(point.utility, 3), point.kind) == (eer, wer, "baseline")
    assert (round(original.eer, 3), original.kind) == (3.786, "original")
    assert original.utility == pytest.approx(8.48, abs=0.011)  # the runs of the baselines differ
    with pytest.raises(AverageError):
        points_of(read_results(R2022 / f"results.orig_{system}")[0], load_recipe("2022"))


def test_bars_are_a_sound_figure():
    assert_sound(partial(draw_bars, BARS))


def test_bars_show_each_value_and_the_threshold_of_2022():
    svg = draw_bars(BARS)
    assert {"libri dev", "vctk dev", "0.64", "0.53", "−0.10", "2022 minimum", "female", "male"} < set(texts(svg))
    assert title_and_description(svg)[1] == describe_bars(BARS, None) + " Dashed line: 2022 minimum, 0.3."
    assert bar_numbers(BARS).rows == (
        ("libri dev", "f", 0.637, 0.6, 0.67), ("libri dev", "m", 0.529, None, None), ("vctk dev", "f", -0.1, -0.2, 0.0),
    )  # fmt: skip
    assert "2022 minimum" not in texts(draw_bars(Bars(GAIN_OF_VOICE_DISTINCTIVENESS, BARS.values)))
    colours = PALETTES["light"].series
    assert (fills(svg, colours[0]), fills(svg, colours[1])) == (3, 1)  # bars and legend; hatched ones share a pattern


def test_bars_of_claims_put_the_genders_of_a_set_together():
    def claim(data_set, gender, value):
        identity = ClaimIdentity(data_set, gender, "pitch_correlation", "praat")
        return Claim(identity, value, "", str(value), "results.txt", 1)

    bars = bars_of(
        [
            claim("libri_dev_trials_m", Gender.MALE, 0.5),
            claim("vctk_dev_trials_f_common", Gender.FEMALE, 0.6),
            claim("libri_dev_trials_f", Gender.FEMALE, 0.7),
            claim("average_dev", Gender.ALL, 0.6),
        ],
        "pitch_correlation",
        "praat",
    )
    assert [(one.data_set, one.gender.value, one.value) for one in bars.values] == [
        ("libri dev", "f", 0.7), ("libri dev", "m", 0.5), ("vctk dev common", "f", 0.6)
    ]  # fmt: skip
    with pytest.raises(MetricInputError, match="numbers of wer by any estimator, found none"):
        bars_of([], "wer", "")


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ((), "at least one, found none"),
        ((GroupValue("x", Gender.ALL, np.nan),), "found nan of x"),
        ((GroupValue("x", Gender.ALL, 1.0),) * 2, "found x, all, again"),
    ],
)
def test_bars_refuse_what_cannot_be_drawn(values, sentence):
    with pytest.raises(MetricInputError, match=sentence):
        draw_bars(Bars(PITCH_CORRELATION, values))


def test_similarity_is_a_sound_figure():
    assert_sound(partial(draw_similarity, voices(), genders={f"s{n}": "fm"[n % 2] for n in range(6)}))


def test_similarity_numbers_are_those_of_the_matrices_in_the_order_of_the_figure():
    found = voices()
    genders = {f"s{n}": "mf"[n % 2] for n in range(6)}
    rows = similarity_numbers(found, genders=genders).rows
    assert len(rows) == 3 * 36
    assert [row[2] for row in rows[:6]] == ["s1", "s3", "s5", "s0", "s2", "s4"]
    for matrix, first, second, value in rows:
        values = {"M_oo": found.oo, "M_op": found.op, "M_pp": found.pp}[matrix].values
        assert value == values[int(first[1:]), int(second[1:])]


def test_similarity_tells_dominance_and_groups():
    found = voices()
    svg = draw_similarity(found, genders={f"s{n}": "fm"[n > 1] for n in range(6)})
    assert {"M_oo", "M_op", "M_pp", "2 female", "4 male", "similarity"} < set(texts(svg))
    assert f"diagonal dominance {found.oo.diagonal_dominance:.3f}" in texts(svg)
    assert title_and_description(svg)[1] == describe_similarity(found)
    assert f"G_VD: {found.gain_db:.2f} dB" in describe_similarity(found)
    assert "6 speakers" in texts(draw_similarity(found))


def test_similarity_leaves_cells_without_a_value_open():
    found = voices(single=True)
    assert found.single_utterance_speakers == ("s5",)
    cells = {(row[0], row[1], row[2]): row[3] for row in similarity_numbers(found).rows}
    assert cells["M_oo", "s5", "s5"] is None
    assert draw_similarity(found) != draw_similarity(voices())


def test_similarity_needs_the_gender_of_every_speaker():
    with pytest.raises(MetricInputError, match="found none for 5, such as s1"):
        draw_similarity(voices(), genders={"s0": "f"})
