"""``verify --data``: every number of a submission that follows from its score files, and what is wrong with these."""

from __future__ import annotations

import io
import shutil

import pytest

from evaluation.formats.results import CATEGORIES, AttackModel, Speech
from evaluation.formats.scores import write_scores
from evaluation.metrics.catalogue import find_metric
from evaluation.metrics.detection import detection_metrics
from evaluation.objective_results.recomputation import join_files
from evaluation.objective_results.results.expected import ResultKind, detection_name
from evaluation.objective_results.results.folders import read_results
from evaluation.objective_results.results.results_2022 import make_reported_number, read_result_file
from evaluation.protocols.recipes import load_recipe
from tests.evaluation.commands import refusal, write_test
from tests.evaluation.formats.published import R2022
from tests.evaluation.formats.writing import write_result_file, write_single_files
from tests.librispeech import EERS, name_test

RECIPE = load_recipe("2022")
STAMP = "results-2022-05-01-10-20-30"
TEST = name_test("unprotected", "f")


def measured_number(reported, measured):
    """The number with the value that follows from the scores, or as it was where these are not of its test."""
    one = reported.identity
    key = one.data_set, one.enrolment, one.speech
    if key not in measured or one.metric == "wer":
        return reported
    if one.metric == "zebra_category":
        value = float(CATEGORIES.index(measured[key].zebra.category))
    else:
        value = measured[key].values()[find_metric(one.metric, one.estimator).key]
    return make_reported_number(one, value)


@pytest.fixture(scope="module")
def written_submission(librispeech, tmp_path_factory):
    """B2's numbers, but those of libri_dev from the scores that lie beside them; written by our own writers."""
    root = tmp_path_factory.mktemp("submission")
    joined, measured = {}, {}
    for data_set in ("libri_dev_trials_f", "libri_dev_trials_m"):
        for enrolment, speech in ((Speech.ORIGINAL, Speech.ORIGINAL), *((one, Speech.ANONYMISED) for one in Speech)):
            test = detection_name(RECIPE, RECIPE.data_sets[data_set], enrolment, speech)
            one = joined[test] = join_files(
                librispeech / "scores" / test / "scores", librispeech / "data" / data_set / "trials"
            )
            measured[data_set, enrolment, speech] = detection_metrics(one.target_scores, one.nontarget_scores)
    for folder, kind, path in (
        (STAMP, ResultKind.RETRAINED, "results.anon_mcadams"),
        (f"{STAMP}.orig", ResultKind.ORIGINAL, "results.orig_mcadams"),
        (STAMP, ResultKind.SUMMARY, "RESULTS_summary_mcadams"),
    ):
        text = (R2022 / path).read_text()
        if kind is ResultKind.ORIGINAL:
            text = text.replace("user_asr_eval_anon", "asr_eval")
        published = read_result_file(io.StringIO(text), name=path, kind=kind).reported_numbers
        reported_numbers = [
            measured_number(one, measured) for one in published if not one.identity.data_set.startswith("average_")
        ]
        (root / folder).mkdir(exist_ok=True)
        (root / folder / "config.info").write_text("made-up scores\n")
        name = "results_summary.txt" if kind is ResultKind.SUMMARY else "results.txt"
        with (root / folder / name).open("w") as out:
            write_result_file(reported_numbers, kind, RECIPE, out)
        if kind is not ResultKind.SUMMARY:
            write_single_files(root / folder, reported_numbers, RECIPE, kind)
            for test, one in joined.items():
                rows = zip(one.models.tolist(), one.utterances.tolist(), one.scores.tolist(), strict=True)
                with (root / folder / test / "scores").open("w") as out:
                    write_scores(((model.decode(), each.decode(), score) for model, each, score in rows), out)
    return root


@pytest.fixture
def submission(written_submission, tmp_path):
    """The same to be damaged: links to what is not."""
    root = tmp_path / "submission"
    for path in sorted(written_submission.rglob("*")):
        copy = root / path.relative_to(written_submission)
        if path.is_dir():
            copy.mkdir(parents=True)
        else:
            copy.symlink_to(path)
    return root


