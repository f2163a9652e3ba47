"""What every column means, in words: of the inputs of an analysis, of the tables that it gives, and of any ratings."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Mapping

from listening.analysis.contents import BY_SCORES, COMMON, CONTENTS
from listening.analysis.rating_columns import COLUMNS, NEEDED
from listening.analysis.tables import Content

WIDTH = 100
_LISTENER = "who, as a keyed hash or any other token"
_SESSION = "in which visit"
_SYSTEM = "original for unprotected speech, else the name of the system"
_UTTERANCE = "source utterance"
_EXCLUDED = "why the session is left out by a standing rule; empty where it counts"
INPUTS: Mapping[str, Mapping[str, str]] = {
    "study.json": {
        "name, title, form": "which study; form is rating, linkability or transcription",
        "tasks, scale": "tasks in the order of asking; lowest and highest rating of each",
        "is_simulated": "true where no human being has listened",
        "labels": "what a system is called on pages",
        "design": "seed, fingerprint and version of the design, and remarks on where the ratings are from",
        "attribution": "whom to cite",
    },
    "settings.json": {"every setting": "as chosen; settings of the analysis, its seed included"},
    "ratings.csv": {
        "listener": _LISTENER,
        "session": _SESSION,
        "task": "verifiability, naturalness or intelligibility",
        "system": _SYSTEM,
        "is_target": "1 where both samples are of one speaker, 0 where not, -1 where no voices are compared",
        "item": "what was presented; equal for everybody who rated it",
        "utterance": f"{_UTTERANCE} of sample A",
        "enrolment": "sample B, empty without one",
        "speaker": "of sample A",
        "gender": "of that speaker: f, m or empty",
        "rating": "on the scale of the task",
        "position": "of the trial in its session, from 1; 0 unknown",
        "purpose": "scored, bridge (rated by everybody), gold (control) or practice; only scored ones enter scores",
        "is_finished": "1 where the session was finished",
        "excluded": _EXCLUDED,
    },
    "placements.csv": {
        "listener": _LISTENER,
        "session": _SESSION,
        "board": "what was presented together; equal for everybody who had it",
        "slot": "of the sample on the board",
        "system": _SYSTEM,
        "utterance": _UTTERANCE,
        "speaker": "true speaker",
        "x": "place on the board, in [0, 1]",
        "y": "place on the board, in [0, 1]; empty on boards of one dimension",
        "group": "as drawn by the listener; empty where none are drawn",
        "declared": "how many speakers the listener counted",
        "excluded": _EXCLUDED,
    },
    "transcripts.csv": {
        "listener": _LISTENER,
        "session": _SESSION,
        "item": "what was presented",
        "system": _SYSTEM,
        "utterance": _UTTERANCE,
        "speaker": "who speaks",
        "text": "as typed",
        "reference": "what was said",
        "nothing": "1 where the listener said that nothing could be understood",
        "excluded": _EXCLUDED,
    },
    "objective.csv": {
        "system": _SYSTEM,
        "utterance": _UTTERANCE,
        "errors": "word errors of the recogniser; empty where not known",
        "words": "words of the reference; empty where not known",
        "pitch_correlation": "with the original, in [-1, 1]; empty where not known",
    },
    "exclusions.csv": {
        "rule": "which rule",
        "session": "which session it catches",
        "reason": "why",
        "stands": "1 where it stands, 0 where it was revoked",
    },
    "texts/*.md": {"whole file": "what evaluators read: kind, language and version are in the name"},
}


def content_words(content: Content) -> str:
    """A table of an analysis: its title, how to read it, and each column."""
    kinds = "raw, normalised" if content in BY_SCORES else "common"
    lines = [f"{content.name} ({kinds}): {content.title}"]
    if content.note:
        lines.append(textwrap.fill(content.note, WIDTH, initial_indent="  ", subsequent_indent="  "))
    lines += _columns((one.name, one.meaning + ("; in [0, 1]" if one.is_share else "")) for one in content.columns)
    return "\n".join(lines)


def tables_words(names: Iterable[str] = ()) -> str:
    """The tables of these names; all without any.

    Raises:
        KeyError: there is no such table.
    """
    chosen = [CONTENTS[name] for name in names] or [*BY_SCORES, *COMMON]
    return "\n\n".join(map(content_words, chosen))


def inputs_words() -> str:
    """The files of inputs in a bundle."""
    return "\n\n".join("\n".join([name, *_columns(columns.items())]) for name, columns in INPUTS.items())


def ratings_words() -> str:
    """The columns of a CSV of ratings from anywhere."""
    said = []
    for one in COLUMNS:
        others = f" Also named {', '.join(one.aliases)}." if one.aliases else ""
        needed = " Needed." if one.name in NEEDED else ""
        said.append((one.name, f"{one.meaning}{needed}{others}"))
    return "\n".join(_columns(said))


def _columns(meanings: Iterable[tuple[str, str]]) -> Iterator[str]:
    listed = list(meanings)
    width = max(len(name) for name, _ in listed) + 4
    for name, meaning in listed:
        yield textwrap.fill(meaning, WIDTH, initial_indent=f"  {name}".ljust(width), subsequent_indent=" " * width)
