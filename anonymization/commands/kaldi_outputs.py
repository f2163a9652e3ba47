"""The lists of an anonymised Kaldi data directory: written from the files that are really there.

``wav.scp`` has a line for each finished utterance, whichever call finished it; its paths start where the output folder
was named from, as Kaldi's do. Lists that describe the original sound, such as features, are not copied.
"""

from __future__ import annotations

import io
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TextIO

from anonymization.commands.records import Row, write_whole
from anonymization.commands.sources import DataSet, Utterance
from evaluation.formats import kaldi
from evaluation.formats.problem_list import ProblemList
from evaluation.formats.problems import Problem

_COPIED = ("enrolls", "trials")


def write_lists(
    folder: Path, data_set: DataSet, utterances: Iterable[Utterance], rows: Mapping[str, Row]
) -> tuple[Problem, ...]:
    """Write the lists of a data directory.

    Args:
        folder: the output folder of the run.
        utterances: of the data set; those without a row are left out of what is written.
        rows: finished utterances by output.

    Returns:
        What is wrong with the lists that are copied. Of a list that is no UTF-8 the lines are copied as they are.
    """
    done = [each for each in utterances if each.output in rows]
    if not done:
        return ()
    problems = ProblemList()
    target = folder / data_set.output
    speakers = {each.name: each.speaker for each in done}
    by_speaker: dict[str, list[str]] = defaultdict(list)
    for name, speaker in speakers.items():
        by_speaker[speaker].append(name)
    durations = {each.name: rows[each.output].samples / rows[each.output].rate_hz for each in done}
    written = {
        "wav.scp": _text(kaldi.write_listing, {each.name: (folder / each.output).as_posix() for each in done}),
        "utt2spk": _text(kaldi.write_listing, speakers),
        "spk2utt": _text(kaldi.write_spk2utt, by_speaker),
        "utt2dur": _text(kaldi.write_utt2dur, durations),
    }
    for name, read, keys in (
        ("spk2gender", kaldi.read_spk2gender, by_speaker.keys()),
        ("text", kaldi.read_text, speakers.keys()),
    ):
        path = data_set.folder / name
        if path.is_file():
            parsed = read(path, str(path))
            problems.keep(parsed.problems)
            content = parsed.content or _lines_as_they_are(path)
            written[name] = _text(kaldi.write_listing, {key: value for key, value in content.items() if key in keys})
    for path in sorted(data_set.folder.iterdir()):
        if path.name.startswith(_COPIED) and "." not in path.name and path.is_file():
            written[path.name] = path.read_text(encoding="utf-8", errors="surrogateescape")
    for name, text in written.items():
        write_whole(target / name, text)
    return problems.report()


def _lines_as_they_are(path: Path) -> dict[str, str]:
    """Key and value of each line of a list that is no text, its bytes kept (``surrogateescape``)."""
    lines = path.read_text(encoding="utf-8", errors="surrogateescape").split("\n")
    return {key: "".join(value).rstrip() for key, *value in (line.split(None, 1) for line in lines if line.strip())}


def _text(write: Callable[[Any, TextIO], None], content: object) -> str:
    file = io.StringIO()
    write(content, file)
    return file.getvalue()
