"""``verify``, ``compare`` and ``list``: published results as they are, and every refusal with its sentence."""

from __future__ import annotations

import json

import pytest

from evaluation.metrics.catalogue import ALL_METRICS
from evaluation.protocols.recipes import FOLDER
from tests.evaluation.commands import RANK_FILE, refusal
from tests.evaluation.formats.published import R2022, R2024, R2026


@pytest.fixture
def rank_file(tmp_path):
    path = tmp_path / "result_for_rank_mine"
    path.write_text(RANK_FILE)
    return path


def test_verify_recomputes_averages_and_conditions(shell, rank_file):
    answer = shell("verify-results", rank_file, "--json")
    [system] = answer.json["systems"]
    assert (answer.code, system["edition"], system["problems"]) == (0, "2024", [])
    assert len(system["reported_numbers"]) == 16
    averages = {(one["metric"], one["split"]): one["recomputed"] for one in system["averages"]}
    assert averages == {
        ("eer", "dev"): 25,
        ("eer", "test"): 20,
        ("wer", "dev"): 4,
        ("wer", "test"): 5,
        ("uar", "dev"): 50,
        ("uar", "test"): 60,
    }
    [standing] = system["standing"]
    assert [(one["minimum"], one["met"], one["near_limit"]) for one in standing["conditions"]] == [
        (10, True, False),
        (20, True, True),
        (30, False, False),
        (40, False, False),
    ]


def test_verify_prints_every_number_and_verdict(shell, rank_file):
    answer = shell("verify-results", rank_file)
    assert answer.code == 0
    for line in RANK_FILE.splitlines():
        value = line.split()[-1] if line[:1].isdigit() else ""
        assert value in answer.out
    assert "EER from 20 %: met; close to the limit" in answer.out
    assert "EER from 30 %: not met" in answer.out
    assert answer.out.rstrip().endswith("Problems\n\n  none")
    assert "Speaker verification" not in shell("verify-results", rank_file, "--brief").out


def test_verify_groups_problems_by_kind_and_fails(shell, rank_file):
    lines = RANK_FILE.splitlines(keepends=True)
    rank_file.write_text("".join([*lines[:-2], lines[-3], "4 libri test m anon anon twelve\n", "nonsense\n"]))
    answer = shell("verify-results", rank_file)
    assert answer.code == 1
    assert "error: missing result" in answer.out
    assert "error: not a number\n" in answer.out
    assert "result_for_rank_mine, line 20: expected" in answer.out
    assert "Not decided: Expected one finite value" in answer.out
    assert "Expected one finite value" in answer.out.partition("\nProblems\n")[2]  # an average that cannot be made
    problems = shell("verify-results", rank_file, "--json").json["systems"][0]["problems"]
    assert all(problem["sentence"] in answer.out for problem in problems)
    assert {problem["line"] for problem in problems if problem["code"] == "malformed-row"} == {20}


def test_verify_reads_published_results_whole(shell):
    answer = shell("verify-results", R2022 / "mcadams", "--json")
    [found] = answer.json["systems"]
    assert answer.code == 0  # a warning is no error
    assert len(found["reported_numbers"]) == 656
    assert [problem["code"] for problem in found["problems"]] == ["copied-asr"]
    assert {reported["key"] for reported in found["reported_numbers"]} <= ALL_METRICS.keys()
    kinds = [(one["metric"], one["split"], one["speech"]) for one in found["averages"]]
    both = [
        (metric, split, speech)
        for metric in ("eer", "wer")
        for speech in ("original", "anonymised")
        for split in ("dev", "test")
    ]
    assert kinds[:8] == both
    assert len(set(kinds)) == 12
    for average in found["averages"]:
        assert average["recomputed"] == pytest.approx(average["reported"], abs=0.00051)
        assert average["written"] == f"{average['reported']:.3f}"


def test_verify_reads_a_folder_of_systems(shell):
    systems = shell("verify-results", R2026, "--json").json["systems"]
    assert len(systems) == len(list(R2026.rglob("result_for_rank_*")))
    text = shell("verify-results", R2026)
    assert all(f"{one['system']}: VoicePrivacy" in text.out for one in systems)
    assert text.code == any(problem["severity"] == "error" for one in systems for problem in one["problems"])


def test_compare_names_the_better_one_by_the_metrics_direction(shell):
    answer = shell("compare", R2022 / "mcadams", R2022 / "tts_old_c", "--json")
    numbers = {
        (one["data_set"], one["metric"], one["training"]): one
        for one in answer.json["numbers"]
        if one["data_set"] == "average_test"
    }
    eer = numbers["average_test", "eer", "anonymised"]
    assert (answer.code, eer["first"], eer["second"]) == (0, 7.769, 11.809)
    assert eer["difference"] == 11.809 - 7.769
    text = shell("compare", R2022 / "mcadams", R2022 / "tts_old_c").out
    [eer_line, wer_line] = [
        line.split()
        for line in text.splitlines()
        if "average_test" in line and ("semi-informed" in line or ("WER" in line and "anonymised model" in line))
    ]
    assert eer_line[-4:] == ["7.769", "11.809", "+4.040", "tts_old_c"]
    assert wer_line[-4:] == ["9.030", "8.285", "-0.745", "tts_old_c"]


