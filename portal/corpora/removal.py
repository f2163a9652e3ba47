"""How corpora are put away: who may, what goes with them, and why one of them must stay."""

from __future__ import annotations

from typing import Any

from django.db.models import Q, QuerySet
from django.urls import reverse

from portal.challenges import rules
from portal.challenges.models import Corpus, DataSet, Speaker, TrialList, Utterance
from portal.challenges.selectors import editions_for, was_published
from portal.core.removal import RemovableKind, declare_kind, declare_rows, declare_rule
from portal.corpora import services


def _own_corpora(user: Any) -> QuerySet[Corpus]:
    if user.is_staff:
        return Corpus.objects.all()
    return Corpus.objects.filter(created_by=user) if user.is_organizer else Corpus.objects.none()


def _corpus_problem(corpus: Corpus) -> str:
    return rules.corpus_removal_problem([(one.title, was_published(one)) for one in corpus.editions.order_by("name")])


declare_rows(Speaker, "speakers")
declare_rows(Utterance, "utterances", files=("audio",))
declare_rows(DataSet, "data sets")
declare_rows(TrialList, "trial lists", files=("file",))
declare_rule(Corpus, _corpus_problem)
declare_kind(
    RemovableKind(
        name="corpora",
        word="corpus",
        model=Corpus,
        owned=_own_corpora,
        names=lambda _: {"name": "Short name", "licence": "Licence", "link": "Web address of the speech"},
        rename=services.rename_corpus,
        archiving_note=lambda _: "Editions that run on it keep it, and its systems stay in their list.",
        jobs=lambda corpus: Q(corpus=corpus.name, edition=""),
        trail=lambda _: [("Corpora", reverse("corpora:list"))],
        needed_by=lambda corpus, user: editions_for(user).filter(corpus=corpus).order_by("name"),
    )
)
