"""How corpora and editions are put away: who may, what goes with them, and why one of them must stay."""

from __future__ import annotations

from typing import Any

from django.db.models import Q, QuerySet
from django.urls import reverse

from portal.challenges import rules, services
from portal.challenges.models import Corpus, DataFile, DataSet, Edition, Speaker, TrialList, Utterance
from portal.challenges.selectors import editions_for, has_submissions, was_published
from portal.core.removal import Kind, declare_kind, declare_rows, declare_rule


def _own_corpora(user: Any) -> QuerySet[Corpus]:
    if user.is_staff:
        return Corpus.objects.all()
    return Corpus.objects.filter(created_by=user) if user.is_organizer else Corpus.objects.none()


def _own_editions(user: Any) -> QuerySet[Edition]:
    return Edition.objects.all() if user.is_staff else Edition.objects.filter(organizers=user)


def _corpus_problem(corpus: Corpus) -> str:
    return rules.corpus_removal_problem([(one.title, was_published(one)) for one in corpus.editions.order_by("name")])


def _edition_problem(edition: Edition) -> str:
    return rules.edition_removal_problem(was_published=was_published(edition))


def edition_trail(edition: Edition | None) -> list[tuple[str, str]]:
    """The list of editions, and the one above a page where there is one."""
    above = [] if edition is None else [(str(edition), edition.get_absolute_url())]
    return [("Editions", reverse("editions:list")), *above]


declare_rows(Speaker, "speakers")
declare_rows(Utterance, "utterances", files=("audio",))
declare_rows(DataSet, "data sets")
declare_rows(TrialList, "trial lists", files=("file",))
declare_rows(DataFile, "files to download", files=("key",))
declare_rule(Corpus, _corpus_problem)
declare_rule(Edition, _edition_problem)
declare_kind(
    Kind(
        name="editions",
        word="edition",
        model=Edition,
        owned=_own_editions,
        edit=lambda edition: reverse("editions:edit", args=[edition.name]),
        name_problem=lambda edition: rules.name_problem(has_submissions=has_submissions(edition)),
        names=lambda _: {"title": "Title"},
        rename=services.rename_edition,
        jobs=lambda edition: Q(edition=edition.name),
        archiving_note=lambda _: "Its systems and listening tests leave the lists with it.",
        edition=lambda edition: edition,
        trail=lambda _: edition_trail(None),
    )
)
declare_kind(
    Kind(
        name="corpora",
        word="corpus",
        model=Corpus,
        owned=_own_corpora,
        names=lambda _: {"name": "Short name", "licence": "Licence", "link": "Web address of the speech"},
        rename=services.rename_corpus,
        jobs=lambda corpus: Q(corpus=corpus.name, edition=""),
        trail=lambda _: [("Corpora", reverse("corpora:list"))],
        needed_by=lambda corpus, user: editions_for(user).filter(corpus=corpus).order_by("name"),
    )
)
