"""Reads corpora for pages: which somebody may open, and the tables that describe them as evaluation plans do."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, F, Q, QuerySet, Sum
from django.http import Http404
from django.shortcuts import get_object_or_404

from portal.challenges.models import Corpus, DataSet, Gender, Role, Speaker, TrialList, Utterance
from portal.challenges.selectors import corpora_for
from portal.jobs.models import Job, JobState


def corpus_for(user: Any, name: str) -> Corpus:
    return get_object_or_404(corpora_for(user), name=name)


def may_import(name: str, user: Any) -> bool:
    """Return whether somebody may add to the corpus of this name: those who see it; anybody where there is none; a
    shell."""
    return user is None or corpora_for(user).filter(name=name).exists() or not Corpus.objects.filter(name=name).exists()


def data_set_for(user: Any, corpus: str, name: str) -> DataSet:
    sets = DataSet.objects.select_related("corpus").filter(corpus__in=corpora_for(user))
    return get_object_or_404(sets, corpus__name=corpus, name=name)


def list_imports(corpus: Corpus) -> QuerySet[Job]:
    """Return the jobs that imported this corpus, newest first."""
    return Job.objects.filter(kind="import-corpus", state=JobState.SUCCEEDED, parameters__name=corpus.name)


def find_import(name: str, user: Any) -> Job | None:
    """Return the newest job by which this person imports a corpus of this name."""
    found = Job.objects.filter(kind="import-corpus", parameters__name=name, created_by=user)
    return found.order_by("-created_at").first()


def utterance_for(user: Any, corpus: str, name: str) -> Utterance:
    if "\0" in name:  # PostgreSQL refuses to look for it
        raise Http404
    utterances = Utterance.objects.select_related("corpus", "speaker").filter(corpus__in=corpora_for(user))
    return get_object_or_404(utterances, corpus__name=corpus, name=name)


@dataclass(frozen=True)
class CorpusSummary:
    corpus: Corpus
    speakers: int = 0
    utterances: int = 0
    with_audio: int = 0
    seconds: float = 0.0

    @property
    def is_complete(self) -> bool:
        return self.with_audio == self.utterances

    @property
    def without_audio(self) -> int:
        return self.utterances - self.with_audio


def summaries(corpora: QuerySet[Corpus]) -> list[CorpusSummary]:
    """Speakers, utterances and duration of each corpus, in three queries whatever their number."""
    speakers = dict(Speaker.objects.filter(corpus__in=corpora).order_by().values_list("corpus").annotate(Count("pk")))
    rows = Utterance.objects.filter(corpus__in=corpora).order_by().values("corpus")
    counted = rows.annotate(
        utterances=Count("pk"), seconds=Sum("duration_s", default=0.0), with_audio=Count("pk", filter=~Q(audio=""))
    )
    totals: dict[Any, dict[str, Any]] = {row.pop("corpus"): row for row in map(dict, counted)}
    return [CorpusSummary(corpus, speakers.get(corpus.pk, 0), **totals.get(corpus.pk, {})) for corpus in corpora]


_ROLE_IN_NAME = {
    Role.ENROLMENT: re.compile(r"(?s)(?P<subset>.+)_(?:enrolls?|enrolments?)(?P<rest>(?:_.+)?)"),
    Role.TRIAL: re.compile(r"(?s)(?P<subset>.+)_trials?(?P<rest>(?:_.+)?)"),
    Role.TRAINING: re.compile(r"(?s)(?P<subset>.+)_(?:train|training)(?P<rest>(?:_.+)?)"),
}


@dataclass(frozen=True)
class DataSetRow:
    """Speakers by gender and utterances of a data set; `subset` and `part` say where the plan's tables show it."""

    data_set: DataSet
    female: int = 0
    male: int = 0
    utterances: int = 0
    with_audio: int = 0
    seconds: float = 0.0

    @property
    def speakers(self) -> int:
        return self.female + self.male

    @property
    def gender(self) -> str:
        """Of its speakers: female, male or mixed."""
        return "mixed" if self.female and self.male else "female" if self.female else "male"

    @property
    def subset(self) -> str:
        return self._name_parts[0]

    @property
    def part(self) -> str:
        """Such as ``Trial (common)``: the role, and what the name says beyond subset, role and gender."""
        role, rest = self.data_set.get_role_display(), self._name_parts[1]
        return f"{role} ({rest})" if rest else role

    @property
    def heading(self) -> str:
        """Subset and, where there are several of the role, which of them."""
        subset, rest = self._name_parts
        return f"{subset} ({rest})" if rest else subset

    @property
    def _name_parts(self) -> tuple[str, str]:
        """Of ``vctk_dev_trials_f_common``: ``vctk_dev`` and ``common``; of any other name all of it and nothing."""
        found = _ROLE_IN_NAME[Role(self.data_set.role)].fullmatch(self.data_set.name)
        if found is None:
            return self.data_set.name, ""
        words = [word for word in found["rest"].split("_") if word]
        if self.gender != "mixed" and words and words[0] == self.gender[0]:
            words = words[1:]
        return found["subset"], " ".join(words)


