"""``vp run``: the data of an edition anonymised by a built-in method or by the team's own command.

It is ``vp anonymize`` with what the edition knows filled in: which data sets, their roles and splits, by
which voices are planned, and the folders that ``vp pack`` reads. Training speech gets a voice for each utterance, all
else one for each speaker, unless told otherwise.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shlex
import subprocess
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, cast

from typer import Option

from anonymization.cli import arguments
from anonymization.cli.records import RECORD
from anonymization.cli.run import AnonymizationRequest, run_on
from anonymization.cli.sources import UNDIVIDED, Reading, SpeechSource, read_directories
from anonymization.methods.external.description import PLACEHOLDER, SHELL
from anonymization.methods.external.method import has_graphics_card
from anonymization.methods.external.sandbox import explain_missing_bubblewrap, list_program_folders
from anonymization.methods.voices.pseudo_speakers import Role
from common.atomic_write import write_atomically
from common.errors import CommandError
from common.hashes import compute_sha256
from common.parameters import require_one
from common.seeds import LARGEST_SEED
from common.terminal import FINE, print_text
from portal.client.api import Server, open_portal
from portal.client.workspace import (
    EditionFolder,
    EditionName,
    ExpectedSet,
    Workspace,
    fetch_requirements,
    find_workspace,
)

COMMAND_FILE = "command.toml"


def anonymize_edition(
    edition: EditionName,
    to: EditionFolder = None,
    method: Annotated[
        str | None,
        Option(
            metavar="NAME|FILE.toml",
            help="Such as mcadams-2022 (“vp methods” shows all), or the description of a command.",
        ),
    ] = None,
    command: Annotated[
        str | None,
        Option(
            metavar="TEXT",
            help="Your own program, as you type it in this folder, such as “sox {input} {output} pitch 300”: called "
            "for each recording with two WAV files, or with {input_folder} {output_folder} for many at once; relative "
            "paths begin in this folder, new files beside {output} are not kept.",
        ),
    ] = None,
    reads: Annotated[
        list[Path] | None,
        Option(
            metavar="FOLDER",
            help="Confine the command: it starts in this folder, reads it and the system's alone, and has no network; "
            "repeat it for more folders, such as models. Without it, the command reads what you may read.",
        ),
    ] = None,
    option: arguments.MethodOptions = None,
    targets: arguments.TargetFolder = None,
    target_selection: arguments.TargetSelection = None,
    genders: arguments.Genders = None,
    seed: Annotated[
        int | None, Option(metavar="S", help="Seed of the voices, by default that of an earlier call, else a new one.")
    ] = None,
    level: arguments.VoiceLevel = None,
    out: Annotated[
        Path | None,
        Option(
            metavar="FOLDER",
            help="Folder of the anonymised speech, one for each system; a relative path begins in the current folder. "
            "By default anonymised in DIR.",
        ),
    ] = None,
    takes_all: Annotated[
        bool,
        Option("--all", help="Also anonymise data sets that an archive may leave out, such as training speech."),
    ] = False,
    jobs: Annotated[
        int | None,
        Option(
            min=0,
            metavar="N",
            help="Number of processes, by default one for each core, one for a command of folders.",
        ),
    ] = None,
    container: arguments.Container = "wav",
    limit: arguments.Limit = None,
    server: Server = None,
) -> int:
    """Anonymise the data that vp data fetched, by a built-in method or by a command of your own.

    The speech comes into the folders that vp pack reads. Interrupted at any time, the same command continues where it
    stopped.

        vp run autumn --method mcadams-2022
        vp run autumn --command "sox {input} {output} pitch 300" --limit 5
    """
    require_one({"--method": method, "--command": command})
    workspace = find_workspace(edition, to)
    with open_portal(server) as portal:
        asked = fetch_requirements(portal, workspace.edition)
    wanted = {one.name: one for one in asked.data_sets if one.is_required or takes_all}
    if reads and command is None:
        raise CommandError("--reads: expected with --command; the description of a command names its folders itself.")
    place = out or workspace.anonymised
    known_seed = seed if seed is not None else _kept_seed(place)
    request = AnonymizationRequest(
        method=method or str(_describe_command(workspace, command or "", reads or ())),
        options=option or (),
        source=workspace.data,
        out=place,
        seed=secrets.randbelow(LARGEST_SEED + 1) if known_seed is None else known_seed,
        voices=None,
        level=level,
        targets=targets,
        target_selection=target_selection,
        genders=genders,
        reading=Reading(container=container, suffix=asked.suffix),
        jobs=jobs or (1 if "{input_folder}" in (command or "") else os.cpu_count() or 1),
        is_strict=False,
        limit=limit,
        as_json=False,
    )

    def read(_: Path, reading: Reading) -> SpeechSource:
        source = read_data(workspace, wanted, reading)
        if command is not None:
            source.notes.append(_say_what_it_reads(reads or ()))
        return source

    code = run_on(request, read)
    if code == FINE and limit is None:
        named = out or (workspace.folder if to else None)
        added = " --add DESCRIPTION.pdf" if asked.description_required else ""
        print_text(f"Next: vp pack {workspace.edition}{f' {named}' if named else ''}{added}")
    return code


def _say_what_it_reads(reads: Sequence[Path]) -> str:
    if reads:
        return f"The command reads {', '.join(map(str, reads))} and the system's folders, and has no network."
    return "The command may read what you may read, and use the network; --reads FOLDER confines it."


def read_data(workspace: Workspace, wanted: Mapping[str, ExpectedSet], reading: Reading) -> SpeechSource:
    """Return the originals of these data sets, with the roles and splits of the edition.

    Raises:
        CommandError: they are not all there.
    """
    folders = [workspace.data / name for name in wanted]
    missing = [folder.name for folder in folders if not (folder / "wav.scp").is_file()]
    remedy = f"Run vp data {workspace.edition} first."
    if missing or not folders:
        raise CommandError(f"{workspace.data}: expected the data sets {', '.join(missing or ['asked for'])}. {remedy}")
    try:
        source = read_directories(workspace.data, folders, reading)
    except OSError as error:
        raise CommandError(f"{error.filename}: expected readable data, found “{error.strerror}”. {remedy}") from error
    counts = Counter(each.data_set for each in source.utterances)
    if short := next((one for one in wanted.values() if counts[one.name] != one.utterances), None):
        found = f"expected {short.utterances:,} utterances, found {counts[short.name]:,}"
        problem = next((f" {each.sentence()}" for each in source.problems.report()), "")
        raise CommandError(f"{workspace.data / short.name}: {found}.{problem} {remedy}")
    source.utterances = [
        replace(each, role=cast("Role", wanted[each.data_set].role), split=wanted[each.data_set].split or UNDIVIDED)
        for each in source.utterances
    ]
    source.notes = [
        f"{one.name}: {one.utterances:,} utterances, role {one.role}{f', split {one.split}' if one.split else ''}."
        for one in wanted.values()
    ]
    return source


def _kept_seed(out: Path) -> int | None:
    """Return the seed of an earlier call, so that the next one goes on with it."""
    try:
        found = json.loads((out / RECORD).read_text(encoding="utf-8"))["seed"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return found if isinstance(found, int) else None


def _describe_command(workspace: Workspace, command: str, confined: Sequence[Path]) -> Path:
    """Write the description of the command that was typed; equal commands of equal programs give equal files."""
    line = command.strip()
    if not {"input", "input_folder"} & set(PLACEHOLDER.findall(line)):
        example = "--command 'sox {input} {output} pitch 300'"
        raise CommandError(f"--command: expected {{input}} and {{output}}, as in {example}; found “{line}”.")
    read = subprocess.run([*SHELL[:1], "-n", *SHELL[1:], line], capture_output=True, text=True, check=False)  # noqa: S603
    if read.returncode:
        raise CommandError(f"--command: expected a command that {SHELL[0]} can read, found “{line}” ({_last(read)}).")
    program, found = line.split()[0], ""
    if re.fullmatch(r"[\w.~/+-]+", program):
        looked_up = [*SHELL, f"command -v -- {program}"]
        found = subprocess.run(looked_up, capture_output=True, text=True, check=False).stdout.strip()  # noqa: S603
        if not found:
            where = "is not there or not executable" if "/" in program else "is in no folder of PATH"
            remedy = "Correct its name, or give a path, such as ./ours.sh or python3 ours.py."
            raise CommandError(f"--command: expected a program, found “{program}”, which {where}. {remedy}")
    if confined and (reason := explain_missing_bubblewrap()):
        raise CommandError(
            f"--reads: the command cannot be confined here: {reason}. Without --reads it runs unconfined."
        )
    folder, *reads = [each.resolve() for each in confined] or [Path.cwd()]
    if confined and found.startswith("/"):  # a confined command is not told the PATH of this terminal
        line = shlex.quote(found) + line.removeprefix(program)
        reads += [each for each in list_program_folders(Path(found)) if each.exists()]
    lines = {
        "name": "own-command",
        "title": "Command of the team",
        "version": "1",
        "reference": "the team's own",
        "command": line,
        "is_deterministic": False,
        "isolation": "full" if confined else "none",
        "folder": str(folder),
        "reads": [str(each) for each in reads],
        "needs_gpu": bool(confined) and has_graphics_card(),
    }
    limits = {"time_limit_s": 10**6, "memory_mb": 10**6, "file_size_mb": 10**5, "disk_mb": 10**6, "processes": 1000}
    # JSON writes texts, lists and numbers as TOML has them.
    text = "".join(f"{key} = {json.dumps(value, ensure_ascii=False)}\n" for key, value in lines.items())
    text += "".join(f"# {path}: SHA-256 {compute_sha256(Path(path))}\n" for path in _list_own_files(line))
    text += "\n[limits]\n" + "".join(f"{key} = {value}\n" for key, value in limits.items())
    workspace.folder.mkdir(parents=True, exist_ok=True)
    path = workspace.folder / COMMAND_FILE
    write_atomically(path, text.encode())
    return path


def _list_own_files(line: str) -> list[str]:
    """Return the files among the words of a command, such as a script: with other content it is another command."""
    words = (os.path.expanduser(word.strip("'\"")) for word in re.split(r"[\s;|&()<>=]+", line))  # noqa: PTH111
    return [word for word in dict.fromkeys(words) if os.path.isfile(word)]  # noqa: PTH113 (Path raises where it cannot be)


def _last(process: subprocess.CompletedProcess[str]) -> str:
    return process.stderr.strip().splitlines()[-1] if process.stderr.strip() else f"exit code {process.returncode}"
