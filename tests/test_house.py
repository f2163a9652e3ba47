"""The house stands as it was drawn: imports point one way, each contract catches a violation, and starting stays light.

The contracts are in `pyproject.toml` and kept by `make lint`; here each of them is shown to catch what it forbids.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from portal.core.templatetags.portal import moment

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("common", "speech", "portal", "listening", "evaluation", "anonymization")
HEAVY = (
    *("torch", "torchaudio", "pandas", "matplotlib", "pyworld", "parselmouth", "numba", "scipy", "soundfile", "soxr"),
    *("onnxruntime", "faster_whisper", "ctranslate2", "moonshine_voice", "safetensors", "num2words", "sklearn"),
    "amfm_decompy",
)
AT_START = ("torch", "torchaudio", "pandas", "matplotlib", "pyworld", "parselmouth", "numba", "scipy.signal")


def modules_after(code: str, data_dir: Path) -> list[str]:
    """The heavy libraries that a fresh process holds after running the code."""
    program = f"{code}\nimport sys\nprint('HELD', *[name for name in {AT_START!r} if name in sys.modules])"
    environment = os.environ | {"DJANGO_SETTINGS_MODULE": "tests.settings", "PORTAL_DATA_DIR": str(data_dir)}
    answer = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr
    [held] = [line for line in answer.stdout.splitlines() if line.startswith("HELD")]
    return held.split()[1:]


STARTS = """
import django
django.setup()
from django.core.management import call_command
call_command("check")
import portal.config.wsgi
from django.urls import get_resolver
get_resolver().url_patterns
from django.test import Client
assert Client(headers={"host": "localhost"}).get("/log-in/").status_code == 200
"""


def test_no_start_imports_a_heavy_library(tmp_path):
    """Neither that of manage.py nor that of a web process, nor the first request."""
    assert modules_after(STARTS, tmp_path) == []


VIOLATIONS = {
    "Libraries never see Django": [
        ("evaluation/metrics/zebra.py", "import django.utils.timezone"),
        ("listening/design/requirements.py", "import celery"),
        ("portal/intake/report.py", "import rest_framework"),
    ],
    "Order of the libraries": [
        ("evaluation/metrics/zebra.py", "def late() -> None:\n    import evaluation.objective_results.values"),
        ("speech/audio/level.py", "import evaluation.metrics.zebra"),
        ("common/problems.py", "import speech.audio.level"),
    ],
    "Order of the apps": [
        ("portal/core/audit.py", "import portal.jobs.models"),
        ("portal/jobs/rules.py", "import evaluation.app.models"),
        ("listening/app/results/pages.py", "import portal.leaderboard.selectors"),
    ],
    "No circles among the parts of any package": [
        ("portal/jobs/models.py", "def late() -> None:\n    import portal.jobs.services")
    ],
}


@pytest.fixture(scope="module")
def contracts_after_violations(tmp_path_factory) -> str:
    """What the contracts say of a copy of the code in which every violation is planted."""
    folder = tmp_path_factory.mktemp("house")
    for package in PACKAGES:
        shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__", "*.mo", "*.po"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    for plants in VIOLATIONS.values():
        for name, line in plants:
            file = folder / name
            file.parent.mkdir(exist_ok=True)
            file.write_text(f"{file.read_text() if file.exists() else ''}\n{line}\n")
    program = Path(sys.executable).with_name("lint-imports")
    command = [program, "--no-cache", "--verbose"]
    answer = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    assert answer.returncode == 1
    return answer.stdout


@pytest.mark.parametrize("contract", VIOLATIONS)
def test_contract_catches_planted_violations(contract, contracts_after_violations):
    text = " ".join(contracts_after_violations.split())
    assert f"{contract} BROKEN" in text
    for name, line in VIOLATIONS[contract]:
        importer = name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        imported = line.rpartition("import ")[2] if "import " in line else ""
        if imported.split(".")[0] not in PACKAGES:
            imported = imported.split(".")[0]  # a library from outside is one module
        seen = f"{importer} -> {imported}" if imported else importer.rpartition(".")[2]
        assert seen in text or contract.startswith("No circles")


# Imports inside of functions ------------------------------------------------------------------------


def python_files() -> list[Path]:
    files = (path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
    return sorted(path for path in files if "migrations" not in path.parts)


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


# What an import may stand in; expressions hold none.
_WITH_STATEMENTS = (ast.Module, ast.stmt, ast.ExceptHandler, ast.match_case)


def imports(tree: ast.AST) -> Iterator[tuple[int, str, bool]]:
    """Line and module of each import, and whether it is inside of a function; those for type checkers do not count."""
    waiting = [(tree, False)]
    while waiting:
        node, is_inside = waiting.pop()
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING":
            continue
        is_start = isinstance(node, ast.FunctionDef) and node.name in ("ready", "__getattr__")
        is_inside |= isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not is_start
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from ((node.lineno, f"{node.module}.{name.name}", is_inside) for name in node.names)
        elif isinstance(node, ast.Import):
            yield from ((node.lineno, name.name, is_inside) for name in node.names)
        elif isinstance(node, _WITH_STATEMENTS):
            waiting += ((one, is_inside) for one in ast.iter_child_nodes(node))


def light_imports_inside(sources: dict[str, str]) -> list[str]:
    """Imports inside of functions of modules of ours that load no heavy library, as ``module:line imported``."""
    found = {name: list(imports(ast.parse(source))) for name, source in sources.items()}

    def ours(name: str) -> str | None:
        return name if name in found else (name.rpartition(".")[0] if name.rpartition(".")[0] in found else None)

    outer = {name: [one for _, one, is_inside in rows if not is_inside] for name, rows in found.items()}
    heavy = {name for name, names in outer.items() if any(one.split(".")[0] in HEAVY for one in names)}
    while more := {name for name, names in outer.items() if name not in heavy and {ours(one) for one in names} & heavy}:
        heavy |= more
    return [
        f"{name}:{line} {one}"
        for name, rows in found.items()
        for line, one, is_inside in rows
        if is_inside and ours(one) is not None and ours(one) not in heavy
    ]


def test_only_what_is_heavy_is_imported_inside_of_functions():
    assert light_imports_inside({module_name(path): path.read_text() for path in python_files()}) == []


def test_light_import_inside_of_a_function_is_found():
    sources = {
        "a.light": "",
        "a.kernel": "import numba",
        "a.engine": "from a import kernel",
        "b": "def f():\n    from a import light\n    from a.engine import run\n    import a.kernel",
    }
    assert light_imports_inside(sources) == ["b:2 a.light"]


# Form of the files ----------------------------------------------------------------------------------


def test_only_tables_of_numbers_have_a_layout_of_their_own():
    """``# fmt: skip`` stands on what holds at least eight numbers."""
    wrong = []
    for path in python_files():
        source = path.read_text()
        if "# fmt: skip" not in source:
            continue
        for node in ast.walk(ast.parse(source)):
            if not isinstance(node, ast.stmt) or "# fmt: skip" not in source.splitlines()[node.end_lineno - 1]:
                continue
            if any(isinstance(one, ast.stmt) for one in ast.walk(node) if one is not node):
                continue
            numbers = sum(
                1 for one in ast.walk(node) if isinstance(one, ast.Constant) and isinstance(one.value, int | float)
            )
            if numbers < 8:
                wrong.append(f"{module_name(path)}:{node.lineno}")
    assert wrong == []


