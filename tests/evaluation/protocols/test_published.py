"""Numbers of papers: each has a source, a data set of its recipe and a metric that is known."""

import csv
from pathlib import Path

import pytest

from evaluation.metrics.catalogue import find_metric
from evaluation.protocols import recipes
from evaluation.protocols.published import AVERAGE_TEST, ORIGINAL, is_as_shipped, load_published, published_systems
from evaluation.protocols.published_view import ATTACKED
from evaluation.protocols.ranking.policy import make_policy
from evaluation.protocols.recipes import load_recipe, parse_recipe, shipped_editions
from tests.official import PUBLISHED


@pytest.mark.parametrize("edition", shipped_editions())
def test_every_number_has_a_source_and_belongs_to_its_recipe(edition):
    sets = {*load_recipe(edition).data_sets, AVERAGE_TEST}
    numbers = load_published(edition)
    assert len(numbers) > 50
    for one in numbers:
        assert one.data_set in sets
        assert find_metric(one.metric, one.estimator).label
        assert float(one.value) == float(one.value)
        assert one.source
        assert one.table


@pytest.mark.parametrize("edition", shipped_editions())
def test_every_number_of_an_attacker_has_the_attack_model_of_its_source(edition):
    """2020 had no evaluator trained on anonymised speech; files for ranking of 2024 have that one only."""
    of_systems = {
        "2020": {"ignorant", "lazy-informed"},
        "2022": {"ignorant", "lazy-informed", "semi-informed"},
        "2024": {"semi-informed"},
        "2026": {"lazy-informed", "semi-informed"},
    }[edition]
    found = set()
    for one in load_published(edition):
        if one.metric not in ATTACKED:
            assert not one.attack_model
        elif one.system == ORIGINAL:
            assert one.attack_model == "unprotected"
        else:
            found.add(one.attack_model)
    assert found == of_systems


IN_THE_TABLES = {
    "eer": "eer_percent",
    "min_cllr": "cllr_min",
    "cllr": "cllr_act",
    "linkability": "linkability",
    "zebra_population": "zebra_population_bit",
    "zebra_individual": "zebra_individual_log10",
}
PAIRS = {"unprotected": "orig.o-o", "ignorant": "orig.o-a", "lazy-informed": "orig.a-a", "semi-informed": "anon.a-a"}


@pytest.mark.parametrize(("edition", "metrics"), [("2020", 3), ("2022", 6)])
def test_attacks_are_those_of_the_published_tables(edition, metrics):
    """Each number of a baseline's attacks stands in the tables, and each of the tables here, for every trial set."""
    with (PUBLISHED / f"vpc{edition}/baseline-results.csv").open(encoding="utf-8", newline="") as file:
        printed = {
            (row["system"].removeprefix("2020-"), row["dataset"], row["gender"][:1], row["metric"]): row["value"]
            for row in csv.DictReader(file)
        }
    of = {"B1 (cosine)": "B1-cosine"}
    compared = 0
    for one in load_published(edition):
        if not one.attack_model:
            continue
        data_set, common = one.data_set.partition("_trials")[0], one.data_set.endswith("_common")
        data_set += ("_common" if common else "_diff") if data_set.startswith("vctk") else ""
        name = one.source.rpartition(" of ")[2] if one.system == ORIGINAL else one.system
        metric = f"{IN_THE_TABLES[one.metric]}.{PAIRS[one.attack_model]}"
        assert float(one.value) == float(printed[of.get(name, name), data_set, one.gender, metric])
        compared += one.system != ORIGINAL
    attacks = 2 if edition == "2020" else 3
    assert compared == 3 * 12 * attacks * metrics


FILES_OF_2026 = {
    "track1/result_for_rank_mcadams": "B2",
    "track1/result_for_rank_sttts": "B3",
    "track1/result_for_rank_nac": "B4",
    "track1/result_for_rank_asrbn_hifigan_bn_tdnnf_wav2vec2_vq_48_v1": "B5",
    "track2/result_for_rank_BM1": "BM1",
    "track2/result_for_rank_BM2": "BM2",
    "track2/result_for_rank_BM3": "BM3",
}
ATTACKS_OF_SECTIONS = {"ASV_eval": "lazy-informed", "ASV_eval^anon": "semi-informed"}


