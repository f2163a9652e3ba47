"""What an archive must hold in an edition.

An edition asks for the data sets of its recipe that its corpus holds, and for results where teams compute them.
`list_requirements` is what pages and programs tell, `describe_requirements` the same with every utterance, which the
check holds an archive against. Originals are known by the hash of their samples, so that speech that was not anonymised
is recognised. The hashes are made when first needed and kept with the corpus: some milliseconds for each utterance,
once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.db.models import Count
from django.http import Http404

from common.progress import Progress
from evaluation.metrics.word_errors import normalise_transcript
from evaluation.protocols.ranking.policy import needed_to_rank
from portal.challenges.models import Corpus, DataSet, Edition, Role, TrialList, Utterance
from portal.challenges.selectors import expected_sets, export_recipe, find_trials
from portal.core.storage import load_audio
from portal.intake.archives.limits import ArchiveLimits
from portal.intake.contents import RESULT_KINDS
from portal.intake.expectation import (
    CHALLENGE_RATE_HZ,
    ExpectedSubmission,
    ExpectedUtterance,
    pcm_sha256,
)
from portal.submissions.inheritance import find_inheritance
from portal.submissions.models import System
from speech.audio.files import AudioError

BATCH = 500
SPEECH_FORMAT = "wav or flac, pcm16, mono"


@dataclass(frozen=True)
class AskedSet:
    """A data set whose speech is asked for.

    Attributes:
        directory: its folder in an archive that holds a folder for each set.
        utterances: how many it has; one file each.
        is_required: whether an archive without it is refused.
    """

    name: str
    directory: str
    role: str
    split: str
    utterances: int
    is_required: bool


@dataclass(frozen=True)
class ArchiveRequirements:
    """What an archive of an edition must hold, without the names of its utterances.

    Attributes:
        suffix: of anonymised speech in the names of folders.
        evaluated_by: ``teams``, ``portal`` or ``both``, as the recipe says.
        result_kinds: the kinds of files (`Content`) by which a team reports results; empty where the portal computes.
        results_required: whether an archive without score files is refused.
        rate_hz: the sampling rate of the challenge.
    """

    edition: str
    suffix: str
    evaluated_by: str
    data_sets: tuple[AskedSet, ...]
    audio_required: bool
    result_kinds: tuple[str, ...]
    results_required: bool
    description_required: bool
    rate_hz: int
    largest_archive_bytes: int


def list_requirements(edition: Edition) -> ArchiveRequirements:
    """Return what an archive of this edition must hold, in a few queries whatever the size of its corpus."""
    recipe, sets = edition.recipe, expected_sets(edition)
    counted = DataSet.utterances.through.objects.filter(dataset__in=sets).order_by()
    counts = dict(counted.values_list("dataset").annotate(Count("pk")))
    audio_required, optional = requires_audio(edition), _optional_sets(edition, sets)
    rates = counted.exclude(utterance__rate_hz=None).values_list("utterance__rate_hz", flat=True).distinct()[:2]
    found = list(rates)
    return ArchiveRequirements(
        edition=edition.name,
        suffix=recipe.anonymised_suffix,
        evaluated_by=recipe.evaluation.by,
        data_sets=tuple(
            AskedSet(
                name=one.name,
                directory=f"{one.name}{recipe.anonymised_suffix}",
                role=one.role,
                split=one.split,
                utterances=counts.get(one.pk, 0),
                is_required=audio_required and one.name not in optional,
            )
            for one in sets
        ),
        audio_required=audio_required,
        result_kinds=tuple(map(str, RESULT_KINDS)) if recipe.evaluation.by_teams else (),
        results_required=requires_scores(edition),
        description_required=edition.description_required,
        rate_hz=found[0] if len(found) == 1 and found[0] else CHALLENGE_RATE_HZ,
        largest_archive_bytes=edition.largest_archive_bytes,
    )


def expected_set_for(edition: Edition, name: str) -> DataSet:
    """Return a data set that the edition asks for.

    Raises:
        Http404: it asks for none of this name.
    """
    for one in expected_sets(edition):
        if one.name == name:
            return one
    raise Http404


def list_expected(data_set: DataSet) -> Iterator[tuple[Any, ...]]:
    """Yield the utterances of a data set in the order of their names, with samples and rate; the heading first."""
    yield "utterance", "samples", "rate_hz"
    rows = data_set.utterances.order_by("name").values_list("name", "samples", "rate_hz")
    yield from rows.iterator(chunk_size=BATCH)


def requires_audio(edition: Edition) -> bool:
    """Return whether an archive without speech is refused: always where the portal computes from it."""
    return edition.corpus_id is not None and (edition.audio_required or edition.recipe.evaluation.by_portal)


def requires_scores(edition: Edition) -> bool:
    """Return whether an archive without score files is refused: never where the portal alone evaluates."""
    return edition.scores_required and edition.recipe.evaluation.by_teams


def describe_requirements(
    edition: Edition, progress: Progress | None = None, *, system: System | None = None
) -> ExpectedSubmission:
    """Return what the archives of this edition are held against; without a corpus no audio is expected.

    Args:
        system: of which a further version is expected; then what it would inherit now is told, too.
        progress: is told of the work that the first call for a corpus makes (stage, done, total).
    """
    if edition.corpus is not None:
        hash_originals(edition.corpus, progress)
    sets = expected_sets(edition)
    return ExpectedSubmission(
        edition=edition.name,
        recipe_text=export_recipe(edition),
        data_sets=_members(sets),
        utterances=_utterances(sets),
        audio_required=requires_audio(edition),
        scores_required=requires_scores(edition),
        description_required=edition.description_required,
        limits=ArchiveLimits.for_archives(edition.largest_archive_bytes),
        trial_counts=_trial_counts(sets),
        word_counts=_word_counts(edition, sets),
        needed_to_rank={} if edition.recipe.evaluation.by_portal else _needed_to_rank(edition),
        optional_sets=_optional_sets(edition, sets),
        takes_results=edition.recipe.evaluation.by_teams,
        inherited=find_inheritance(system).told(system) if system is not None else None,
    )


def _optional_sets(edition: Edition, sets: Iterable[DataSet]) -> frozenset[str]:
    """Return the sets no number needs: training speech, unless the portal trains an attacker on it."""
    if edition.recipe.evaluation.training:
        return frozenset()
    return frozenset(one.name for one in sets if one.role == Role.TRAINING)


def _needed_to_rank(edition: Edition) -> Mapping[str, tuple[str, ...]]:
    return needed_to_rank(edition.recipe, edition.track, edition.leaderboard_policy)


def _members(sets: list[DataSet]) -> dict[str, tuple[str, ...]]:
    members: dict[str, list[str]] = {one.name: [] for one in sets}
    rows = DataSet.utterances.through.objects.filter(dataset__in=sets).order_by("utterance__name")
    for data_set, utterance in rows.values_list("dataset__name", "utterance__name").iterator():
        members[data_set].append(utterance)
    return {data_set: tuple(names) for data_set, names in members.items()}


def _trial_counts(sets: list[DataSet]) -> dict[str, tuple[int, int]]:
    """Return the target and nontarget trials of each trial set that is compared with one enrolment set."""
    counts: dict[str, list[tuple[int, int]]] = {}
    columns = ("trial_set__name", "target_count", "nontarget_count")
    for name, targets, nontargets in TrialList.objects.filter(trial_set__in=sets).values_list(*columns):
        counts.setdefault(name, []).append((targets, nontargets))
    return {name: lists[0] for name, lists in counts.items() if len(lists) == 1}


def _word_counts(edition: Edition, sets: list[DataSet]) -> dict[str, int]:
    """Count words of the recognition sets whose number the recipe does not say, where all are written down."""
    by_name, counts = {one.name: one for one in sets}, {}
    for one in edition.recipe.sets("recognition"):
        parts = [by_name[name] for name in edition.recipe.list_parts(one, by_name)] if one.words is None else []
        spoken = (
            Utterance.objects.filter(data_sets__in=parts).order_by().distinct() if parts else Utterance.objects.none()
        )
        texts = dict(spoken.values_list("pk", "transcript"))
        if texts and all(texts.values()) and one.utterances in (None, len(texts)):
            counts[one.name] = sum(len(normalise_transcript(text).split()) for text in texts.values())
    return counts


def write_trials(edition: Edition, folder: Path) -> dict[str, Path]:
    """Write the organizer's trials into a folder, a file for each trial set of the recipe that has a list."""
    written = {}
    for number, one in enumerate(edition.recipe.sets("trial")):
        if (text := find_trials(edition.corpus, one.name, one.enrolment)) is not None:
            written[one.name] = folder / f"{number}.trials"
            written[one.name].write_text(text, encoding="utf-8", newline="\n")
    return written


