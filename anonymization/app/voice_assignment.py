"""Which voice each utterance of a run gets, drawn or that of a target speaker, and whether the voices are in order.

At speaker level the voices of all speakers of a split are planned together when the runs begin, so that any two differ
by a stated distance, and each run keeps the plan; a method that plans its voices itself does so in the job, and where
it makes vectors of recordings, or has a network that was trained here, at utterance level, too. Elsewhere at utterance
level, and in runs of before plans were kept, a voice follows from the seed and the names. Targets are settled when a
run begins: a data set of the run's corpus lends its speakers, each with the first recordings by name that hold as much
speech as the method uses. An uploaded system tells its targets by a file `targets.csv` in its archive.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

from django.core.files.storage import default_storage
from django.db.models import Value

from anonymization.app.models import AnonymizationRun
from anonymization.app.networks import find_run_method
from anonymization.checks.voices import VoiceReport, check_voices_of_method
from anonymization.methods.contract import (
    Anonymizer,
    MethodError,
    Options,
    Parameter,
    PseudoSpeaker,
    Target,
    TargetPool,
    VoiceRequest,
    makes_vectors,
    plans_voices,
    takes_targets,
)
from anonymization.methods.voices import pseudo_speakers
from anonymization.methods.voices.assignment import Voices, assign_voices
from anonymization.methods.voices.files import TARGETS_FILE, TargetFile, read_targets
from anonymization.methods.voices.targets import DEFAULT_SELECTION, SourceUtterance, plan_targets, target_voice
from common.arrays import Samples
from common.problems import Problem, shorten
from portal.challenges.models import Corpus, DataSet, Speaker, Utterance
from portal.challenges.models import Role as SetRole
from portal.core.storage import load_audio
from portal.submissions.models import Submission
from speech.audio.files import AudioError

# The level that the role of each data set asks for.
BY_ROLE = "role"
# The split of data sets that have none, as keys hold it.
UNDIVIDED = "undivided"
# What stands for the meaning of a number that only another version of a method knows.
FORGOTTEN = "a parameter of another version of the method"
# Of the same problem so many are named in the report of a run; the others are counted.
EXAMPLES = 20
_CHUNK = 2000
# Pauses are left out of a pool: so many times the seconds that a method uses are kept ready for each target.
_SPARE = 2.5
_USUAL_POOL_S = 60.0
_MOST_RECORDINGS = 200
# A method that plans its voices may hear so many recordings of a speaker.
_MOST_HEARD = 20


def split_of(data_set: DataSet) -> str:
    """Return the name of a data set's split as keys hold it."""
    return data_set.split or UNDIVIDED


def choose_level(data_set: DataSet, wanted: str) -> str:
    """Return the level at which a data set is anonymised where `wanted` is asked for: a level, or what its role asks
    for."""
    return pseudo_speakers.usual_level(cast("pseudo_speakers.Role", data_set.role)) if wanted == BY_ROLE else wanted


def _place(data_set: DataSet) -> tuple[pseudo_speakers.Role, str]:
    """Return role and split as keys hold them."""
    return cast("pseudo_speakers.Role", data_set.role), split_of(data_set)


def plan_run_voices(method: Anonymizer, run: AnonymizationRun, heard: Callable[[str], None] = lambda _: None) -> Voices:
    """Assign voices to all speakers of the split of a run in its role, whatever data sets they are in, or utterances.

    Args:
        heard: told the speaker or utterance before each recording that a method reads in order to plan; what it raises
            ends the planning.
    """
    place, level = _place(run.data_set), cast("pseudo_speakers.Level", run.level)
    if run.is_by_utterance:
        columns = ("name", "speaker__name", "speaker__gender", "audio")
        rows = run.data_set.utterances.exclude(audio="").order_by("name").values_list(*columns)
        sources = [
            SourceUtterance(name, speaker, gender, *place, level, (partial(_hear, name, audio, heard),))
            for name, speaker, gender, audio in rows.iterator(chunk_size=_CHUNK)
        ]
    else:
        audio_of = _list_recordings(run.data_set) if plans_voices(method) else {}
        sources = [
            SourceUtterance(
                "",
                name,
                gender,
                *place,
                level,
                tuple(partial(_hear, name, each, heard) for each in audio_of.get(name, ())),
            )
            for name, gender in list_speakers(run.data_set.corpus, run.data_set.split).items()
        ]
    return assign_voices(method, sources, seed=run.seed, options=run.options)