def test_templates_keep_to_160_columns():
    """But where a line is one tag or one translated sentence, or where a break would put a space between tags."""
    long = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in sorted((ROOT / "templates").rglob("*.html"))
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if len(line) > 160 and "{%" not in line
    ]
    assert long == []


def test_comments_of_templates_end_on_their_line():
    """Django shows what goes on in the next one."""
    wrong = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in sorted((ROOT / "templates").rglob("*"))
        if path.is_file()
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if line.count("{#") != line.count("#}")
    ]
    assert wrong == []


def test_moments_of_pages_are_to_the_second():
    """Parts of a second are of no use there, and a page with 10.8765 seconds seems to show a number 0.8765."""
    assert moment(datetime(2026, 11, 28, 18, 1, 10, 876543, tzinfo=UTC)) == "2026-11-28T18:01:10+00:00"
    assert [str(path) for path in (ROOT / "templates").rglob("*.html") if "|date:'c'" in path.read_text()] == []


def test_breadcrumbs_begin_with_a_list_and_never_with_a_single_thing():
    """Lists have addresses of their own, or stand in a trail; the address of a thing is asked of it."""
    wrong = [
        path.name
        for path in sorted((ROOT / "templates").rglob("*.html"))
        if (crumbs := re.search(r"block breadcrumbs %}(.*?){% endblock", path.read_text(), re.S))
        and re.match(r"({% if [^%]* %})?<li><a\s+href=\"{{ (?!login_url)", crumbs[1])
    ]
    trails = [path.read_text() for path in sorted((ROOT / "templates").rglob("_trail.html"))]
    firsts = [found[1] for text in trails if (found := re.search(r"href=\"({.)", text))]
    assert (wrong, set(firsts)) == ([], {"{%"})


def test_features_do_not_start_each_other_by_signals():
    """Django's own signals (of its log-in library, of deleted rows) may be listened to. One is made here: an accepted
    submission is evaluated by an app above, which that of submissions cannot import."""
    made = [module_name(path) for path in python_files() if re.search(r"= (?:\w+\.)?Signal\(", path.read_text())]
    assert made == ["portal.submissions.signals"]


def test_docstrings_name_modules_that_exist_and_tell_conventions_once():
    wrong = []
    for path in python_files():
        source = path.read_text()
        doc = source.split('"""', 2)[1] if source.startswith('"""') else ""
        if len(re.findall(r"\bConventions?\b", doc)) > 1:
            wrong.append(f"{module_name(path)}: conventions twice")
        if re.search(r"\bPublic: `", doc):
            wrong.append(f"{module_name(path)}: a list of names that the code says anyway")
        named = re.findall(rf"(?<!`)`((?:{'|'.join(PACKAGES)})(?:\.\w+)+)`(?!`)", source)
        wrong += [f"{module_name(path)}: {name}" for name in named if not names_something(name)]
    assert wrong == []


def names_something(name: str) -> bool:
    """Whether it is one of our modules or packages, or something that one of them defines."""
    parts = name.split(".")
    for depth in range(len(parts), 0, -1):
        place = ROOT.joinpath(*parts[:depth])
        file = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
        if place.is_dir() or file.is_file():
            rest = parts[depth:]
            return not rest or (file.is_file() and re.search(rf"\b{rest[0]}\b", file.read_text()) is not None)
    return False