def _utterances(sets: list[DataSet]) -> dict[str, ExpectedUtterance]:
    rows = Utterance.objects.filter(data_sets__in=sets).order_by("name").distinct()
    return {
        name: ExpectedUtterance(name=name, samples=samples, rate_hz=rate_hz, pcm_sha256=pcm_sha256)
        for name, samples, rate_hz, pcm_sha256 in rows.values_list("name", "samples", "rate_hz", "pcm_sha256")
    }


def hash_originals(corpus: Corpus, progress: Progress | None = None) -> int:
    """Hash the samples of every original that has none yet; how many those were. Each batch is kept at once.

    An original that cannot be read stays without a hash: it must not keep a team from submitting.
    """
    missing = list(corpus.utterances.filter(pcm_sha256="").exclude(audio="").only("pk", "audio").order_by("pk"))
    for start in range(0, len(missing), BATCH):
        batch = missing[start : start + BATCH]
        for done, utterance in enumerate(batch, start=start + 1):
            utterance.pcm_sha256 = _hash_original(utterance.audio)
            if progress:
                progress("Hashing the originals", done, len(missing))
        Utterance.objects.bulk_update(batch, ["pcm_sha256"])
    return len(missing)


def _hash_original(key: str) -> str:
    try:
        samples, _ = load_audio(key)
    except (AudioError, OSError):
        return ""
    return pcm_sha256(samples)
