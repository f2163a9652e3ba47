"""The list of methods: which are offered, in which order, and what becomes of those that cannot be."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from anonymization.methods import registry
from anonymization.methods.content_decoder import method as content_decoder
from anonymization.methods.contract import Method, MethodError, Parameter
from anonymization.methods.mcadams import method as mcadams
from anonymization.methods.nearest_frames import method as nearest_frames
from anonymization.methods.pitch_shift import method as pitch_shift
from anonymization.methods.recognize_and_speak import method as recognize_and_speak
from anonymization.methods.registry import broken, explain_missing, find_method, get_method, methods
from anonymization.methods.voices.pseudo_speakers import draw_pseudo_speaker
from anonymization.methods.world import method as world_voice
from tests.anonymization.programs import describe

ROOT = Path(__file__).resolve().parents[3]
MODULES = (mcadams, pitch_shift, world_voice, recognize_and_speak, nearest_frames, content_decoder)
BUILT_IN = [method.name for module in MODULES for method in module.METHODS]
HEAVY = ("django", "matplotlib", "numba", "pandas", "parselmouth", "pyworld", "scipy", "soundfile", "soxr", "torch")
METHOD = """
from anonymization.methods.content_decoder import method as content_decoder
from anonymization.methods.contract import Method, Parameter
def make(name="plugged", **changes):
    given = {"title": "Plugged", "version": "1", "reference": "A team", "process": lambda samples, *_: -samples}
    return Method(name=name, **{**given, **changes})
"""


@pytest.fixture
def plug_in(tmp_path, monkeypatch):
    """Installs a package with these entry points and this module."""
    monkeypatch.delenv(registry.FOLDER_VARIABLE, raising=False)
    number = iter(range(100))

    def install(points, code):
        package = f"voices_{next(number)}_{abs(hash(str(tmp_path)))}"
        about = tmp_path / f"{package}-1.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1\n")
        lines = "".join(f"{name} = {package}{':' if target else ''}{target}\n" for name, target in points.items())
        (about / "entry_points.txt").write_text(f"[{registry.GROUP}]\n{lines}")
        (tmp_path / f"{package}.py").write_text(METHOD + code)
        registry._plug_ins.cache_clear()
        return package

    monkeypatch.syspath_prepend(str(tmp_path))
    yield install
    registry._plug_ins.cache_clear()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The folder of descriptions of external commands."""
    folder = tmp_path / "commands"
    folder.mkdir()
    monkeypatch.setenv(registry.FOLDER_VARIABLE, str(folder))
    return folder


def command_in(folder, place, **changes):
    (folder / place).mkdir(exist_ok=True)
    return describe(folder / place, **changes)


def names():
    return [method.name for method in methods()]


def test_built_in_methods_come_first_and_have_names_of_their_own(plug_in):
    plug_in({"a": "make"}, "")
    assert names() == [*BUILT_IN, "plugged"]
    assert "mcadams-2022" in BUILT_IN
    assert len(set(BUILT_IN)) == len(BUILT_IN)
    assert all(get_method(name).name == name for name in names())


@pytest.mark.parametrize(
    ("target", "code", "expected"),
    [
        ("METHODS", "METHODS = (make('one'), make('two'))", ["one", "two"]),
        ("every", "def every():\n    return [make('one'), make('two')]", ["one", "two"]),
        (
            "Own",
            "class Own:\n"
            "    name = title = version = reference = 'own'\n"
            "    parameters = options = ()\n"
            "    is_deterministic = needs_gpu = False\n"
            "    def missing(self): return ''\n"
            "    def anonymize(self, samples, rate, pseudo_speaker, *, options=None, threads=1): return -samples\n"
            "    def anonymize_batch(self, items, rate, **_): return [-each.samples for each in items]",
            ["own"],
        ),
    ],
)
def test_entry_point_gives_anonymisers(target, code, expected, plug_in):
    plug_in({"a": target}, code)
    assert names() == [*BUILT_IN, *expected]
    assert broken() == ()
    voice = draw_pseudo_speaker("00" * 32, ())
    assert get_method(expected[0]).anonymize(np.array([1, -2], np.int16), 16_000, voice).tolist() == [-1, 2]


