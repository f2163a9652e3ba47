"""What a study can be made of: the recordings of its data sets, and which systems handed in an anonymised form of them.

The data sets of a study belong together: every trial set is compared with every enrolment set in a trial list of the
corpus. A list that was given names the models and the utterances that may be heard; a product names all of them.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from django.core.files.storage import default_storage
from django.db.models import Exists, OuterRef, Q, QuerySet

from evaluation.formats.scores import read_trial_table
from listening.design.plan import PoolUtterance
from listening.models import Study
from portal.challenges.models import DataSet, Edition, Gender, Role, TrialList
from portal.submissions.models import Submission, SubmittedFile

HEARABLE = (Submission.State.ACCEPTED, Submission.State.EVALUATING, Submission.State.EVALUATED)


@dataclass(frozen=True)
class Recording:
    """An original recording: the key of its row, and of its file."""

    utterance: int
    audio: str
    transcript: str
    duration_s: float | None


@dataclass(frozen=True)
class Pool:
    """`recordings`: originals by name of the utterance. `versions`: files of systems by code and utterance."""

    utterances: tuple[PoolUtterance, ...]
    recordings: Mapping[str, Recording]
    versions: Mapping[tuple[str, str], str]

    def audio_of(self, system: str, name: str) -> str:
        """The key of the file of an utterance as a system made it, or of the original (``""``)."""
        return self.versions[system, name] if system else self.recordings[name].audio

    @property
    def mean_s(self) -> float:
        """The mean length of the recordings; four seconds where nobody measured any."""
        known = [one.duration_s for one in self.recordings.values() if one.duration_s]
        return sum(known) / len(known) if known else 4.0


def submissions_to_hear(edition: Edition, study: Study | None = None) -> QuerySet[Submission]:
    """Submissions with anonymised trial utterances: the newest usable one of each system of the edition or its corpus.

    Systems without an edition are the organizers' own baselines on the same corpus. Those of the study stay.
    """
    files = SubmittedFile.objects.filter(submission=OuterRef("pk"), data_set__role=Role.TRIAL)
    usable = Submission.objects.filter(Exists(files), state__in=HEARABLE, system__corpus=edition.corpus_id)
    usable = usable.filter(system__edition=edition) | usable.filter(system__edition=None, system__team=None)
    newer = usable.filter(system=OuterRef("system"), version__gt=OuterRef("version"))
    chosen = Q(~Exists(newer.order_by()))
    if study is not None:
        chosen |= Q(pk__in=study.systems.values("submission"))
    return usable.filter(chosen).select_related("system", "system__team").order_by("system__label", "system__name")


def sets_to_hear(edition: Edition) -> QuerySet[DataSet]:
    """Trial and enrolment sets of the edition's corpus that stand in a trial list and hold recordings."""
    with_audio = DataSet.utterances.through.objects.filter(dataset=OuterRef("pk")).exclude(utterance__audio="")
    sets = DataSet.objects.filter(Exists(with_audio), corpus=edition.corpus_id)
    lists = TrialList.objects.filter(trial_set__corpus=edition.corpus_id)
    trials = sets.filter(role=Role.TRIAL, pk__in=lists.values("trial_set"))
    enrolments = sets.filter(role=Role.ENROLMENT, pk__in=lists.values("enrolment_set"))
    return (trials | enrolments).order_by("role", "name")


def set_problems(data_sets: Iterable[DataSet]) -> list[str]:
    """What keeps these data sets from being heard together, as sentences."""
    chosen = list(data_sets)
    trials = [one for one in chosen if one.role == Role.TRIAL]
    enrolments = [one for one in chosen if one.role == Role.ENROLMENT]
    if not trials or not enrolments:
        missing = "a trial set" if not trials else "an enrolment set"
        return [f"Choose {missing}: sample A of a trial comes from a trial set, sample B from an enrolment set."]
    pairs = set(TrialList.objects.filter(trial_set__in=trials).values_list("trial_set", "enrolment_set"))
    return [
        f"No trial list of the corpus compares {trial} with {enrolment}. Choose the data sets of one subset."
        for trial in trials
        for enrolment in enrolments
        if (trial.pk, enrolment.pk) not in pairs
    ]


def make_pool(data_sets: Iterable[DataSet], systems: Mapping[str, Submission]) -> Pool:
    """Everything that may be heard, in the order of names.

    Args:
        systems: the submission that is heard of each system, by its code in the study.
    """
    chosen = sorted(data_sets, key=lambda one: one.name)
    codes = {submission.pk: code for code, submission in systems.items()}
    files = SubmittedFile.objects.filter(submission__in=codes, data_set__in=chosen, data_set__role=Role.TRIAL)
    rows = files.order_by("-data_set__name").values_list("submission", "utterance__name", "audio")
    versions = {(codes[submission], name): audio for submission, name, audio in rows}
    having: dict[str, set[str]] = {}
    for code, name in versions:
        having.setdefault(name, set()).add(code)
    named = _named_in_lists(chosen)
    recordings: dict[str, Recording] = {}
    utterances: dict[str, PoolUtterance] = {}
    for data_set in chosen:
        is_trial = data_set.role == Role.TRIAL
        allowed = named.get(data_set.pk)
        for row in data_set.utterances.exclude(audio="").select_related("speaker").order_by():
            if allowed is not None and (row.name if is_trial else row.speaker.name) not in allowed:
                continue
            recordings[row.name] = Recording(row.pk, row.audio, row.transcript, row.duration_s)
            utterances[row.name] = PoolUtterance(
                key=row.name,
                speaker=row.speaker.name,
                sex="f" if row.speaker.gender == Gender.FEMALE else "m",
                role="trial" if is_trial else "enrolment",
                systems=frozenset(having.get(row.name, ())) if is_trial else frozenset(),
            )
    return Pool(tuple(utterances[name] for name in sorted(utterances)), recordings, versions)


def _named_in_lists(data_sets: list[DataSet]) -> dict[int, set[str] | None]:
    """By data set the utterances of a trial set, or the models of an enrolment set, in given lists; None: all."""
    named: dict[int, set[str] | None] = {}
    for one in TrialList.objects.filter(trial_set__in=data_sets, enrolment_set__in=data_sets):
        if one.origin == TrialList.Origin.PRODUCT:
            named[one.trial_set_id] = named[one.enrolment_set_id] = None
            continue
        with default_storage.open(one.file) as file:
            table = read_trial_table(io.StringIO(file.read().decode()), f"the trials of {one.trial_set}")
        words = [bytes(pair).decode().split() for pair in table.pairs]
        for pk, place in ((one.enrolment_set_id, 0), (one.trial_set_id, 1)):
            held = named.setdefault(pk, set())
            if held is not None:
                held |= {pair[place] for pair in words}
    return named
