"""The targets of runs whose voices are those of target speakers: settled when a run begins, read by whoever asks.

A data set of the run's corpus lends its speakers as targets, each with the first recordings by name that hold as much
speech as the method uses. An uploaded system tells its targets by a file `targets.csv` in its archive.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

from django.core.files.storage import default_storage

from anonymization.methods.contract import Anonymizer, Options, PseudoSpeaker, Samples, takes_targets
from anonymization.methods.errors import MethodError
from anonymization.methods.pseudo_speakers import Level, Role
from anonymization.methods.target_files import FILE_NAME, TargetFile, read_targets
from anonymization.methods.target_pool import Target, TargetPool, target_voice
from anonymization.methods.target_selection import DEFAULT_SELECTION, Candidate, Source, plan_targets
from anonymization.models import AnonymizationRun
from evaluation.formats.audio import AudioError
from portal.challenges.models import Corpus, DataSet, Speaker, Utterance
from portal.challenges.models import Role as SetRole
from portal.core.audio import load_audio
from portal.submissions.models import Submission

# The split of data sets that have none, as keys hold it.
UNDIVIDED = "undivided"
# Pauses are left out of a pool: so many times the seconds that a method uses are kept ready for each target.
_SPARE = 2.5
_USUAL_POOL_S = 60.0
_MOST_RECORDINGS = 200


@dataclass(frozen=True)
class TargetRequest:
    """Where the targets of a run come from, and by which rule they are given (`target_selection.SELECTIONS`)."""

    data_set: DataSet
    selection: str = DEFAULT_SELECTION


def require_targets(method: Anonymizer, targets: TargetRequest | None) -> None:
    """Raise MethodError where a method that takes targets gets none, or one that draws its voices gets some."""
    if takes_targets(method) and targets is None:
        raise MethodError(f"{method.name} gives the voices of target speakers: choose the data set they come from.")
    if targets is not None and not takes_targets(method):
        raise MethodError(f"{method.name} draws its voices and takes no targets; found {targets.data_set}.")


def give_targets(run: AnonymizationRun, targets: TargetRequest, options: Options) -> None:
    """Settle the pool of a run and who gets whom; the run is not saved.

    Raises:
        MethodError: no speech in the data set of the targets, or what `plan_targets` refuses.
    """
    genders, recordings = _pool(targets.data_set, float(cast("float", options.get("pool_s", _USUAL_POOL_S))))
    run.target_set, run.target_selection, run.target_recordings = targets.data_set, targets.selection, recordings
    sources = list(_sources(run))
    assigned = plan_targets(
        sources,
        [Candidate(name, genders[name]) for name in recordings],
        targets.selection,
        seed=run.seed,
        population={run.data_set.split or UNDIVIDED: _population(run.data_set.corpus, run.data_set)},
    )
    by_utterance = run.level == AnonymizationRun.Level.UTTERANCE
    run.targets = {each.utterance if by_utterance else each.speaker: each.target for each in assigned}


def _pool(data_set: DataSet, pool_s: float) -> tuple[dict[str, str], dict[str, list[str]]]:
    """Gender and recordings of each speaker of a data set."""
    rows = data_set.utterances.exclude(audio="").order_by("name")
    columns = ("speaker__name", "speaker__gender", "audio", "duration_s")
    genders: dict[str, str] = {}
    recordings: dict[str, list[str]] = {}
    held_s: dict[str, float] = {}
    for speaker, gender, audio, duration_s in rows.values_list(*columns).iterator(chunk_size=2000):
        if held_s.get(speaker, 0.0) < _SPARE * pool_s and len(recordings.get(speaker, ())) < _MOST_RECORDINGS:
            genders[speaker] = gender
            recordings.setdefault(speaker, []).append(audio)
            held_s[speaker] = held_s.get(speaker, 0.0) + (duration_s or 0.0)
    if not recordings:
        raise MethodError(f"The data set {data_set} has no audio, so that nobody in it can be a target.")
    return genders, recordings


def _sources(run: AnonymizationRun) -> Iterator[Source]:
    """The utterances of a run at utterance level, else its speakers."""
    role, split = cast("Role", run.data_set.role), run.data_set.split or UNDIVIDED
    level = cast("Level", run.level)
    if run.level == AnonymizationRun.Level.UTTERANCE:
        rows = run.data_set.utterances.order_by("name").values_list("name", "speaker__name", "speaker__gender")
        for name, speaker, gender in rows.iterator(chunk_size=2000):
            yield Source(name, speaker, gender, role, split, level)
        return
    speakers = Speaker.objects.filter(utterances__data_sets=run.data_set).distinct().order_by("name")
    for speaker, gender in speakers.values_list("name", "gender"):
        yield Source("", speaker, gender, role, split, level)


def _population(corpus: Corpus, data_set: DataSet) -> dict[str, str]:
    """Name and gender of everybody who enrols or is tried in the split of a data set."""
    sets = corpus.data_sets.filter(split=data_set.split, role__in=[SetRole.ENROLMENT, SetRole.TRIAL])
    members = DataSet.utterances.through.objects.filter(dataset__in=sets).values("utterance__speaker")
    return dict(Speaker.objects.filter(pk__in=members).values_list("name", "gender"))


def target_voice_in(run: AnonymizationRun, *, speaker: str, utterance: str) -> PseudoSpeaker:
    """The voice of an utterance of a run with targets.

    Raises:
        MethodError: it came into the corpus after the targets were planned.
    """
    name = utterance if run.level == AnonymizationRun.Level.UTTERANCE else speaker
    if name not in run.targets:
        raise MethodError(
            f"The run on {run.data_set} has no target for {name}, which was not in the corpus when the targets of its "
            f"{len(run.targets)} {run.level}s were planned."
        )
    return target_voice(run.targets[name])


def prepared_for(run: AnonymizationRun, method: Anonymizer) -> Anonymizer:
    """The method of a run with its targets, where it takes some.

    Raises:
        MethodError: a run without a pool.
    """
    if not takes_targets(method):
        return method
    return method.prepare(
        TargetPool(
            Target(name, "", tuple(partial(_read, key) for key in keys)) for name, keys in run.target_recordings.items()
        )
    )


def _read(key: str) -> tuple[Samples, int]:
    """A stored recording. Raises MethodError where it is lost."""
    try:
        return load_audio(key)
    except AudioError as error:
        raise MethodError(str(error)) from error


def targets_of(submission: Submission, data_set: DataSet) -> dict[str, str]:
    """The target of each utterance of a data set by name; empty where nobody knows targets.

    Of a run of ours, else of the file `targets.csv` of an uploaded archive, as far as it names utterances of the set.

    Raises:
        MethodError: a file of targets that cannot be used.
    """
    run = submission.anonymization_runs.filter(data_set=data_set).first()
    if run is not None:
        return _targets_of_run(run)
    file = _uploaded(submission)
    if file is None:
        return {}
    told = file.require().targets_in(data_set.name)
    names = data_set.utterances.order_by("name").values_list("name", flat=True)
    return {name: told[name] for name in names.iterator(chunk_size=2000) if name in told}


def _targets_of_run(run: AnonymizationRun) -> dict[str, str]:
    targets: dict[str, str] = run.targets
    if not targets or run.level == AnonymizationRun.Level.UTTERANCE:
        return dict(targets)
    rows = Utterance.objects.filter(data_sets=run.data_set_id).order_by("name").values_list("name", "speaker__name")
    return {name: targets[speaker] for name, speaker in rows.iterator(chunk_size=2000) if speaker in targets}


def _uploaded(submission: Submission) -> TargetFile | None:
    """The file of targets of an archive, the one nearest to its top."""
    documents: list[Any] = [
        document for document in submission.documents.all() if document.path.rpartition("/")[2] == FILE_NAME
    ]
    if not documents:
        return None
    document = min(documents, key=lambda each: (each.path.count("/"), each.path))
    with TemporaryDirectory() as folder:
        copy = Path(folder, FILE_NAME)
        with default_storage.open(document.key) as stored, copy.open("wb") as file:
            shutil.copyfileobj(stored, file)
        return read_targets(copy, document.path)