def read_rank_file(path):
    """The numbers of a file for ranking: whose, data set, metric, attack model, value as printed."""
    section, emotions = "", []
    for line in path.read_text().splitlines():
        words = line.split()
        if line.startswith("---- ") and words[-2] == "results":
            section = words[1]
        elif "UAR" in words:
            emotions = ["uar", *(f"accuracy_{word[4:]}" for word in words if word.startswith("ACC_"))]
        elif {"dev", "test"} & set(words):
            name, split, *others = words[words[0].isdigit() :]
            whose = "Original" if "original" in others else "system"
            if section == "SER":
                for metric, value in zip(emotions, others[1:], strict=True):
                    yield whose, f"{name}_{split}", metric, "", value
            elif section == "ASR":
                yield whose, f"{name}_{split}_asr", "wer", "", others[-1]
            else:
                yield whose, f"{name}_{split}_trials_mixed", "eer", ATTACKS_OF_SECTIONS[section], others[-1]


def test_numbers_of_2026_are_those_of_the_published_files():
    """A number of original speech that several files print alike stands there once."""
    kept = [(one.system, one.data_set, one.metric, one.attack_model, one.value) for one in load_published("2026")]
    printed = {
        (system if whose == "system" else whose, *number)
        for path, system in FILES_OF_2026.items()
        for whose, *number in read_rank_file(PUBLISHED / "vpc2026/results" / path)
    }
    assert sorted(kept) == sorted(printed)


@pytest.mark.parametrize("edition", ["2024", "2026"])
def test_recalls_of_emotions_have_the_mean_that_was_printed(edition):
    """UAR is the mean over speakers of the mean of their recalls: near the mean of the recalls, never outside them."""
    by_line = {}
    for one in load_published(edition):
        if one.metric == "uar" or one.metric.startswith("accuracy_"):
            by_line.setdefault((one.source, one.system, one.data_set), {})[one.metric] = float(one.value)
    whole = [found for found in by_line.values() if len(found) == 5]
    assert len(whole) >= 10
    for found in whole:
        uar = found.pop("uar")
        assert min(found.values()) < uar < max(found.values())
        assert abs(sum(found.values()) / 4 - uar) < 4


@pytest.mark.parametrize("edition", shipped_editions())
def test_numbers_that_sources_print_otherwise_stay_and_say_so(edition):
    by_what = {}
    for one in load_published(edition):
        what = (one.system, one.data_set, one.gender, one.metric, one.estimator, one.attack_model)
        by_what.setdefault(what, []).append(one)
    several = [found for found in by_what.values() if len({float(one.value) for one in found}) > 1]
    assert several
    assert all(one.note.startswith("The sources differ: ") for found in several for one in found)
    assert all(not one.note for found in by_what.values() if found not in several for one in found)


def systems(edition, track=""):
    recipe = load_recipe(edition)
    chosen = recipe.tracks[track] if track else recipe.track
    return {one.name: one.averages for one in published_systems(recipe, chosen, make_policy(recipe, track))}


def test_system_without_a_printed_utility_lacks_it_alone():
    """The file of B4 prints no UAR."""
    recipe = load_recipe("2026")
    track = recipe.tracks["track1"]
    found = {one.name: one for one in published_systems(recipe, track, make_policy(recipe, "track1"))}
    assert found["B4"].averages == {"eer": 14.333, "wer": 5.901}
    assert {name: one.missing for name, one in found.items()} == {"B2": (), "B3": (), "B4": ("uar",), "B5": ()}


def test_averages_of_2022_are_those_of_the_plan():
    rounded = {name: (round(one["eer"], 3), round(one["wer"], 3)) for name, one in systems("2022").items()}
    assert rounded == {"B1.a": (11.809, 8.285), "B1.b": (9.183, 7.56), "B2": (7.769, 9.03)}


def test_systems_of_every_edition_that_averages():
    assert list(systems("2024")) == ["B1", "B2", "B3", "B4", "B5", "B6"]
    assert list(systems("2026", "track1")) == ["B2", "B3", "B4", "B5"]
    assert list(systems("2026", "track2")) == ["BM1", "BM2", "BM3"]
    assert round(systems("2024")["B5"]["eer"], 4) == round((33.946 + 34.729) / 2, 4)


def test_changed_recipe_is_no_longer_as_shipped():
    text = Path(recipes.__file__).with_name("2022.toml").read_text(encoding="utf-8")
    assert is_as_shipped(parse_recipe(text, file="2022.toml"))
    changed = text.replace("original_value = 8.665", "original_value = 9.665")
    assert not is_as_shipped(parse_recipe(changed, file="2022.toml"))