def rewrite(path, change):
    text = path.read_text()
    changed = change(text)
    assert changed != text
    path.unlink()
    path.write_text(changed)


def unlike(answer):
    [system] = answer.json["systems"]
    assert answer.code == 1
    return [one for one in system["problems"] if one["code"] == "unlike-scores"]


def test_numbers_of_one_run_agree_with_their_scores(shell, librispeech, written_submission):
    scores = librispeech / "scores"
    for path in scores.rglob("scores"):
        assert (written_submission / STAMP / path.relative_to(scores)).read_bytes() == path.read_bytes()
    answer = shell("verify-results", written_submission, "--data", librispeech / "data", "--json")
    assert unlike(answer) == []
    [system] = answer.json["systems"]
    assert len(system["scores"]) == 12
    # 12 tests of 8 numbers in results.txt and in single files, and the EERs of two pairs of tests in the summary
    numbers = system["recomputed"]
    assert len(numbers) == 2 * 12 * 8 + 4
    assert all(one["agrees"] for one in numbers)
    found = {
        (one["attack_model"].replace("semi", "lazy"), one["gender"]): one["recomputed_written"]
        for one in numbers
        if one["key"] == "kaldi_eer" and one["attack_model"] != "lazy-informed"
    }
    assert found == EERS
    codes = {one["code"] for one in system["problems"] if "_asr" not in one["expected"]}
    # the ignorant attacker is misled; no scores of the official model; the other tests have no score files
    assert codes == {"inverted-scores", "unlike-baseline", "missing-file"}


def test_tampered_numbers_are_named_with_their_places(shell, librispeech, submission):
    tampered = {
        f"{STAMP}/{TEST}/EER": ("2.557%", "2.415%", 1),  # 17 of 704 targets: a number that can be
        f"{STAMP}/results_summary.txt": ("3.267%", "3.409%", 13),
    }
    for file, (old, new, _) in tampered.items():
        rewrite(submission / file, lambda text, old=old, new=new: text.replace(old, new, 1))
    answer = shell("verify-results", submission, "--data", librispeech / "data", "--json")
    problems = {problem["file"]: problem for problem in unlike(answer)}
    assert problems.keys() == tampered.keys()
    for file, (old, new, line) in tampered.items():
        assert (problems[file]["line"], problems[file]["found"]) == (line, f"“{new[:-1]}”")
        expected = f"{old[:-1]} for EER (Kaldi) of libri_dev_trials_f, recomputed from {STAMP}"
        assert problems[file]["expected"].startswith(expected)
    assert sum(not one["agrees"] for one in answer.json["systems"][0]["recomputed"]) == 2


def test_trials_that_are_missing_or_not_official_are_named(shell, librispeech, written_submission, tmp_path):
    data = tmp_path / "data"
    (data / "libri_dev_trials_f").mkdir(parents=True)
    text = (librispeech / "data" / "libri_dev_trials_f" / "trials").read_text()
    name = "1462 1462-170142-0000 "
    assert text.startswith(name)
    (data / "libri_dev_trials_f" / "trials").write_text(text.replace(name, "1462 another ", 1))
    answer = shell("verify-results", written_submission, "--data", data, "--json")
    [system] = answer.json["systems"]
    problems = {(one["code"], one["file"]) for one in system["problems"]}
    assert ("wrong-trials", str(data / "libri_dev_trials_f" / "trials")) in problems
    assert ("missing-file", str(data / "libri_dev_trials_m" / "trials")) in problems
    assert (len(system["scores"]), len(system["without_numbers"])) == (0, 6)
    assert sum(one["code"] == "extra-score" for one in system["problems"]) == 6  # one for each score file


