"""What an edition expects of a submission, as data that needs no database.

The portal makes it from an edition; as a JSON file it is what ``vp verify`` holds an archive against without a
connection. Conventions: data sets are named as in the corpus, without the suffix of anonymised speech; a hash of
samples is the SHA-256 of little-endian int16.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from common.errors import InputError
from common.file_names import plain_name
from evaluation.protocols.recipes import Recipe, parse_recipe
from portal.intake.archives.reading import ArchiveLimits
from portal.intake.contents import select_offered, select_staying

FORMAT = "voiceprivacy-expected-submission"
VERSION = 1
CHALLENGE_RATE_HZ = 16_000
_DIGEST = re.compile(r"(?:[0-9a-f]{64})?\Z")
_FLAGS = ("audio_required", "scores_required", "description_required")


@dataclass(frozen=True, slots=True)
class ExpectedUtterance:
    """An utterance of the corpus; where only the lists of the corpus are known, samples are None and the hash empty.

    Attributes:
        name: base name of its file without ending.
        samples: length of the original.
        rate_hz: sampling rate of the original.
        pcm_sha256: of the original's samples.
    """

    name: str
    samples: int | None = None
    rate_hz: int | None = None
    pcm_sha256: str = ""


@dataclass(frozen=True, slots=True)
class Inherited:
    """What a further version of a system inherits unless its archive holds it.

    Attributes:
        system: its label.
        version: the newest version that hands anything down.
        speech: the utterances of each data set.
        documents: paths of the newest sound ones.
        newest_documents: paths of those of the newest version, sound or not, which an archive may complete.
    """

    system: str
    version: int
    speech: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    documents: tuple[str, ...] = ()
    newest_documents: tuple[str, ...] = ()

    def documents_beside(self, sent: Sequence[str]) -> list[str]:
        """Return the paths of documents that stay although an archive with the paths `sent` comes."""
        return select_staying(select_offered(self.documents, self.newest_documents, sent, path=str), sent)


@dataclass(frozen=True, slots=True)
class ExpectedSubmission:
    """What a complete archive of an edition holds.

    Attributes:
        edition: its name in addresses.
        recipe_text: the recipe (TOML) that result and score files are held against.
        data_sets: the utterances of each data set whose speech is expected; empty where an edition expects none.
        utterances: by name.
        audio_required, scores_required, description_required: whether an archive without these is refused.
        limits: how large an archive and its parts may be.
        trial_counts: target and nontarget trials by trial set, where the organizer's lists take the place of the
            recipe's counts.
        word_counts: words of the transcripts by recognition set, where the recipe says nothing of them.
        needed_to_rank: of each number that a rank rests on, the kinds of files (`Content`) of which one gives it.
        inherited: what a further version of a system inherits; None for a new system.
        optional_sets: the data sets without which no archive is refused, because no number needs them.
        takes_results: whether result files of teams are read; where the portal alone evaluates they are left out.
    """

    edition: str
    recipe_text: str
    data_sets: Mapping[str, tuple[str, ...]]
    utterances: Mapping[str, ExpectedUtterance]
    audio_required: bool
    scores_required: bool
    description_required: bool
    limits: ArchiveLimits
    trial_counts: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    word_counts: Mapping[str, int] = field(default_factory=dict)
    needed_to_rank: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    inherited: Inherited | None = None
    optional_sets: frozenset[str] = frozenset()
    takes_results: bool = True

    def is_required(self, data_set: str) -> bool:
        """Return whether an archive is refused where speech of this data set is missing."""
        return self.audio_required and data_set not in self.optional_sets

    @property
    def rate_hz(self) -> int:
        """Return the sampling rate of the challenge: that of the originals where all have one, else 16 kHz."""
        rates = {one.rate_hz for one in self.utterances.values() if one.rate_hz}
        return rates.pop() if len(rates) == 1 else CHALLENGE_RATE_HZ

    def recipe(self) -> Recipe:
        """The recipe with the organizer's counts of trials and words.

        Raises:
            ProblemsError: the text is no recipe.
        """
        recipe = parse_recipe(self.recipe_text, file=f"{self.edition}.toml", is_stored=True)
        counted = {
            name: replace(one, targets=self.trial_counts[name][0], nontargets=self.trial_counts[name][1])
            for name, one in recipe.data_sets.items()
            if name in self.trial_counts
        }
        counted |= {
            name: replace(recipe.data_sets[name], words=words)
            for name, words in self.word_counts.items()
            if name in recipe.data_sets
        }
        return replace(recipe, data_sets=MappingProxyType({**recipe.data_sets, **counted}))

    def to_json(self) -> str:
        """Return the content of the file that `from_json` reads; equal expectations give equal text."""
        content: dict[str, Any] = {"format": FORMAT, "version": VERSION, "edition": self.edition}
        content |= {flag: getattr(self, flag) for flag in _FLAGS}
        content |= {"limits": asdict(self.limits), "recipe": self.recipe_text, "data_sets": dict(self.data_sets)}
        utterances = self.utterances.values()
        content["utterances"] = {one.name: (one.samples, one.rate_hz, one.pcm_sha256) for one in utterances}
        content |= {"trial_counts": dict(self.trial_counts), "word_counts": dict(self.word_counts)}
        content |= {"needed_to_rank": dict(self.needed_to_rank)}
        content |= {"optional_sets": sorted(self.optional_sets), "takes_results": self.takes_results}
        if self.inherited is not None:
            content["inherited"] = asdict(self.inherited)
        return json.dumps(content, ensure_ascii=False, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str | bytes) -> ExpectedSubmission:
        """Return what a file of `to_json` says.

        Raises:
            InputError: no such file, or a part of it that is missing or of another kind.
        """
        try:
            content = _in_plain_names(json.loads(text))
        except (ValueError, RecursionError) as error:
            raise InputError(f"expected the JSON of what an edition expects, found: {error}") from error
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise InputError(f"expected JSON of the format “{FORMAT}”, found other JSON")
        if content.get("version") != VERSION:
            found = content.get("version")
            raise InputError(f"expected version {VERSION} of this format, found {found}: take the vp of the portal")
        told_later = {"needed_to_rank": {}, "word_counts": {}, "optional_sets": [], "takes_results": True}
        content = told_later | content  # files made before it was told
        return cls(
            edition=_part(content, "edition", str),
            recipe_text=_part(content, "recipe", str),
            data_sets={name: tuple(map(str, names)) for name, names in _lists(content, "data_sets")},
            utterances={name: _utterance(name, row) for name, row in _lists(content, "utterances")},
            limits=_limits(_part(content, "limits", dict)),
            trial_counts={name: _counts(name, row) for name, row in _lists(content, "trial_counts")},
            word_counts={name: _words(name, found) for name, found in _part(content, "word_counts", dict).items()},
            needed_to_rank={label: tuple(map(str, kinds)) for label, kinds in _lists(content, "needed_to_rank")},
            inherited=_inherited(_part(content, "inherited", dict)) if "inherited" in content else None,
            optional_sets=frozenset(map(str, _part(content, "optional_sets", list))),
            takes_results=_part(content, "takes_results", bool),
            **{flag: _part(content, flag, bool) for flag in _FLAGS},
        )


def _inherited(content: Mapping[str, Any]) -> Inherited:
    sets = {name: tuple(map(str, names)) for name, names in _lists(content, "speech")}
    documents = [tuple(map(str, _part(content, name, list))) for name in ("documents", "newest_documents")]
    return Inherited(_part(content, "system", str), _part(content, "version", int), sets, *documents)


def pcm_sha256(samples: NDArray[np.int16]) -> str:
    """Hash of samples, int16, shape (n,), by which speech is recognised as the same whatever file it comes in."""
    return hashlib.sha256(np.ascontiguousarray(samples, dtype="<i2").data).hexdigest()


def _in_plain_names(content: Any) -> Any:
    """Return JSON with each text of it in NFC, in which names are compared."""
    if isinstance(content, dict):
        return {plain_name(key): _in_plain_names(value) for key, value in content.items()}
    if isinstance(content, list):
        return [_in_plain_names(one) for one in content]
    return plain_name(content) if isinstance(content, str) else content


def _part(content: Mapping[str, Any], name: str, kind: type) -> Any:
    found = content.get(name)
    if not isinstance(found, kind):
        raise InputError(f"{name}: expected {kind.__name__}, found {type(found).__name__}")
    return found


def _lists(content: Mapping[str, Any], name: str) -> Iterator[tuple[str, Sequence[Any]]]:
    for key, row in _part(content, name, dict).items():
        if not isinstance(row, list):
            raise InputError(f"{name}.{key}: expected list, found {type(row).__name__}")
        yield key, row


def _utterance(name: str, row: Sequence[Any]) -> ExpectedUtterance:
    samples, rate_hz, digest = row if len(row) == 3 else (0, 0, None)
    counts = all(one is None or (isinstance(one, int) and one > 0) for one in (samples, rate_hz))
    if not counts or not isinstance(digest, str) or not _DIGEST.match(digest):
        raise InputError(f"utterances.{name}: expected samples, rate and hash, found {row}")
    return ExpectedUtterance(name, samples, rate_hz, digest)


def _counts(name: str, row: Sequence[Any]) -> tuple[int, int]:
    if len(row) != 2 or not all(isinstance(one, int) for one in row):
        raise InputError(f"trial_counts.{name}: expected target and nontarget trials, found {row}")
    return row[0], row[1]


def _words(name: str, found: Any) -> int:
    if not isinstance(found, int):
        raise InputError(f"word_counts.{name}: expected a number of words, found {found}")
    return found


def _limits(row: Mapping[str, Any]) -> ArchiveLimits:
    known = {one.name for one in fields(ArchiveLimits)}
    if set(row) != known or not all(isinstance(one, int | float) for one in row.values()):
        raise InputError(f"limits: expected numbers for {', '.join(sorted(known))}, found {dict(row)}")
    return ArchiveLimits(**row)
