"""Which corpora and editions somebody may open, and what is kept of an edition: recipe, data sets, terms."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any

from django.core.files.storage import default_storage
from django.db.models import Q, QuerySet
from django.shortcuts import get_object_or_404

from evaluation.protocols.ranking.policy import write_policy
from evaluation.protocols.recipe_making import write_recipe
from evaluation.protocols.recipes import FOLDER, parse_recipe
from evaluation.protocols.recipes import DataSet as RecipeSet
from portal.challenges.models import Corpus, DataSet, Edition, Role, TrialList, Utterance
from portal.challenges.rules import HeldSet, retitle_recipe
from portal.core.models import AuditEvent
from portal.jobs.models import Job

DATA_FILES = "data-files"  # the kind of job that makes the files for teams
USUAL_TERMS = "The recordings are used for this challenge only and are not passed on."


def corpora_for(user: Any) -> QuerySet[Corpus]:
    """Return the corpora that this person may see: speech is personal data, so organizers only.

    Each sees their own, those of the editions that they organise, and those that are shared with all organizers.
    """
    if not (user.is_authenticated and user.is_organizer):
        return Corpus.objects.none()
    of_editions = Edition.objects.filter(organizers=user, corpus__isnull=False).values("corpus")
    return Corpus.objects.filter(Q(is_shared=True) | Q(created_by=user) | Q(pk__in=of_editions))


def managed_corpora_for(user: Any) -> QuerySet[Corpus]:
    """Return the corpora that this person may change and delete: their own, and for the operator all."""
    if user.is_staff:
        return Corpus.objects.all()
    return Corpus.objects.filter(created_by=user) if user.is_organizer else Corpus.objects.none()


def may_see_corpus(user: Any, corpus: Corpus | None) -> bool:
    """Return whether this person may see a corpus at hand, as `corpora_for` says."""
    if corpus is None or not (user.is_authenticated and user.is_organizer):
        return False
    return corpus.is_shared or corpus.created_by_id == user.pk or corpus.editions.filter(organizers=user).exists()


def may_pass_on(person: Any, corpus: Corpus | None) -> bool:
    """Return whether somebody may give the speech of a corpus to teams: its owner, operators, a shell; all where none
    owns it.

    Seeing a corpus that is shared with all organizers is not enough.
    """
    if corpus is None or corpus.created_by_id is None or person is None:
        return True
    return bool(corpus.created_by_id == person.pk or person.is_staff)


def passes_speech_on(edition: Edition) -> bool:
    """Return whether teams of an edition get the speech: it says so, and one of its organizers may decide that."""
    if not edition.shares_data or edition.corpus is None:
        return False
    owner = edition.corpus.created_by_id
    return owner is None or edition.organizers.filter(Q(pk=owner) | Q(is_staff=True)).exists()


def count_speakers_tested(data_sets: QuerySet[DataSet]) -> int:
    """Return how many speakers of data sets of one corpus are enrolled or tried there, too."""
    tested = DataSet.objects.filter(corpus__in=data_sets.values("corpus"), role__in=(Role.ENROLMENT, Role.TRIAL))
    heard = Utterance.objects.filter(data_sets__in=tested).order_by().values("speaker")
    learnt = Utterance.objects.filter(data_sets__in=data_sets, speaker__in=heard)
    return learnt.order_by().values("speaker").distinct().count()


# Editions ------------------------------------------------------------------------------------------


def editions_for(user: Any) -> QuerySet[Edition]:
    """Return the editions that this person may see: the listed ones, and those they organise or take part in."""
    seen = Q(is_listed=True)
    if user.is_authenticated:
        seen |= Q(organizers=user) | Q(teams__memberships__user=user)
    return Edition.objects.filter(pk__in=Edition.objects.filter(seen).values("pk")).select_related("corpus")


def edition_for(user: Any, name: str) -> Edition:
    return get_object_or_404(editions_for(user), name=name)


def managed_editions_for(user: Any) -> QuerySet[Edition]:
    """Return the editions that this person organises."""
    if not user.is_authenticated:
        return Edition.objects.none()
    return Edition.objects.filter(organizers=user).select_related("corpus")


def managed_edition_for(user: Any, name: str) -> Edition:
    return get_object_or_404(managed_editions_for(user), name=name)


def editions_organised_by(user: Any) -> set[int]:
    """Return the keys of the editions that this person organises."""
    return set(managed_editions_for(user).values_list("pk", flat=True))


def corpora_for_edition(user: Any, edition: Edition | None) -> QuerySet[Corpus]:
    """Return the corpora that this person may choose for an edition: those they may see, and the one it has."""
    held = Q(pk__in=[edition.corpus_id] if edition and edition.corpus_id else [])
    return Corpus.objects.filter(Q(pk__in=corpora_for(user), archived_at=None) | held).order_by("name")


def has_submissions(edition: Edition) -> bool:
    """Return whether a result rests on this edition: anything was submitted to it."""
    return edition.systems.filter(submissions__isnull=False).exists()


def was_published(edition: Edition) -> bool:
    """Return whether the leaderboard of an edition is or ever was public."""
    told = AuditEvent.objects.filter(subject_type="challenges.edition", subject_id=str(edition.pk))
    return edition.published_at is not None or told.filter(action="board.published").exists()


def stored_recipe(edition: Edition) -> str:
    """Return the recipe of an edition as it was stored: its own text, or the file of the shipped one."""
    return edition.recipe_text or (FOLDER / f"{edition.protocol}.toml").read_text(encoding="utf-8")


def recipe_hash(edition: Edition) -> str:
    """Return the first 12 hexadecimal digits of the SHA-256 of an edition's recipe."""
    return hashlib.sha256(stored_recipe(edition).encode()).hexdigest()[:12]