@pytest.fixture
def small_submission(tmp_path):
    """A results directory with one test, whose trials are not the official ones."""
    scores, trials = write_test(tmp_path / "data" / "libri_dev_trials_f")
    folder = tmp_path / STAMP / TEST
    folder.mkdir(parents=True)
    scores.rename(folder / "scores")
    measured = detection_metrics(
        *(getattr(join_files(folder / "scores", trials), f"{one}_scores") for one in ("target", "nontarget"))
    )
    (folder / "EER").write_text(f"EER: {100 * measured.kaldi_eer:.4g}%\n")
    return tmp_path


def test_other_trials_than_the_official_ones_are_told_by_their_count(shell, small_submission):
    answer = shell("verify-results", small_submission / STAMP, "--data", small_submission / "data")
    assert answer.code == 1
    assert "1 score files; 1 of 1 reported numbers agree." in answer.out
    assert "expected 704 targets and 14566 nontargets, found 24 targets and 72 nontargets" in answer.out


@pytest.mark.parametrize("edition", ["2020", "2022"])
def test_single_files_without_a_result_file_are_of_the_named_edition(shell, small_submission, edition):
    folder, data = small_submission / STAMP, small_submission / "data"
    [system] = shell("verify-results", folder, "--data", data, "--edition", edition, "--json").json["systems"]
    [number] = system["recomputed"]
    assert (system["edition"], number["agrees"]) == (edition, True)
    # one results directory of 2020 is of original models, that of 2022 without its partner of retrained ones
    assert number["training"] == {"2020": "original", "2022": "anonymised"}[edition]


def test_eers_of_few_trials_are_warned_of(shell, small_submission):
    trials = small_submission / "data/libri_dev_trials_f/trials"
    scores = small_submission / STAMP / TEST / "scores"
    kinds = [line.rpartition(" ")[2] for line in trials.read_text().splitlines()]
    first = kinds.index("target")
    kept = [place for place, kind in enumerate(kinds) if kind != "target" or place == first]
    for path in (trials, scores):
        lines = path.read_text().splitlines(keepends=True)
        path.write_text("".join(lines[place] for place in kept))
    answer = shell("verify-results", small_submission, "--data", small_submission / "data", "--json")
    told = [row for row in answer.json["systems"][0]["problems"] if row["code"] == "few-trials"]
    assert [(row["severity"], row["found"]) for row in told] == [("warning", "unreliable: 1 target trial")]


def test_data_must_be_a_folder_and_results_must_have_scores(shell, small_submission):
    folder = small_submission / STAMP
    assert "expected the folder of the Kaldi data directories" in refusal(
        shell("verify-results", folder, "--data", "nowhere")
    )
    (folder / TEST / "scores").unlink()
    answer = shell("verify-results", folder, "--data", small_submission / "data", "--brief")
    assert "expected score files to recompute from, found none" in answer.out


def test_score_files_and_numbers_of_both_models_are_told_apart(written_submission):
    [system] = read_results(written_submission)
    folders = {one.training: one.name.partition("/")[0] for one in system.scores}
    assert folders == {Speech.ANONYMISED: STAMP, Speech.ORIGINAL: f"{STAMP}.orig"}
    assert len({(one.data_set, one.training, one.enrolment, one.speech) for one in system.scores}) == 12
    assert {one.identity for one in system.repeated} <= {one.identity for one in system.reported_numbers}
    assert {one.identity.attack_model for one in system.repeated if one.identity.enrolment} == set(AttackModel)


def test_compare_marks_numbers_whose_scores_have_errors(shell, small_submission, tmp_path):
    other = tmp_path / "other" / STAMP
    shutil.copytree(tmp_path / STAMP, other)
    scores = other / TEST / "scores"
    scores.write_text("".join(f"{line.rsplit(' ', 1)[0]} 0.5\n" for line in scores.read_text().splitlines()))
    answer = shell("compare", tmp_path / STAMP, other, "--json")
    rows = [row for row in answer.json["numbers"] if row["metric"] == "eer"]
    assert answer.code == 1
    assert rows
    assert all("expected scores that differ between trials, found one score, 0.5" in row["second_note"] for row in rows)
    assert "* " in shell("compare", tmp_path / STAMP, other).out