def _list_recordings(data_set: DataSet) -> dict[str, list[str]]:
    """Return the first recordings by name of each speaker of the data set's split in its role."""
    sets = data_set.corpus.data_sets.filter(split=data_set.split, role=data_set.role)
    rows = Utterance.objects.filter(data_sets__in=sets).exclude(audio="").order_by("name").distinct()
    found: dict[str, list[str]] = {}
    for speaker, _, audio in rows.values_list("speaker__name", "name", "audio").iterator(chunk_size=_CHUNK):
        own = found.setdefault(speaker, [])
        if len(own) < _MOST_HEARD:
            own.append(audio)
    return found


def _hear(speaker: str, audio: str, heard: Callable[[str], None]) -> tuple[Samples, int]:
    heard(speaker)
    return _read_recording(audio)


def list_speakers(corpus: Corpus, split: str) -> dict[str, str]:
    """Name and gender of everybody who enrols or is tried in a split, by name."""
    sets = corpus.data_sets.filter(split=split, role__in=[SetRole.ENROLMENT, SetRole.TRIAL])
    members = DataSet.utterances.through.objects.filter(dataset__in=sets).values("utterance__speaker")
    return dict(Speaker.objects.filter(pk__in=members).order_by("name").values_list("name", "gender"))


def give_voices(run: AnonymizationRun, voices: Voices) -> None:
    """Settle the voices of a run; the run is not saved."""
    run.voices = {each.utterance or each.speaker: each.voice.as_dict() for each in voices.assignments}
    run.voice_distance = voices.distance


def take_plan_of_others(run: AnonymizationRun) -> bool:
    """Give a run the plan that another run of its submission made of the same role and split, if there is one.

    At utterance level there is none: each data set has its own utterances.
    """
    if run.is_by_utterance:
        return False
    same = {name: getattr(run, name) for name in ("level", "method", "recipe_version", "seed", "options")}
    place = {"data_set__role": run.data_set.role, "data_set__split": run.data_set.split}
    others = run.submission.anonymization_runs.filter(**same, **place)
    made = others.exclude(pk=run.pk).exclude(voices={}).first()
    if made is None:
        return False
    run.voices, run.voice_distance = made.voices, made.voice_distance
    return True


def is_planned_in_job(run: AnonymizationRun, method: Anonymizer) -> bool:
    """Return whether the job of the run makes the plan of its voices; it alone has the files of a network trained
    here."""
    is_planned = not run.is_by_utterance or makes_vectors(method) or run.network_id is not None
    return plans_voices(method) and not run.target_selection and is_planned


def list_planned_voices(run: AnonymizationRun) -> Iterator[tuple[str, PseudoSpeaker]]:
    """Yield the voices that a run keeps, by speaker, or at utterance level by utterance."""
    for speaker, stored in sorted(run.voices.items()):
        yield speaker, PseudoSpeaker(**stored)


def list_parameters(run: AnonymizationRun, method: Anonymizer | None) -> list[Parameter]:
    """Return the parameters that the voices of a run have: of its plan where it keeps one, else of the method.

    A plan may come from a version of the method with other parameters than the one at hand: what that does not know
    has no extent, and stands last.
    """
    known = method.parameters if method else ()
    stored = next((voice["parameters"] for voice in run.voices.values()), None)
    return list(known) if stored is None else _described(stored, known)


def pair_parameters(voice: PseudoSpeaker, known: Sequence[Parameter]) -> list[tuple[Parameter, float]]:
    """Return each number of a voice beside what it is, as `list_parameters` has it."""
    return [(one, voice.parameters[one.name]) for one in _described(voice.parameters, known)]


def _described(stored: Mapping[str, float], known: Sequence[Parameter]) -> list[Parameter]:
    names = {parameter.name for parameter in known}
    forgotten = [Parameter(name, "", 0.0, 0.0, FORGOTTEN) for name in stored if name not in names]
    return [*(parameter for parameter in known if parameter.name in stored), *forgotten]


