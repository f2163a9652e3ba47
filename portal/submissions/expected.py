"""What an archive must hold in an edition: the data sets and originals of its corpus, and its recipe.

Originals are known by the hash of their samples, so that speech that was not anonymised is recognised. The hashes are
made when first needed and kept with the corpus: some milliseconds for each utterance, once.
"""

from __future__ import annotations

from collections.abc import Callable

from django.db.models import Q

from evaluation.formats.audio import AudioError
from evaluation.protocols.ranking_needs import needed_to_rank
from evaluation.protocols.recipes import FOLDER
from portal.challenges.models import Corpus, DataSet, Edition, Role, TrialList, Utterance
from portal.core.audio import load_audio
from portal.submissions.inheritance import legacy_of
from portal.submissions.intake.archives import Limits
from portal.submissions.intake.expected import ExpectedSubmission, ExpectedUtterance, pcm_sha256
from portal.submissions.models import System

BATCH = 500
UNPACKED_BYTES_FOR_PACKED = 4
Progress = Callable[[str, int, int], None]


def expected_of(
    edition: Edition, progress: Progress | None = None, *, system: System | None = None
) -> ExpectedSubmission:
    """What the archives of this edition are held against; without a corpus no audio is expected.

    Args:
        system: of which a further version is expected; then what it would inherit now is told, too.
        progress: is told of the work that the first call for a corpus makes (stage, done, total).
    """
    if edition.corpus is not None:
        fill_hashes(edition.corpus, progress)
    sets = expected_sets(edition)
    return ExpectedSubmission(
        edition=edition.name,
        recipe_text=recipe_text(edition),
        data_sets=_members(sets),
        utterances=_utterances(sets),
        audio_required=edition.audio_required and edition.corpus is not None,
        scores_required=edition.scores_required,
        description_required=edition.description_required,
        limits=limits_of(edition),
        trial_counts=_trial_counts(sets),
        needed_to_rank=needed_to_rank(edition.recipe, edition.track, edition.board_policy),
        inherited=legacy_of(system).told(system) if system is not None else None,
    )


def expected_sets(edition: Edition) -> list[DataSet]:
    """The data sets that teams anonymise: of enrolment and trial all, of training those that the recipe names."""
    if edition.corpus is None:
        return []
    named = Q(role=Role.TRAINING, name__in=list(edition.recipe.data_sets))
    return list(edition.corpus.data_sets.filter(Q(role__in=[Role.ENROLMENT, Role.TRIAL]) | named))


def asks_for(edition: Edition, data_set: DataSet) -> bool:
    """Whether a data set of its corpus is one of `expected_sets`."""
    return data_set.role in {Role.ENROLMENT, Role.TRIAL} or data_set.name in edition.recipe.data_sets


def limits_of(edition: Edition) -> Limits:
    """How much an archive may unpack to: what is usual, or as much more as the edition takes larger archives."""
    return Limits(total_bytes=max(Limits().total_bytes, UNPACKED_BYTES_FOR_PACKED * edition.largest_archive_bytes))


def recipe_text(edition: Edition) -> str:
    """The recipe of an edition as its file holds it."""
    return edition.recipe_text or (FOLDER / f"{edition.protocol}.toml").read_text(encoding="utf-8")


def _members(sets: list[DataSet]) -> dict[str, tuple[str, ...]]:
    members: dict[str, list[str]] = {one.name: [] for one in sets}
    rows = DataSet.utterances.through.objects.filter(dataset__in=sets).order_by("utterance__name")
    for data_set, utterance in rows.values_list("dataset__name", "utterance__name").iterator():
        members[data_set].append(utterance)
    return {data_set: tuple(names) for data_set, names in members.items()}


def _trial_counts(sets: list[DataSet]) -> dict[str, tuple[int, int]]:
    """Target and nontarget trials of each trial set that is compared with one enrolment set."""
    counts: dict[str, list[tuple[int, int]]] = {}
    columns = ("trial_set__name", "target_count", "nontarget_count")
    for name, targets, nontargets in TrialList.objects.filter(trial_set__in=sets).values_list(*columns):
        counts.setdefault(name, []).append((targets, nontargets))
    return {name: lists[0] for name, lists in counts.items() if len(lists) == 1}


def _utterances(sets: list[DataSet]) -> dict[str, ExpectedUtterance]:
    rows = Utterance.objects.filter(data_sets__in=sets).order_by("name").distinct()
    return {
        name: ExpectedUtterance(name=name, samples=samples, rate_hz=rate_hz, pcm_sha256=pcm_sha256)
        for name, samples, rate_hz, pcm_sha256 in rows.values_list("name", "samples", "rate_hz", "pcm_sha256")
    }


def fill_hashes(corpus: Corpus, progress: Progress | None = None) -> int:
    """Hash the samples of every original that has none yet; how many those were. Each batch is kept at once.

    An original that cannot be read stays without a hash: it must not keep a team from submitting.
    """
    missing = list(corpus.utterances.filter(pcm_sha256="").exclude(audio="").only("pk", "audio").order_by("pk"))
    for start in range(0, len(missing), BATCH):
        batch = missing[start : start + BATCH]
        for done, utterance in enumerate(batch, start=start + 1):
            utterance.pcm_sha256 = _hash_of(utterance.audio)
            if progress:
                progress("Hashing the originals", done, len(missing))
        Utterance.objects.bulk_update(batch, ["pcm_sha256"])
    return len(missing)


def _hash_of(key: str) -> str:
    try:
        samples, _ = load_audio(key)
    except (AudioError, OSError):
        return ""
    return pcm_sha256(samples)