def export_recipe(edition: Edition) -> str:
    """Return the recipe of an edition for others, with what its organizers rank by: all that they compute follows it.

    It is as it was stored where that says the same; a custom one has the title that the edition has now.
    """
    text = stored_recipe(edition)
    if edition.leaderboard_policy:
        recipe = parse_recipe(text, file=f"{edition.name}.toml", is_stored=True)
        ranked = write_policy(recipe, edition.track, edition.policy_changes)
        text = write_recipe(ranked, comment="With the conditions that the organizers of the edition have set.")
    return retitle_recipe(text, edition.title) if edition.recipe_text else text


def held_sets(corpus: Corpus, names: Iterable[str] | None = None) -> dict[str, HeldSet]:
    """Return the data sets of a corpus by name, with the names of their utterances; only those of `names` where
    given."""
    sets = corpus.data_sets.order_by("name")
    if names is not None:
        sets = sets.filter(name__in=set(names))
    members: dict[str, list[str]] = {}
    for name, utterance in sets.values_list("name", "utterances__name"):
        members.setdefault(name, []).extend([utterance] if utterance else [])
    roles = dict(sets.values_list("name", "role"))
    return {name: HeldSet(role=roles[name], utterances=tuple(utterances)) for name, utterances in members.items()}


def expected_sets(edition: Edition) -> list[DataSet]:
    """Return the data sets of the recipe that teams anonymise, as the corpus holds them, by name.

    Those of enrolment and trial, and those of training where teams evaluate or the portal trains an attacker on them;
    of a track with languages only the sets of these. A corpus of which the recipe names no set is asked for as a whole.
    """
    if edition.corpus is None:
        return []
    sets = list(edition.corpus.data_sets.all())
    heard = [one for one in sets if one.role != Role.TRAINING]
    named = _named_sets(edition)
    if not {one.name for one in heard} & _names(edition.recipe.data_sets.values()):
        named |= {one.name for one in heard}
    evaluation = edition.recipe.evaluation
    trains = evaluation.by_teams or bool(evaluation.training)
    return [one for one in sets if one.name in named and (trains or one.role != Role.TRAINING)]


def _names(sets: Iterable[RecipeSet]) -> set[str]:
    """Return the names by which a corpus may know data sets of a recipe."""
    return {name for one in sets for name in (one.name, one.directory) if name}


def _named_sets(edition: Edition) -> set[str]:
    """Return the names of the data sets of the recipe, of a track with languages only of those."""
    recipe = edition.recipe
    track = recipe.tracks.get(edition.track) or (recipe.track if len(recipe.tracks) == 1 else None)
    languages = {*track.languages, *track.surprise_languages} if track else set()
    return _names(one for one in recipe.data_sets.values() if not languages or one.language in languages)


def find_data_job(edition: Edition) -> Job | None:
    """Return the newest job that makes the files for teams."""
    return Job.objects.filter(kind=DATA_FILES, edition=edition.name).order_by("-created_at").first()


def makes_data_files(edition: Edition) -> bool:
    """Return whether such a job is under way."""
    job = find_data_job(edition)
    return job is not None and not job.has_ended


def terms_of_data(edition: Edition) -> str:
    """Return what people accept who download the data of an edition: the licence of its corpus and the organizer's
    terms."""
    corpus = edition.corpus
    licence = f"Licence of the corpus {corpus}: {corpus.licence}" if corpus and corpus.licence else ""
    given = [part for part in (licence, edition.data_terms.replace("\r\n", "\n").strip()) if part] or [USUAL_TERMS]
    given += [f"Source of the corpus {corpus}: {corpus.link}"] if corpus and corpus.link else []
    return "\n\n".join(given)


def explain_terms(corpus: Corpus | None, data_terms: str) -> str:
    """Return what teams would accept before they download the speech, for the form where an organizer lets them."""
    if corpus is None:
        return "Teams first accept the licence of the corpus and the terms below."
    text = " ".join(terms_of_data(Edition(corpus=corpus, data_terms=data_terms)).split())
    unstated = f"The corpus {corpus} states no licence; its owner can, on its page under “Edit”. "
    end = "" if text[:600].endswith(".") else "."
    if ";" in corpus.licence:
        end += (
            " These licences are of the whole corpus, data sets without a tick included; the terms can say which apply."
        )
    return f"{'' if corpus.licence else unstated}Teams first accept this text: “{text[:600]}”{end}"


# Trial lists ---------------------------------------------------------------------------------------


def find_trials(corpus: Corpus | None, trial_set: str, enrolment_set: str) -> str | None:
    """Return the lines of the trial list of a trial set with its enrolment set; None where the corpus has no such
    list."""
    found = TrialList.objects.filter(
        trial_set__corpus=corpus, trial_set__name=trial_set, enrolment_set__name=enrolment_set
    ).first()
    if found is None:
        return None
    if found.origin != TrialList.Origin.GIVEN:
        return "".join(_product(found))
    with default_storage.open(found.file) as file:
        text: str = file.read().decode()
        return text


def _product(trials: TrialList) -> Iterator[str]:
    """Yield every enrolled speaker against every trial utterance of the same gender, as lines of a trial list."""
    enrolled = trials.enrolment_set.utterances.values_list("speaker__name", "speaker__gender").distinct()
    models = sorted(set(enrolled.order_by()))
    tested = trials.trial_set.utterances.order_by("name").values_list("name", "speaker__name", "speaker__gender")
    for utterance, speaker, gender in tested:
        for model, model_gender in models:
            if model_gender == gender:
                yield f"{model} {utterance} {'target' if model == speaker else 'nontarget'}\n"