def find_pseudo_speaker(run: AnonymizationRun, utterance: Utterance) -> PseudoSpeaker:
    """Return the voice that this utterance gets in this run. Raises MethodError as `find_voice`."""
    return find_voice(run, speaker=utterance.speaker.name, utterance=utterance.name)


def find_voice(
    run: AnonymizationRun, *, speaker: str, utterance: str, method: Anonymizer | None = None
) -> PseudoSpeaker:
    """Return the voice of an utterance by its name and its speaker's; `method`: of the run, where it is at hand.

    Raises:
        MethodError: the plan of the run has no voice or target for the speaker, who came later; a voice that was drawn
            apart could be near another's. Or there is no such method.
    """
    owner = utterance if run.is_by_utterance else speaker
    if run.target_selection:
        return target_voice(_find_planned(run, "target", run.targets, owner))
    if run.voices:
        return PseudoSpeaker(**_find_planned(run, "voice", run.voices, owner))
    method = method or find_run_method(run)
    if is_planned_in_job(run, method):
        raise MethodError(f"The voices of the run on {run.data_set} are not planned yet: its job does so first.")
    role, split = _place(run.data_set)
    own = utterance if run.is_by_utterance else ""
    key = pseudo_speakers.pseudo_speaker_key(seed=run.seed, role=role, split=split, speaker=speaker, utterance=own)
    gender = run.genders.get(speaker, "") if plans_voices(method) else ""
    return pseudo_speakers.draw_voice(method, VoiceRequest(key, gender))


def _find_planned(run: AnonymizationRun, what: str, planned: Mapping[str, Any], owner: str) -> Any:
    if owner not in planned:
        raise MethodError(
            f"The run on {run.data_set} has no {what} for {run.level} {owner}, not in the corpus when the {what}s of "
            f"its {len(planned)} {run.level}s were planned."
        )
    return planned[owner]


# Targets --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TargetRequest:
    """Where the targets of a run come from, and by which rule they are given (`voices.targets.SELECTIONS`)."""

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
        [Target(name, genders[name]) for name in recordings],
        targets.selection,
        seed=run.seed,
        population={split_of(run.data_set): list_speakers(run.data_set.corpus, run.data_set.split)},
    )
    run.targets = {each.utterance if run.is_by_utterance else each.speaker: each.voice.target for each in assigned}


def _pool(data_set: DataSet, pool_s: float) -> tuple[dict[str, str], dict[str, list[str]]]:
    """Return gender and recordings of each speaker of a data set."""
    rows = data_set.utterances.exclude(audio="").order_by("name")
    columns = ("speaker__name", "speaker__gender", "audio", "duration_s")
    genders: dict[str, str] = {}
    recordings: dict[str, list[str]] = {}
    held_s: dict[str, float] = {}
    for speaker, gender, audio, duration_s in rows.values_list(*columns).iterator(chunk_size=_CHUNK):
        if held_s.get(speaker, 0.0) < _SPARE * pool_s and len(recordings.get(speaker, ())) < _MOST_RECORDINGS:
            genders[speaker] = gender
            recordings.setdefault(speaker, []).append(audio)
            held_s[speaker] = held_s.get(speaker, 0.0) + (duration_s or 0.0)
    if not recordings:
        raise MethodError(f"The data set {data_set} has no audio, so that nobody in it can be a target.")
    return genders, recordings


def _sources(run: AnonymizationRun) -> Iterator[SourceUtterance]:
    """Yield the utterances of a run at utterance level, else its speakers."""
    place, level = _place(run.data_set), cast("pseudo_speakers.Level", run.level)
    rows: Any = run.data_set.utterances.order_by("name").values_list("name", "speaker__name", "speaker__gender")
    if not run.is_by_utterance:
        speakers = Speaker.objects.filter(utterances__data_sets=run.data_set).distinct().order_by("name")
        rows = speakers.values_list(Value(""), "name", "gender")
    for name, speaker, gender in rows.iterator(chunk_size=_CHUNK):
        yield SourceUtterance(name, speaker, gender, *place, level)


def prepare_targets(run: AnonymizationRun, method: Anonymizer) -> Anonymizer:
    """Return the method of a run with its targets, where it takes some.

    Raises:
        MethodError: a run without a pool.
    """
    if not takes_targets(method):
        return method
    return method.prepare(
        TargetPool(
            Target(name, "", tuple(partial(_read_recording, key) for key in keys))
            for name, keys in run.target_recordings.items()
        )
    )


