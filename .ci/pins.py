"""What `make` needs of the files of pins: a part's requirements, its versions, and hashes of wheels for other machines.

Use:
    pins.py PART                    the requirements of an optional part of pyproject.toml, one a line
    pins.py --versions FILE         the pins of a file without their hashes, for a machine whose wheels have none there
    pins.py --hashes FILE PACKAGE INDEX…
                                    add to a package's pin the hashes of its wheels for the processor alone that an
                                    index lists: builds called “+cpu” and those for macOS. An index that cannot be
                                    reached adds none.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

ROOT = Path(__file__).resolve().parents[1]
OLDEST_PYTHON = 11
PIN = re.compile(r"^([\w.-]+)==([^\s;]+)")
TIMEOUT_S = 30


def list_part(part: str) -> list[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    found: list[str] = project["optional-dependencies"][part]
    return found


def list_versions(file: Path) -> list[str]:
    return [found[0] for line in file.read_text().splitlines() if (found := PIN.match(line))]


def find_hashes(page: str, package: str, version: str) -> set[str]:
    """SHA-256 of the wheels of a version that need no graphics card, as a page of a simple index tells them."""
    wheel = (
        rf"{package}-{re.escape(version)}(?P<build>(?:\+|%2B)cpu)?-cp3(?P<python>\d+)-cp3\d+-(?P<platform>[\w.]+)\.whl"
    )
    found = re.finditer(rf"/{wheel}#sha256=(?P<hash>[0-9a-f]{{64}})", page)
    return {
        one["hash"]
        for one in found
        if int(one["python"]) >= OLDEST_PYTHON and (one["build"] or one["platform"].startswith("macosx"))
    }


def add_hashes(text: str, package: str, hashes: set[str]) -> str:
    """The pins with these hashes beside those of the package, whose version names no build any more."""
    pin = re.compile(rf"^{package}==([\d.]+)(?:\+cpu)? \\\n((?:    --hash=sha256:\w+(?: \\)?\n)+)", re.MULTILINE)

    def complete(found: re.Match[str]) -> str:
        known = set(re.findall(r"sha256:(\w+)", found[2])) | hashes
        return f"{package}=={found[1]} \\\n" + " \\\n".join(f"    --hash=sha256:{one}" for one in sorted(known)) + "\n"

    return pin.sub(complete, text)


def read_page(address: str) -> str:
    try:
        with urlopen(address, timeout=TIMEOUT_S) as answer:  # noqa: S310 - the addresses stand in the Makefile
            return str(answer.read().decode())
    except (URLError, TimeoutError):
        return ""


def main(*words: str) -> None:
    match words:
        case ("--versions", file):
            sys.stdout.write(" ".join(list_versions(Path(file))))
        case ("--hashes", file, package, *indexes):
            text = Path(file).read_text()
            version = next(
                one.partition("==")[2] for one in list_versions(Path(file)) if one.startswith(f"{package}==")
            )
            pages = [read_page(f"{index}/{package}/") for index in indexes]
            hashes = set().union(*(find_hashes(page, package, version) for page in pages))
            Path(file).write_text(add_hashes(text, package, hashes))
        case (part,):
            sys.stdout.write("".join(f"{one}\n" for one in list_part(part)))


if __name__ == "__main__":
    main(*sys.argv[1:])
