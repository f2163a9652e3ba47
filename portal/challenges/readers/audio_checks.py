"""The expensive part of reading a corpus: every file is decoded once.

`check_audio` goes utterance by utterance, so that a job can show progress, store the facts of each
and go on where it stopped; `check_duplicates` follows when all are known.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from evaluation.formats.audio import AudioError, AudioFacts, inspect_audio
from evaluation.formats.problems import Problem, Severity
from portal.challenges.readers.draft import DraftUtterance
from portal.challenges.readers.rows import Place

CHALLENGE_RATE_HZ = 16000
SHORTEST_S = 0.04  # Praat's pitch analysis needs 640 samples at 16 kHz
SHORT_S, LONG_S, LONGEST_S = 0.3, 60.0, 600.0
DURATION_TOLERANCE_S = 0.02


class AudioCheck(NamedTuple):
    """What was found out about one utterance; `facts` is None where the file cannot be used."""

    utterance: DraftUtterance
    facts: AudioFacts | None
    problems: tuple[Problem, ...]


def check_audio(
    utterances: Iterable[DraftUtterance],
    *,
    expected_rate: int = CHALLENGE_RATE_HZ,
    resample: bool = False,
) -> Iterator[AudioCheck]:
    """Inspect the audio of each utterance in turn; utterances without a file are passed over.

    Args:
        expected_rate: sampling rate in Hz.
        resample: accept other rates, since the caller converts.
    """
    for utterance in utterances:
        if utterance.audio is None:
            continue
        try:
            facts = inspect_audio(utterance.audio)
        except AudioError as error:
            yield AudioCheck(utterance, None, (error.problem(utterance.file or utterance.name),))
        else:
            problems = check_utterance_audio(utterance, facts, expected_rate, resample)
            yield AudioCheck(utterance, facts, tuple(problems))


def check_utterance_audio(
    utterance: DraftUtterance,
    facts: AudioFacts,
    expected_rate: int = CHALLENGE_RATE_HZ,
    resample: bool = False,
) -> list[Problem]:
    """Whether a file that decodes is fit for the challenge: rate, channels, length, level."""
    place = Place(utterance.file or utterance.name)
    problems = []
    if facts.rate_hz != expected_rate and not resample:
        remedy = "Allow conversion at import (resample), or convert the corpus."
        problems.append(place.problem("wrong-rate", f"{expected_rate} Hz", f"{facts.rate_hz} Hz", remedy))
    if facts.channels != 1:
        found = f"{facts.channels} channels"
        remedy = "Keep one microphone and write it as mono."
        problems.append(place.problem("not-mono", "one channel", found, remedy))
    problems += _check_duration(utterance, facts.duration_s, place)
    if facts.is_silent:
        found = f"a peak of {facts.peak:.6f} of full scale"
        remedy = "Replace the recording, or remove the utterance."
        problems.append(place.problem("silent", "speech", found, remedy))
    return problems


def _check_duration(utterance: DraftUtterance, duration_s: float, place: Place) -> list[Problem]:
    problems = []
    found = f"{duration_s:.3f} s"
    bounds = (
        (duration_s < SHORTEST_S, "too-short", f"at least {SHORTEST_S} s", Severity.ERROR),
        (
            SHORTEST_S <= duration_s < SHORT_S,
            "short",
            f"at least {SHORT_S} s",
            Severity.WARNING,
        ),
        (LONG_S < duration_s <= LONGEST_S, "long", f"at most {LONG_S:g} s", Severity.WARNING),
        (duration_s > LONGEST_S, "too-long", f"at most {LONGEST_S:g} s", Severity.ERROR),
    )
    remedies = {
        Severity.ERROR: "No measure is defined for it: cut it to an utterance or remove it.",
        Severity.WARNING: "It is kept; listen whether it is one utterance.",
    }
    for is_so, code, expected, severity in bounds:
        if is_so:
            problems.append(place.problem(code, expected, found, remedies[severity], severity))
    stated = utterance.duration_s
    if stated is not None and round(abs(stated - duration_s), 6) > DURATION_TOLERANCE_S:
        remedy = "Correct the listing, or find the right file."
        problems.append(place.problem("contradicting-duration", f"{stated:.3f} s as the listing states", found, remedy))
    return problems


def check_duplicates(sha256_by_utterance: Mapping[str, str]) -> list[Problem]:
    """Files of the same bytes under several utterances: one warning for each such group.

    Args:
        sha256_by_utterance: `AudioFacts.sha256` of every utterance, by its name.
    """
    groups: dict[str, list[str]] = defaultdict(list)
    for utterance in sorted(sha256_by_utterance):
        groups[sha256_by_utterance[utterance]].append(utterance)
    remedy = "One of them is probably the wrong file, or a copy to remove."
    return [
        Place(names[0]).problem(
            "same-audio",
            "a recording of its own for every utterance",
            f"the same file for {', '.join(names[:5])}{' …' if len(names) > 5 else ''}",
            remedy,
            Severity.WARNING,
        )
        for names in groups.values()
        if len(names) > 1
    ]