def data_set_table(corpus: Corpus) -> list[DataSetRow]:
    """Return a line for each data set of the corpus, subset by subset, enrolment before trial before training."""
    rows = data_set_rows(corpus.data_sets.select_related("corpus"))
    return sorted(rows, key=lambda row: (row.data_set.split, row.subset, _position(row), row.data_set.name))


def data_set_rows(data_sets: QuerySet[DataSet]) -> list[DataSetRow]:
    """Return a line for each of the data sets, in two queries whatever their number."""
    members = DataSet.utterances.through.objects.filter(dataset__in=data_sets).order_by().values("dataset")
    counted = members.annotate(
        utterances=Count("pk"),
        with_audio=Count("pk", filter=~Q(utterance__audio="")),
        seconds=Sum("utterance__duration_s", default=0.0),
        female=_speakers(Gender.FEMALE),
        male=_speakers(Gender.MALE),
    )
    counts: dict[Any, dict[str, Any]] = {row.pop("dataset"): row for row in map(dict, counted)}
    return [DataSetRow(data_set, **counts.get(data_set.pk, {})) for data_set in data_sets]


def _speakers(gender: Gender) -> Count:
    return Count("utterance__speaker", distinct=True, filter=Q(utterance__speaker__gender=gender))


def _position(row: DataSetRow) -> int:
    return Role.values.index(row.data_set.role)


@dataclass(frozen=True)
class PlanRow:
    """A line of table 1 of the 2022 evaluation plan: one part of a subset, the genders' data sets side by side."""

    subset: str
    part: str
    members: list[DataSetRow]

    @property
    def female(self) -> int:
        return sum(row.female for row in self.members)

    @property
    def male(self) -> int:
        return sum(row.male for row in self.members)

    @property
    def speakers(self) -> int:
        return self.female + self.male

    @property
    def utterances(self) -> int:
        return sum(row.utterances for row in self.members)

    @property
    def seconds(self) -> float:
        return sum(row.seconds for row in self.members)


def plan_table(rows: Iterable[DataSetRow]) -> list[PlanRow]:
    """Return table 1 of the plan: the data sets of one part are put together when each holds one gender only."""
    parts: dict[tuple[str, str], list[DataSetRow]] = {}
    for row in rows:
        parts.setdefault((row.subset, row.part), []).append(row)
    return [PlanRow(subset, part, members) for (subset, part), members in parts.items()]


@dataclass(frozen=True)
class TrialRow:
    """A line of table 3 of the 2022 evaluation plan: trials of one kind, by gender of the trial utterances."""

    subset: str
    kind: str
    female: int
    male: int
    mixed: int
    origin: str

    @property
    def total(self) -> int:
        return self.female + self.male + self.mixed


def trial_table(corpus: Corpus, rows: list[DataSetRow]) -> list[TrialRow]:
    """Return table 3 of the plan: same-speaker and different-speaker trials of each trial set, genders side by side."""
    by_set = {row.data_set.pk: row for row in rows}
    lists = TrialList.objects.filter(trial_set__corpus=corpus).select_related("trial_set", "enrolment_set")
    subsets: dict[str, list[TrialList]] = {}
    for trial_list in sorted(lists, key=lambda one: list(by_set).index(one.trial_set_id)):
        subsets.setdefault(by_set[trial_list.trial_set_id].heading, []).append(trial_list)
    return [
        _trial_row(subset, members, kind, counts, by_set)
        for subset, members in subsets.items()
        for kind, counts in (("Same-speaker", "target_count"), ("Different-speaker", "nontarget_count"))
    ]


def _trial_row(
    subset: str, members: list[TrialList], kind: str, counts: str, by_set: dict[int, DataSetRow]
) -> TrialRow:
    origin = " and ".join(sorted({member.get_origin_display().lower() for member in members}))
    number = {"female": 0, "male": 0, "mixed": 0}
    for member in members:
        number[by_set[member.trial_set_id].gender] += getattr(member, counts)
    return TrialRow(subset=subset, kind=kind, origin=origin, **number)


def speaker_table(corpus: Corpus) -> QuerySet[Speaker]:
    """Speakers with the number and duration of their utterances."""
    return corpus.speakers.annotate(
        utterance_count=Count("utterances"), seconds=Sum("utterances__duration_s")
    ).order_by("name")


def search_utterances(utterances: QuerySet[Utterance], text: str, gender: str, speaker: str) -> QuerySet[Utterance]:
    """Return utterances whose name or transcript holds `text`, of a gender or a speaker where given."""
    found = utterances.select_related("speaker")
    if text:
        found = found.filter(Q(name__icontains=text) | Q(transcript__icontains=text))
    if gender in Gender.values:
        found = found.filter(speaker__gender=gender)
    if speaker:
        found = found.filter(speaker__name=speaker)
    return found.order_by(F("name"))
