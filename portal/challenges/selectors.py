"""The only door to corpora for pages, and the tables that describe them as the evaluation plans do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db.models import Count, F, Q, QuerySet, Sum
from django.http import Http404

from portal.challenges.models import Corpus, DataSet, Gender, Role, Speaker, TrialList, Utterance


def corpora_for(user: Any) -> QuerySet[Corpus]:
    """The corpora that this person may see: speech is personal data, so organizers only."""
    return (
        Corpus.objects.all()
        if user.is_authenticated and user.is_organizer
        else Corpus.objects.none()
    )


def corpus_for(user: Any, name: str) -> Corpus:
    return _or_404(corpora_for(user).filter(name=name))


def data_set_for(user: Any, corpus: str, name: str) -> DataSet:
    sets = DataSet.objects.select_related("corpus").filter(corpus__in=corpora_for(user))
    return _or_404(sets.filter(corpus__name=corpus, name=name))


def utterance_for(user: Any, corpus: str, name: str) -> Utterance:
    utterances = Utterance.objects.select_related("corpus", "speaker").filter(
        corpus__in=corpora_for(user)
    )
    return _or_404(utterances.filter(corpus__name=corpus, name=name))


def _or_404(found: QuerySet[Any]) -> Any:
    first = found.first()
    if first is None:
        raise Http404
    return first


@dataclass(frozen=True)
class CorpusSummary:
    corpus: Corpus
    speakers: int
    utterances: int
    with_audio: int
    seconds: float

    @property
    def is_complete(self) -> bool:
        return self.with_audio == self.utterances


def summaries(corpora: QuerySet[Corpus]) -> list[CorpusSummary]:
    """Speakers, utterances and duration of each corpus, in three queries whatever their number."""
    speakers = dict(
        Speaker.objects.filter(corpus__in=corpora)
        .order_by()
        .values_list("corpus")
        .annotate(Count("pk"))
    )
    rows = Utterance.objects.filter(corpus__in=corpora).order_by().values("corpus")
    totals = {
        row["corpus"]: row
        for row in rows.annotate(
            n=Count("pk"), seconds=Sum("duration_s"), with_audio=Count("pk", filter=~Q(audio=""))
        )
    }
    return [
        CorpusSummary(
            corpus=corpus,
            speakers=speakers.get(corpus.pk, 0),
            utterances=totals.get(corpus.pk, {}).get("n", 0),
            with_audio=totals.get(corpus.pk, {}).get("with_audio", 0),
            seconds=totals.get(corpus.pk, {}).get("seconds") or 0.0,
        )
        for corpus in corpora
    ]


@dataclass(frozen=True)
class DataSetRow:
    """A line of table 1 of the 2022 evaluation plan: speakers by gender and utterances of a data set."""

    data_set: DataSet
    female: int
    male: int
    utterances: int
    with_audio: int
    seconds: float

    @property
    def speakers(self) -> int:
        return self.female + self.male


def data_set_table(corpus: Corpus) -> list[DataSetRow]:
    """Table 1 of the plan for this corpus, enrolment before trial before training."""
    members = (
        DataSet.utterances.through.objects.filter(dataset__corpus=corpus)
        .order_by()
        .values("dataset")
    )
    counts = {
        row["dataset"]: row
        for row in members.annotate(
            n=Count("pk"),
            with_audio=Count("pk", filter=~Q(utterance__audio="")),
            seconds=Sum("utterance__duration_s"),
            female=_speakers(Gender.FEMALE),
            male=_speakers(Gender.MALE),
        )
    }
    order = {role: position for position, role in enumerate(Role.values)}
    rows = [
        _data_set_row(data_set, counts.get(data_set.pk, {})) for data_set in corpus.data_sets.all()
    ]
    return sorted(
        rows, key=lambda row: (row.data_set.split, order[row.data_set.role], row.data_set.name)
    )


def _speakers(gender: Gender) -> Count:
    return Count("utterance__speaker", distinct=True, filter=Q(utterance__speaker__gender=gender))


def _data_set_row(data_set: DataSet, counts: dict[str, Any]) -> DataSetRow:
    return DataSetRow(
        data_set=data_set,
        female=counts.get("female", 0),
        male=counts.get("male", 0),
        utterances=counts.get("n", 0),
        with_audio=counts.get("with_audio", 0),
        seconds=counts.get("seconds") or 0.0,
    )


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
    """Table 3 of the plan: same-speaker and different-speaker trials of each trial set, genders side by side."""
    lists = TrialList.objects.filter(trial_set__corpus=corpus).select_related(
        "trial_set", "enrolment_set"
    )
    genders = {row.data_set.pk: _gender_of(row) for row in rows}
    subsets: dict[str, list[TrialList]] = {}
    for trial_list in lists:
        name = _without_gender(
            trial_list.trial_set.name, genders.get(trial_list.trial_set_id, "mixed")
        )
        subsets.setdefault(name, []).append(trial_list)
    table = []
    for subset, members in subsets.items():
        origin = " and ".join(sorted({member.get_origin_display() for member in members}))
        for kind, attribute in (
            ("Same-speaker", "target_count"),
            ("Different-speaker", "nontarget_count"),
        ):
            counts = {"female": 0, "male": 0, "mixed": 0}
            for member in members:
                counts[genders.get(member.trial_set_id, "mixed")] += getattr(member, attribute)
            table.append(TrialRow(subset=subset, kind=kind, origin=origin, **counts))
    return table


def _gender_of(row: DataSetRow) -> str:
    if row.female and row.male:
        return "mixed"
    return "female" if row.female else "male"


def _without_gender(name: str, gender: str) -> str:
    mark = {"female": "_f", "male": "_m"}.get(gender, "")
    return name.replace(f"trials{mark}", "trials", 1) if mark else name


def speaker_table(corpus: Corpus) -> QuerySet[Speaker]:
    """Speakers with the number and duration of their utterances."""
    return corpus.speakers.annotate(
        utterance_count=Count("utterances"), seconds=Sum("utterances__duration_s")
    )


def search_utterances(
    utterances: QuerySet[Utterance], text: str, gender: str, speaker: str
) -> QuerySet[Utterance]:
    """Utterances whose name or transcript holds `text`, of a gender or a speaker where given."""
    found = utterances.select_related("speaker")
    if text:
        found = found.filter(Q(name__icontains=text) | Q(transcript__icontains=text))
    if gender in Gender.values:
        found = found.filter(speaker__gender=gender)
    if speaker:
        found = found.filter(speaker__name=speaker)
    return found.order_by(F("name"))