def _read_recording(key: str) -> tuple[Samples, int]:
    """Return a stored recording. Raises MethodError where it is lost."""
    try:
        return load_audio(key)
    except AudioError as error:
        raise MethodError(str(error)) from error


def find_targets(submission: Submission, data_set: DataSet) -> dict[str, str]:
    """Return the target of each utterance of a data set by name; empty where nobody knows targets.

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
    return {name: told[name] for name in names.iterator(chunk_size=_CHUNK) if name in told}


def _targets_of_run(run: AnonymizationRun) -> dict[str, str]:
    targets: dict[str, str] = run.targets
    if not targets or run.is_by_utterance:
        return dict(targets)
    rows = Utterance.objects.filter(data_sets=run.data_set_id).order_by("name").values_list("name", "speaker__name")
    return {name: targets[speaker] for name, speaker in rows.iterator(chunk_size=_CHUNK) if speaker in targets}


def _uploaded(submission: Submission) -> TargetFile | None:
    """Return the file of targets of an archive, the one nearest to its top."""
    documents = [each for each in submission.documents.all() if each.path.rpartition("/")[2] == TARGETS_FILE]
    if not documents:
        return None
    document = min(documents, key=lambda each: (each.path.count("/"), each.path))
    with TemporaryDirectory() as folder:
        copy = Path(folder, TARGETS_FILE)
        with default_storage.open(document.key) as stored, copy.open("wb") as file:
            shutil.copyfileobj(stored, file)
        return read_targets(copy, document.path)


# Checks ---------------------------------------------------------------------------------------------


def check_run_voices(run: AnonymizationRun) -> tuple[VoiceReport, tuple[Problem, ...]]:
    """The voices of this run, and at speaker level beside those of the other runs of its submission on its split.

    With as many problems of a cause as a page shows.

    At utterance level each voice follows from the name of the utterance: those of other runs need not be compared.
    """
    method = find_run_method(run)
    others: list[AnonymizationRun] = []
    if not run.is_by_utterance:
        of_split = run.submission.anonymization_runs.filter(data_set__split=run.data_set.split, level=run.level)
        others = list(of_split.exclude(pk=run.pk).select_related("data_set"))
        others = [one for one in others if _names(one, method) == _names(run, method)]  # others are of another version
        others = [one for one in others if one.voices or not is_planned_in_job(one, method)]
    found = check_voices_of_method(
        method,
        [each for one in (run, *others) for each in list_assignments(one)],
        distance=min(one.voice_distance for one in (run, *others)),
        file=run.data_set.name,
    )
    return found, shorten(found.problems, EXAMPLES)


def _names(run: AnonymizationRun, method: Anonymizer) -> set[str]:
    return {parameter.name for parameter in list_parameters(run, method)}


def list_assignments(run: AnonymizationRun) -> Iterator[pseudo_speakers.Assignment]:
    """Which voice each speaker of a run got, or each utterance; speakers of other data sets of the split included."""
    place, level = _place(run.data_set), cast("pseudo_speakers.Level", run.level)
    if run.voices and run.is_by_utterance:
        speakers = dict(run.data_set.utterances.order_by().values_list("name", "speaker__name"))
        for name, voice in list_planned_voices(run):
            if name in speakers:
                yield pseudo_speakers.Assignment(*place, level, speakers[name], name, voice)
        return
    if run.voices:
        for speaker, voice in list_planned_voices(run):
            yield pseudo_speakers.Assignment(*place, level, speaker, "", voice)
        return
    method = find_run_method(run)
    if is_planned_in_job(run, method):
        return
    members = run.data_set.utterances.order_by("name").values_list("speaker__name", "name")
    if not run.is_by_utterance:  # a run with targets, or of before plans were kept: as many voices as speakers
        members = run.data_set.utterances.order_by("speaker__name").values_list("speaker__name", "speaker__name")
        members = members.distinct()
    for speaker, name in members.iterator(chunk_size=_CHUNK):
        voice = find_voice(run, speaker=speaker, utterance=name, method=method)
        yield pseudo_speakers.Assignment(*place, level, speaker, name if run.is_by_utterance else "", voice)
