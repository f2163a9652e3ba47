"""Freeze what the demo's portal shows, and compare: every number, every answer of the API, every page of each role.

    .venv/bin/python -m tests.golden.demo write FOLDER    write what is found now into a folder
    .venv/bin/python -m tests.golden.demo compare         compare it with tests/golden/demo, list every difference

The portal is that of `make demo MODELS=no` on a data folder of its own with a fixed secret key, from which listeners
have their names. It is read over HTTP alone, by its links, its files and the description of its API, so that whatever
is behind these can be built anew. `demo_rules` lists what is left out because it differs from run to run.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.golden.demo_comparison import differences
from tests.golden.demo_reading import Api, Reader, read_pages, read_session
from tests.golden.demo_rules import pack, share, unpack, unshare, write_json

ROOT = Path(__file__).resolve().parents[2]
FROZEN = Path(__file__).parent / "demo"
SECRET_KEY = "the golden demo: its listeners have the same names in each run"
ROLES = {"visitor": "", "team": "wide", "organizer": "organizer", "operator": "operator"}
ENDS = "Ctrl-C ends it"
PATIENCE_S = 120


def read_portal(base: str, lines: Sequence[str]) -> dict[str, Any]:
    """Return all that is frozen of a running demo, by the name of its file.

    Args:
        base: its address.
        lines: what the demo printed: accounts, and the link of evaluators.
    """
    passwords = dict(re.findall(r"\b(\w+@demo\.example) ([a-z2-7]{12})\b", "\n".join(lines)))
    [link] = {found[1] for line in lines if (found := re.search(r"http://[^/]+(/listen/join/\S+)", line))}
    pages: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    found: dict[str, dict[str, list[tuple[str, Any]]]] = defaultdict(lambda: defaultdict(list))
    for role, account in ROLES.items():
        email = f"{account}@demo.example" if account else ""
        reader = Reader(base, email, passwords.get(email, ""))
        for address, answer in Api(reader).read().items():
            found[f"api-{address.split('/')[2]}"][address].append((role, answer))
        titles, files = read_pages(reader)
        for address, title in titles.items():
            pages[address][title].append(role)
        for address, content in files.items():
            found[f"files-{address.split('/')[1]}"][address].append((role, content))
    for address, title in dict.fromkeys(read_session(base, link)):
        pages[address][title].append("evaluator")
    shown = {address: {title: ", ".join(roles) for title, roles in titles.items()} for address, titles in pages.items()}
    return {"pages": dict(sorted(shown.items()))} | {
        name: {address: _by_roles(answers) for address, answers in sorted(of_file.items())}
        for name, of_file in found.items()
    }


def _by_roles(answers: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return each answer once, by all roles that get it."""
    distinct: list[tuple[list[str], Any]] = []
    for role, answer in answers:
        for roles, other in distinct:
            if other == answer:
                roles.append(role)
                break
        else:
            distinct.append(([role], answer))
    return {", ".join(roles): answer for roles, answer in distinct}


def write(found: Mapping[str, Any], folder: Path) -> None:
    """Write one JSON file for each name; of what is frozen, files of other names go."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in FROZEN.glob("*.json") if folder.resolve() == FROZEN else ():
        path.unlink()
    for name, content in share(pack({name: found[name] for name in sorted(found)})).items():
        (folder / f"{name}.json").write_text(write_json(content), encoding="utf-8")


def read_frozen(folder: Path = FROZEN) -> dict[str, Any]:
    """Return what was written."""
    written = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))}
    return unpack(unshare(written))


def compare(found: Mapping[str, Any]) -> list[str]:
    """Return every difference from what is frozen: the file, where in it, what was expected and found."""
    frozen = read_frozen()
    written = json.loads(json.dumps({name: found[name] for name in sorted(found)}))
    return [line.removeprefix(" › ") for line in differences(frozen, written)]


@contextmanager
def started_demo(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Run the demo without models in this folder: its address and its lines, once all is there; ended by one Ctrl-C."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    known = {name: value for name, value in os.environ.items() if not name.startswith(("PORTAL_", "DJANGO_"))}
    own = {"PORTAL_DATA_DIR": str(folder), "PORTAL_ADDRESS": address, "PORTAL_SECRET_KEY": SECRET_KEY}
    process = subprocess.Popen(
        [sys.executable, "manage.py", "demo", "--without-models"],
        cwd=ROOT,
        env=known | own,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    lines: list[str] = []
    try:
        for line in process.stdout:
            lines.append(line.rstrip())
            if ENDS in line:
                break
        else:
            sys.exit("The demo ended early:\n" + "\n".join(lines))
        yield f"http://{address}", lines
    finally:
        os.killpg(process.pid, signal.SIGINT)
        try:
            process.communicate(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.golden.demo", description=__doc__.partition("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("write").add_argument("folder", type=Path)
    commands.add_parser("compare")
    given = parser.parse_args(arguments)
    print("Running the demo without models; this takes some minutes")
    with TemporaryDirectory(prefix="golden-demo-") as folder, started_demo(Path(folder)) as (base, lines):
        found = read_portal(base, lines)
    if given.command == "write":
        write(found, given.folder)
        return 0
    lines = compare(found)
    print(*lines, f"{len(lines)} differences from tests/golden/demo", sep="\n")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
