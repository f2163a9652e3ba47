"""What a recipe can be made from: the data sets of a corpus as they are, and the engines with what each lacks here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Q
from django.utils.text import slugify

from common.line_texts import number_line
from evaluation.attackers.training.recipe import PRESETS, TRAINING_ENGINE, find_missing_libraries
from evaluation.protocols.evaluation_table import Evaluation
from evaluation.protocols.recipe_making import (
    Engines,
    SpeakerShare,
    SpeechSet,
    TrialCounts,
    make_recipe,
    propose_choices,
)
from evaluation.protocols.recipe_making import write_recipe as write_text
from evaluation.protocols.recipes import Recipe
from portal.challenges.models import Corpus, DataSet, Edition, TrialList
from portal.challenges.selectors import editions_for
from portal.challenges.services import RESERVED_NAMES
from portal.core.labels import Missing, group_missing
from portal.intake.corpora.data_sets import find_enrolment_set
from portal.jobs.workers import lacking
from speech.encoders import registry as encoders
from speech.recognizers import registry as recognizers

LONGEST_NAME, LONGEST_TITLE = 40, 120
RANKS = "Attacker that ranks"
_TRAININGS = {
    "small": "Small, minutes without a graphics card",
    "vpc24": "VoicePrivacy 2024",
    "spane": "SpAnE",
    "2022": "x-vector with PLDA, VoicePrivacy 2022",
    "2020": "x-vector with PLDA, VoicePrivacy 2020",
    "2022-small": "x-vector with PLDA, small",
}


@dataclass(frozen=True)
class EngineOffer:
    """What may be chosen of one kind of engine: title by name of those that run here, the usual one first.

    Attributes:
        missing: the others, by what they lack.
        languages: of recognisers, by name.
    """

    ready: dict[str, str]
    missing: Sequence[Missing] = ()
    languages: dict[str, tuple[str, ...]] | None = None


def offer_attackers() -> EngineOffer:
    return _offer(encoders.engines().values(), encoders.explain_missing, encoders.DEFAULT)


def offer_recognizers() -> EngineOffer:
    known = recognizers.engines()
    languages = {name: tuple(one.languages) for name, one in known.items()}
    offer = _offer(known.values(), recognizers.explain_missing, recognizers.DEFAULT)
    return EngineOffer(offer.ready, offer.missing, languages)


def offer_trainings() -> EngineOffer:
    """Return the recipes of training, the quickest first."""
    names = sorted(PRESETS, key=lambda name: name != "small")
    titles = {name: _TRAININGS.get(name, name) for name in names}
    missing = lacking({TRAINING_ENGINE: find_missing_libraries()})[TRAINING_ENGINE]
    return EngineOffer({}, group_missing([("Training", missing)])) if missing else EngineOffer(titles)


def find_engines() -> Engines:
    """Return what can run here."""
    return Engines(*(tuple(one().ready) for one in (offer_attackers, offer_recognizers, offer_trainings)))


def describe_engines(evaluation: Evaluation) -> list[tuple[str, str]]:
    """Return what a portal that evaluates attacks and recognises with: what it is for, and its title and version."""
    if not evaluation.by_portal:
        return []
    attackers, heard = encoders.engines(), recognizers.engines()
    named: list[tuple[str, Mapping[str, Any], str]] = [
        ("Further attacker" if place else "Attacker" if evaluation.training else RANKS, attackers, name)
        for place, name in enumerate(evaluation.attackers)
    ]
    named += [("Recogniser", heard, evaluation.recognizer)] if evaluation.recognizer else []
    found = [
        (what, f"{known[name].title}, version {known[name].version}" if name in known else name)
        for what, known, name in named
    ]
    training = _TRAININGS.get(evaluation.training, evaluation.training)
    return [*found, (f"{RANKS}, trained on anonymised speech", training)] if training else found


def _offer(known: Iterable[Any], explain: Callable[[Any], str], default: str) -> EngineOffer:
    lacks = lacking({one.name: explain(one) for one in known})
    every = sorted(known, key=lambda one: one.name != default)
    ready = {one.name: one.title for one in every if not lacks[one.name]}
    return EngineOffer(ready, group_missing((one.title, lacks[one.name]) for one in every))


def describe_sets(corpus: Corpus) -> list[SpeechSet]:
    """Return the data sets of a corpus with speakers, transcripts and trials, in three queries whatever their
    number."""
    sets = list(corpus.data_sets.order_by("name"))
    rows = DataSet.utterances.through.objects.filter(dataset__in=sets).order_by("utterance__speaker__name")
    columns = ("dataset", "utterance__speaker__name", "utterance__speaker__gender")
    counted = rows.values_list(*columns).annotate(
        every=Count("pk"), told=Count("pk", filter=~Q(utterance__transcript=""))
    )
    speakers: dict[int, list[SpeakerShare]] = {}
    transcribed: dict[int, int] = {}
    for key, name, gender, utterances, with_text in counted:
        speakers.setdefault(key, []).append(SpeakerShare(name, gender, utterances))
        transcribed[key] = transcribed.get(key, 0) + with_text
    lists = {one.trial_set_id: one for one in TrialList.objects.filter(trial_set__in=sets).order_by("-pk")}
    enrolment = {one.pk: one.name for one in sets if one.role == "enrolment"}
    return [
        SpeechSet(
            name=one.name,
            role=one.role,
            split=one.split,
            speakers=tuple(speakers.get(one.pk, ())),
            transcribed=transcribed.get(one.pk, 0),
            enrolment=_enrolment(one, lists.get(one.pk), enrolment),
            trials=_trials(lists.get(one.pk)),
        )
        for one in sets
    ]


def _enrolment(one: DataSet, listed: TrialList | None, enrolment: dict[int, str]) -> str:
    if one.role != "trial":
        return ""
    if listed is not None:
        return enrolment.get(listed.enrolment_set_id, "")
    return find_enrolment_set(one.name, enrolment.values()) or ""


def _trials(listed: TrialList | None) -> TrialCounts | None:
    return None if listed is None else TrialCounts(listed.model_count, listed.target_count, listed.nontarget_count)


def propose_recipe(corpus: Corpus) -> Recipe:
    """Return the recipe with every default.

    Raises:
        ValueError: the corpus has no trial set that can be attacked.
    """
    sets = describe_sets(corpus)
    choices = propose_choices(sets, find_engines(), edition=corpus.name[:LONGEST_NAME].lower(), title=corpus.name)
    return make_recipe(sets, choices)


def write_recipe(recipe: Recipe, corpus: Corpus) -> str:
    """Return the text of a recipe that was made from a corpus."""
    return write_text(recipe, comment=f"Made by the portal from the corpus {corpus}.")


def free_title(title: str, user: Any) -> str:
    """Return the title, with a number where an edition that this person may see has it."""
    return number_line(title, editions_for(user).values_list("title", flat=True), longest=LONGEST_TITLE)


def free_name(title: str) -> str:
    """Return a name for addresses that is derived from a title and that no edition has."""
    start = slugify(title)[:LONGEST_NAME].strip("-_") or "challenge"
    taken = set(Edition.objects.filter(name__startswith=start[:30]).values_list("name", flat=True)) | RESERVED_NAMES
    if start not in taken:
        return start
    numbered = (f"{start[: LONGEST_NAME - 4]}-{number}" for number in range(2, len(taken) + 3))
    return next(name for name in numbered if name not in taken)
