"""``vp`` as one file: a wheel of this package, everything of ours that it imports, and the packages that it needs.

The wheel is made from the sources that run, by the standard library alone, and is the same bytes every time. Our
packages have common names (``common``, ``portal``), so they lie inside of one package of a name of its own, and are put
on the path only by the program. Imports are found in the source text: those inside of functions, too.
"""

from __future__ import annotations

import ast
import hashlib
import io
import sys
import zipfile
from base64 import urlsafe_b64encode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from portal.client import RELEASE
from portal.client.commands import COMMANDS, OURS

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = "voiceprivacy_vp"
# Started by name and not imported, as the commands are.
_STARTED = ("anonymization.methods.external.supervisor",)
# What most commands import, and the package that brings it with the versions that the portal itself takes. Others say
# what to install.
REQUIRES: Mapping[str, str] = {
    "backports.zstd": "backports.zstd>=1.2; python_version < '3.14'",
    "httpx": "httpx>=0.28",
    "numba": "numba>=0.61",
    "numpy": "numpy>=2",
    "pypdf": "pypdf>=6",
    "rapidfuzz": "rapidfuzz>=3.14",
    "rich": "rich>=14",
    "scipy": "scipy>=1.13",
    "soundfile": "soundfile>=0.13",
    "soxr": "soxr>=0.5",
    "threadpoolctl": "threadpoolctl>=3.5",
    "typer": "typer>=0.28,<0.29",
}
# What is read beside modules, and a folder of such files alone.
_DATA_FOLDER = "listening/presets"
_DATA = (".mplstyle", ".npy", ".safetensors", ".toml", ".txt")
PYTHON = "3.11"  # or newer
_MOMENT = (2020, 1, 1, 0, 0, 0)
_START = '''"""The VoicePrivacy Portal from the shell: the program vp."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "lib"))


def main():
    from portal.client.main import main as run

    return run()
'''
_KIND = "Wheel-Version: 1.0\nGenerator: voiceprivacy-portal\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
_RUN = f"import sys\n\nfrom {PACKAGE} import main\n\nif __name__ == '__main__':\n    sys.exit(main())\n"


@dataclass(frozen=True, slots=True)
class Wheel:
    """A file that pip installs. sha256: of its content, hexadecimal."""

    name: str
    content: bytes
    sha256: str


@cache
def build_wheel() -> Wheel:
    """Return the wheel of this release; made once in a process, within a second."""
    about = f"{PACKAGE}-{RELEASE}.dist-info"
    files = {f"{PACKAGE}/__init__.py": _START.encode(), f"{PACKAGE}/__main__.py": _RUN.encode()}
    files |= {f"{PACKAGE}/lib/{name}": content for name, content in _sources().items()}
    files |= {
        f"{about}/METADATA": _metadata().encode(),
        f"{about}/WHEEL": _KIND.encode(),
        f"{about}/entry_points.txt": f"[console_scripts]\nvp = {PACKAGE}:main\n".encode(),
    }
    rows = [f"{name},sha256={_record_digest(content)},{len(content)}\n" for name, content in files.items()]
    files[f"{about}/RECORD"] = "".join([*rows, f"{about}/RECORD,,\n"]).encode()
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, _MOMENT)
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            archive.writestr(entry, content)
    content = whole.getvalue()
    return Wheel(f"{PACKAGE}-{RELEASE}-py3-none-any.whl", content, hashlib.sha256(content).hexdigest())


def find_modules() -> tuple[dict[str, Path], frozenset[str]]:
    """Return every module of ours that ``vp`` may load with its file, and the names of all else that these import."""
    commands = [target.partition(":")[0] for part in COMMANDS.values() for target, _ in part.values()]
    waiting = ["portal.client.__main__", *commands, *_STARTED]
    found: dict[str, Path] = {}
    others: set[str] = set()
    while waiting:
        name = waiting.pop()
        path = _find_file(name)
        if name in found or path is None:
            continue
        found[name] = path
        if "." in name:
            waiting.append(name.rpartition(".")[0])
        for imported in _imports(path):
            top = imported.partition(".")[0]
            if top in OURS:
                waiting.append(imported)
            elif top not in sys.stdlib_module_names:
                others.add(top)
    return dict(sorted(found.items())), frozenset(others)


def _find_file(module: str) -> Path | None:
    """Return the file of a module; None for what is a name in one."""
    base = ROOT.joinpath(*module.split("."))
    return next((path for path in (base / "__init__.py", base.with_suffix(".py")) if path.is_file()), None)


def _imports(path: Path) -> Iterator[str]:
    """Modules that a file imports, and names that may be such."""
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{one.name}" for one in node.names)


def _sources() -> dict[str, bytes]:
    """Modules, and what lies beside them and is no module, by path from the root."""
    paths = set(find_modules()[0].values())
    for folder in {ROOT / _DATA_FOLDER, *(path.parent for path in paths)}:
        paths |= {path for path in folder.iterdir() if path.suffix in _DATA}
    return {path.relative_to(ROOT).as_posix(): path.read_bytes() for path in sorted(paths)}


def _metadata() -> str:
    lines = [
        "Metadata-Version: 2.1",
        f"Name: {PACKAGE.replace('_', '-')}",
        f"Version: {RELEASE}",
        "Summary: The VoicePrivacy Portal from the shell: data, anonymisation, packing, submission, results.",
        "License: BSD-3-Clause",
        f"Requires-Python: >={PYTHON}",
        *(f"Requires-Dist: {requirement}" for requirement in REQUIRES.values()),
    ]
    return "\n".join(lines) + "\n"


def _record_digest(content: bytes) -> str:
    return urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
