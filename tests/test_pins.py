"""The files of pins: every package has hashes, no two files disagree, and hashes for other machines are found."""

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PINS = runpy.run_path(str(ROOT / ".ci" / "pins.py"))
FILES = [ROOT / "requirements.txt", ROOT / "requirements-dev.txt", *sorted((ROOT / "requirements").glob("*.txt"))]
PAGE = "".join(
    f'<a href="https://files.example/{build}-cp3{python}-cp3{python}-{platform}.whl#sha256={number:064x}">'
    for number, (build, python, platform) in enumerate(
        [
            ("torch-2.13.0%2Bcpu", 12, "manylinux_2_28_x86_64"),
            ("torch-2.13.0", 12, "manylinux_2_28_x86_64"),
            ("torch-2.13.0", 13, "macosx_14_0_arm64"),
            ("torch-2.13.0", 10, "macosx_14_0_arm64"),
            ("torch-2.12.0+cpu", 12, "manylinux_2_28_x86_64"),
        ]
    )
)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_every_package_is_pinned_with_hashes(file):
    blocks = re.split(r"^(?=[\w.-]+==)", file.read_text(), flags=re.MULTILINE)[1:]
    assert blocks
    assert [block.split()[0] for block in blocks if "--hash=sha256:" not in block] == []


def test_files_agree_on_every_version():
    found = {}
    for pin in (pin for file in FILES for pin in PINS["list_versions"](file)):
        name, _, version = pin.partition("==")
        found.setdefault(name, set()).add(version)
    assert {name: versions for name, versions in found.items() if len(versions) > 1} == {}


def test_parts_are_those_of_the_project():
    for file in sorted((ROOT / "requirements").glob("*.txt")):
        pinned = {pin.partition("==")[0] for pin in PINS["list_versions"](file)}
        wanted = {re.match(r"[\w-]+", one)[0] for one in PINS["list_part"](file.stem)}
        assert wanted <= pinned, file.name


def test_hashes_of_wheels_without_a_graphics_card_are_added():
    found = PINS["find_hashes"](PAGE, "torch", "2.13.0")
    assert found == {f"{0:064x}", f"{2:064x}"}
    known = "f" * 64
    text = f"sympy==1.0 \\\n    --hash=sha256:{known}\ntorch==2.13.0+cpu \\\n    --hash=sha256:{known}\n    # via -r\n"
    assert PINS["add_hashes"](text, "torch", found) == (
        f"sympy==1.0 \\\n    --hash=sha256:{known}\ntorch==2.13.0 \\\n    --hash=sha256:{0:064x} \\\n"
        f"    --hash=sha256:{2:064x} \\\n    --hash=sha256:{known}\n    # via -r\n"
    )