@pytest.mark.parametrize(
    ("target", "code", "reason"),
    [
        ("make", "raise SystemExit(3)", "could not be loaded: SystemExit: 3"),
        ("make", "def make(): raise OSError('no\\nmodel')", "could not be loaded: OSError: no model."),
        ("THING", "THING = 3", "expected an Anonymizer, a class of one, or a list of them, found int"),
        ("THING", "THING = make('Plugged In')", "name: expected small letters, digits and hyphens, found 'Plugged In'"),
        ("THING", "THING = make('mcadams-2022')", 'its name "mcadams-2022" is that of a built-in method'),
    ],
)
def test_broken_plug_in_is_told_and_harms_no_other(target, code, reason, plug_in):
    broken_package = plug_in({"a": target}, code)
    plug_in({"b": "make"}, "")
    assert names() == [*BUILT_IN, "plugged"]
    [problem] = broken()
    assert problem.source == f'plug-in "a" of {broken_package}'
    assert reason in problem.reason
    assert "\n" not in problem.reason
    assert problem.reason.endswith(".")
    with pytest.raises(MethodError, match="1 more cannot be used: "):
        get_method("no-such")


def test_of_two_plug_ins_with_one_name_the_first_is_taken(plug_in):
    plug_in({"b": "make"}, "")
    first = plug_in({"a": "make"}, "")
    assert names() == [*BUILT_IN, "plugged"]
    [problem] = broken()
    assert f'its name "plugged" is that of plug-in "a" of {first}. Give it another.' in problem.reason


def same(samples, *_):
    return samples


def test_plug_in_that_cannot_say_what_it_lacks_is_told(plug_in):
    plug_in({"a": "make"}, "def fails(): raise RuntimeError('no card')\ndef make(make=make): return make(check=fails)")
    assert explain_missing(get_method("plugged")) == "plugged could not say what it lacks: RuntimeError: no card."
    assert explain_missing(Method("x", "X", "1", "r", process=same, parameters=(Parameter("a", "", 0, 1, "x"),))) == ""


def test_commands_of_the_folder_are_offered_after_the_others(folder):
    describe(folder, name="beside")
    (folder / "anonymizer.toml").rename(folder / "beside.toml")
    command_in(folder, "own", name="in-its-own-folder")
    assert names()[-2:] == ["beside", "in-its-own-folder"]
    assert names()[: len(BUILT_IN)] == BUILT_IN
    assert broken() == ()


def test_change_in_the_folder_counts_without_a_new_start(folder):
    assert "hush" not in names()
    path = command_in(folder, "own")
    assert get_method("hush").title == "Hush"
    before = get_method("hush")
    assert get_method("hush") is before
    command_in(folder, "own", title="Hush, now louder")
    assert get_method("hush").title == "Hush, now louder"
    path.write_text("name =")
    assert "hush" not in names()
    assert [problem.source for problem in broken()] == [str(path)]
    path.unlink()
    assert broken() == ()


def test_broken_description_is_told_and_harms_no_other(folder):
    bad = command_in(folder, "bad", name="bad", isolation="none")
    taken = command_in(folder, "taken", name="mcadams-2022")
    command_in(folder, "good")
    assert names()[-1] == "hush"
    assert [problem.source for problem in broken()] == [str(bad), str(taken)]
    assert "isolation: expected full or limited for commands of the portal, found none." in broken()[0].reason
    assert broken()[1].reason.endswith('its name "mcadams-2022" is that of a built-in method. Give it another.')


def test_folder_that_is_not_there_is_told(tmp_path, monkeypatch):
    monkeypatch.setenv(registry.FOLDER_VARIABLE, str(tmp_path / "nowhere"))
    assert [method for method in names() if method in BUILT_IN] == BUILT_IN
    assert broken()[-1].reason.startswith(f"{tmp_path}/nowhere is no folder that can be read.")


def test_method_is_found_by_the_path_of_its_description(tmp_path):
    own = tmp_path / "own"
    own.mkdir()
    assert find_method(str(describe(own))).title == "Hush"
    assert find_method("mcadams-2022") is get_method("mcadams-2022")
    with pytest.raises(MethodError, match="the description cannot be read"):
        find_method(str(own / "none.toml"))
    with pytest.raises(MethodError, match='expected a name of its own, found that of the built-in "mcadams-2022"'):
        find_method(str(describe(own, name="mcadams-2022")))


def test_importing_all_methods_imports_nothing_heavy():
    code = f"""
import importlib, pkgutil, sys
import anonymization.methods as package
names = [name for _, name, _ in pkgutil.walk_packages(package.__path__, "anonymization.methods.")]
for name in names:  # those with compiled loops, too
    importlib.import_module(name)
from anonymization.methods.registry import methods, explain_missing
assert len(methods()) >= 1
print(len(names), *(name for name in {HEAVY} if name in sys.modules))
"""
    clean = {name: value for name, value in os.environ.items() if name != registry.FOLDER_VARIABLE}
    ended = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=clean, capture_output=True, text=True, check=False
    )
    number, *heavy = ended.stdout.split()
    assert ended.stderr == ""
    assert int(number) > 10
    assert heavy == []
