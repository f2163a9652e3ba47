"""Which utterance a speech file is, whether it comes once, and which are missing: the roll call of an archive.

A file is known by its base name, in any folder layout. It serves every data set that holds its utterance, unless it
lies in a folder named after one of them (with or without a suffix such as ``_anon``); then it serves that one. Of the
speech only hashes and lengths are remembered.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from common.file_names import plain_name
from common.problems import Problem, Severity
from portal.intake.expectation import ExpectedSubmission
from portal.intake.problem_codes import describe
from portal.intake.speech import Inspection, length_problem, not_anonymised


@dataclass(frozen=True, slots=True)
class Placed:
    """A speech file, the utterance that it is, and the data sets that it serves by its place."""

    path: str
    utterance: str
    data_sets: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Known:
    """Speech that came: where, by which hash, how long."""

    placed: Placed
    digest: bytes
    samples: int


class Names:
    """Finds the utterance and the data sets of a path."""

    def __init__(self, expected: ExpectedSubmission) -> None:
        recipe = expected.recipe()
        self._suffix = recipe.anonymised_suffix
        self._data_sets = {name: frozenset(names) for name, names in expected.data_sets.items()}
        self._joint = {one.name for one in recipe.data_sets.values()} - set(self._data_sets)
        self._folded: dict[str, str] = {}
        self._folders: dict[str, tuple[str, bool]] = {}  # a folder holds thousands of files
        sets_of: dict[str, list[str]] = {}
        for data_set, names in expected.data_sets.items():
            for name in names:
                sets_of.setdefault(name, []).append(data_set)
        self.sets_of: Mapping[str, tuple[str, ...]] = {name: tuple(sets) for name, sets in sets_of.items()}
        for name in self.sets_of:
            folded = name.casefold()
            self._folded[folded] = "" if folded in self._folded else name

    def place(self, path: str) -> tuple[Placed | None, Problem | None]:
        """Return what a speech file is, and what its owner should know about its name or its folder."""
        parent, _, name = path.rpartition("/")
        stem = plain_name(name.rpartition(".")[0])
        utterance = self._utterance(stem)
        if utterance is None:
            return None, describe("extra", path, stem=stem)
        sets = self.sets_of[utterance]
        folder, is_certain = self._folders.get(parent) or self._folders.setdefault(parent, self._folder(parent))
        if folder and utterance in self._data_sets[folder]:
            sets = (folder,)
        elif folder and is_certain:
            problem = describe("different-set", path, folder=folder, sets=", ".join(sets))
            return Placed(path, utterance, sets), problem.within(sets[0])
        if stem == utterance:
            return Placed(path, utterance, sets), None
        problem = describe("different-name", path, utterance=utterance, stem=stem)
        return Placed(path, utterance, sets), problem.within(sets[0])

    def _utterance(self, stem: str) -> str | None:
        for name in (stem, stem.removesuffix(self._suffix)):
            if name in self.sets_of:
                return name
            if folded := self._folded.get(name.casefold()):
                return folded
        return None

    def _folder(self, parent: str) -> tuple[str, bool]:
        """Return the data set that the innermost such folder is named after; whether that is certain or by its
        beginning."""
        for folder in reversed(parent.split("/")):
            plain = folder.removesuffix(self._suffix)
            if plain in self._data_sets:
                return plain, True
            if plain in self._joint:
                return "", False
            begins = [name for name in self._data_sets if folder.startswith(f"{name}_")]
            if begins:
                return max(begins, key=len), False
        return "", False


class RollCall:
    """What came, by utterance; give every inspection in turn, then ask what is left."""

    def __init__(self, expected: ExpectedSubmission) -> None:
        self._expected, self._rate_hz = expected, expected.rate_hz
        self._keeps_duration = expected.recipe().keeps_duration
        self._originals = {bytes.fromhex(one.pcm_sha256): name for name, one in expected.utterances.items()}
        self._served: dict[str, dict[str, _Known]] = {}
        self._by_digest: dict[bytes, _Known] = {}
        self._copies: dict[Placed, _Known] = {}
        self._differing: dict[Placed, int] = {}
        self.called = 0
        self.faulty: set[str] = set()

    def call(self, placed: Placed, inspection: Inspection) -> tuple[Placed | None, list[Problem]]:
        """Note a file; what of it is to be kept, if anything, and what is to be said of it now.

        What turns on files to come (the length of what may be a copy of another) is said by `findings`.
        """
        self.called += 1
        speech = inspection.speech
        served = self._served.setdefault(placed.utterance, {})
        first = next((served[name] for name in placed.data_sets if name in served), None) if served else None
        new = placed
        if first:
            new = replace(placed, data_sets=tuple(name for name in placed.data_sets if name not in served))
        known = _Known(new, bytes.fromhex(speech.pcm_sha256) if speech else b"", speech.samples.size if speech else 0)
        findings = [self._duplicate(placed, known, first)] if first else []
        if not new.data_sets:
            return None, findings
        served |= dict.fromkeys(new.data_sets, known)
        about = [one.within(new.data_sets[0]) for one in inspection.problems]
        if speech is None or inspection.has_errors:
            self.faulty.add(placed.utterance)
            return None, findings + about
        if (source := self._originals.get(known.digest)) and known.samples:
            self.faulty.add(placed.utterance)
            return None, [*findings, not_anonymised(known.samples, placed.path, source).within(new.data_sets[0])]
        is_silent = any(one.code == "silent" for one in inspection.problems)  # a warning; two silences may be equal
        if not is_silent and self._is_copy(known):
            return None, findings
        if length := self._length(known):
            self._differing[new] = known.samples
            if length.severity is Severity.ERROR:
                self.faulty.add(placed.utterance)
        return (None if placed.utterance in self.faulty else new), findings + about

    def findings(self) -> Iterator[Problem]:
        """Yield what could be told only now: lengths, and which of two files with the same speech is the wrong one."""
        for placed, samples in self._differing.items():
            if placed not in self._copies and (problem := self._length(_Known(placed, b"", samples))):
                yield problem.within(placed.data_sets[0])
        for placed, other in self._copies.items():
            problem = describe("same-as-other", placed.path, samples=other.samples, path=other.placed.path)
            yield problem.within(placed.data_sets[0])

    def served(self) -> int:
        """Return how many pairs of data set and utterance have a file."""
        return sum(len(one) for one in self._served.values())

    def missing(self, inherited: Mapping[str, frozenset[str]]) -> dict[str, list[str]]:
        """Return the utterances without a file, by data set."""
        missing: dict[str, list[str]] = {}
        for data_set, names in self._expected.data_sets.items():
            heirs = inherited.get(data_set, frozenset())
            found = [name for name in names if name not in heirs and data_set not in self._served.get(name, {})]
            if found:
                missing[data_set] = found
        return missing

    def _length(self, known: _Known) -> Problem | None:
        original = self._expected.utterances.get(known.placed.utterance)
        if original is None:
            return None
        told = {"keeps_duration": self._keeps_duration}
        return length_problem(known.samples, original, self._rate_hz, known.placed.path, **told)

    def _duplicate(self, placed: Placed, known: _Known, first: _Known) -> Problem:
        same = bool(known.digest) and known.digest == first.digest
        if not same:
            self.faulty.add(placed.utterance)
        kind = "duplicate/same" if same else "duplicate/other"
        problem = describe(kind, placed.path, utterance=placed.utterance, first=first.placed.path)
        return problem.within(placed.data_sets[0])

    def _is_copy(self, known: _Known) -> bool:
        """Return whether this is the wrong one of two; the one whose length fits its original worse is."""
        other = self._by_digest.setdefault(known.digest, known)
        if other.placed.utterance == known.placed.utterance or self._are_one(other, known):
            return False
        wrong, right = (other, known) if self._misfit(other) > self._misfit(known) else (known, other)
        self._by_digest[known.digest] = right
        self._copies[wrong.placed] = right
        self.faulty.add(wrong.placed.utterance)
        return wrong is known

    def _are_one(self, other: _Known, known: _Known) -> bool:
        """Return whether the corpus itself holds one recording under both names."""
        originals = [self._expected.utterances.get(one.placed.utterance) for one in (other, known)]
        digests = {one.pcm_sha256 if one else "" for one in originals}
        return len(digests) == 1 and "" not in digests

    def _misfit(self, known: _Known) -> int:
        original = self._expected.utterances.get(known.placed.utterance)
        return abs(known.samples - original.samples) if original and original.samples else 0


def missing_findings(
    missing: Mapping[str, Sequence[str]], expected: ExpectedSubmission, *, nothing_came: bool
) -> Iterator[Problem]:
    """Yield sentences on what is missing; a data set of which nothing came is one of them, and so is all speech."""
    needed = [names for data_set, names in missing.items() if expected.is_required(data_set)]
    if nothing_came and missing:
        if needed:
            utterances = len(set().union(*needed))
            yield describe("missing-audio", "the archive", utterances=utterances)
        return
    worst = Severity.ERROR if expected.audio_required else Severity.WARNING
    told: set[str] = set()
    for data_set, names in sorted(missing.items(), key=lambda one: one[0] in expected.optional_sets):
        is_optional = data_set in expected.optional_sets
        severity, kind = (Severity.NOTE, "missing-data-set/optional") if is_optional else (worst, "missing-data-set")
        if len(names) == len(expected.data_sets[data_set]) > 1:
            problem = describe(kind, data_set, severity=severity, count=len(names), data_set=data_set)
            yield problem.within(data_set)
            continue
        for name in names:
            if name not in told:
                told.add(name)
                yield describe("missing", f"{name}.wav", severity=severity).within(data_set)