def test_compare_shows_the_digits_that_differ(shell, rank_file):
    other = rank_file.with_name("result_for_rank_other")
    other.write_text(RANK_FILE.replace("anon  5.000", "anon  4.996"))
    [line] = [one for one in shell("compare", rank_file, other).out.splitlines() if "libri_test_asr" in one]
    assert line.split()[-3:] == ["4.996", "-0.004", "result_for_rank_other"]


def test_commands_look_for_a_misspelt_name_in_its_folder_alone(shell, rank_file):
    (rank_file.parent / "below").mkdir()
    (rank_file.parent / "below" / "result_for_rank_there").write_text(RANK_FILE)
    nowhere = rank_file.parent / "nowhere"
    for arguments in (["verify-results", nowhere], ["compare", rank_file, nowhere]):
        assert refusal(shell(*arguments)).endswith(f"{rank_file.parent} holds the systems mine.")
    for path in (nowhere / "mine", "/nowhere", "/proc/nowhere"):
        assert refusal(shell("verify-results", path)).endswith("Name a result file or a results directory.")
    assert shell("verify-results", rank_file.parent / "mine").code == 0


def test_compare_leaves_gaps_open(shell, rank_file, tmp_path):
    other = tmp_path / "result_for_rank_other"
    other.write_text(RANK_FILE.replace("0   libri   dev  anon  4.000\n", "").replace("19.000", "29.500"))
    answer = shell("compare", rank_file, other)
    lines = [" ".join(line.split()) for line in answer.out.splitlines()]
    assert "libri_dev_asr all original model, anonymised speech WER, % 4.000 – –" in lines
    changed = "19.000 29.500 +10.500 result_for_rank_other"
    assert f"libri_test_trials_f f semi-informed EER (SpeechBrain), % {changed}" in lines
    assert answer.code == 1
    assert "result_for_rank_other: the files have errors" in answer.err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["verify-results", "nowhere"], "nowhere: expected results, found no such file, directory or system"),
        (
            ["verify-results", "text"],
            "text: expected results of a challenge, found no number. No line is one of a result file",
        ),
        (["verify-results", "result_for_rank_mine", "--edition", "2022"], "Name 2024 or 2026 as edition"),
        (["compare", "result_for_rank_mine", "result_for_rank_mine", "--metric", "x"], "expected one of uar, "),
    ],
)
def test_commands_refuse_in_one_sentence(shell, rank_file, monkeypatch, arguments, sentence):
    monkeypatch.chdir(rank_file.parent)
    (rank_file.parent / "text").write_text("a line that is no result\n")
    assert sentence in refusal(shell(*arguments))


def test_compare_refuses_several_systems_and_different_editions(shell):
    several = refusal(shell("compare", R2022, R2024 / "b1b"))
    assert "expected one system, found mcadams, tts_joint_nsf_hifigan, tts_old_c. Name one, such as" in several
    different = refusal(shell("compare", R2022 / "mcadams", R2024 / "b1b"))
    assert "found none in common (2022 and 2024)" in different


def test_list_names_every_metric_edition_and_estimator(shell):
    answer = shell("metrics", "--json")
    assert [metric["key"] for metric in answer.json["metrics"]] == list(ALL_METRICS)
    assert [edition["edition"] for edition in answer.json["editions"]] == ["2020", "2022", "2024", "2026"]
    text = shell("metrics").out
    for key, metric in ALL_METRICS.items():
        assert f"\n  {key}  {metric.label}" in text
    for row in answer.json["estimators"]:
        assert row["definition"] in text
    weights = answer.json["editions"][1]["tracks"]["main"]["averages"][0]["weights"]["test"]
    assert weights["vctk_test_trials_f_common"] == 0.05
    assert json.loads(json.dumps(answer.json)) == answer.json


# An organizer's custom recipe -------------------------------------------------------------------------


@pytest.fixture
def own_recipe(tmp_path):
    """The recipe of 2024 with other limits, under a name of its own."""
    text = (FOLDER / "2024.toml").read_text(encoding="utf-8")
    text = text.replace('edition = "2024"', 'edition = "autumn"').replace(
        "minimum_eers = [10, 20", "minimum_eers = [15, 18"
    )
    path = tmp_path / "autumn.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_verify_holds_results_against_an_own_recipe(shell, rank_file, own_recipe):
    answer = shell("verify-results", rank_file, "--recipe", own_recipe, "--json")
    [system] = answer.json["systems"]
    assert (answer.code, system["problems"]) == (0, [])
    [standing] = system["standing"]
    assert [one["minimum"] for one in standing["conditions"]] == [15, 18, 30, 40]
    assert "EER from 18 %: met" in shell("verify-results", rank_file, "--recipe", own_recipe).out


def test_recipe_that_is_none_is_told(shell, rank_file, tmp_path):
    assert "expected a readable TOML file" in refusal(shell("verify-results", rank_file, "--recipe", rank_file))
    assert "nothing.toml" in refusal(shell("compare", rank_file, rank_file, "--recipe", tmp_path / "nothing.toml"))
    assert "Expected at most one of --edition, --recipe" in refusal(
        shell("verify-results", rank_file, "--recipe", rank_file, "--edition", "2024")
    )
