"""The form that runs an anonymiser on a corpus: its methods with their options, its data sets, its edition.

An option is a field of its own, named after method and option, so that the form works without JavaScript; those of the
methods that were not chosen are not looked at. A field that is left out has the default of its option. A method whose
voices are those of target speakers has two fields more: whose speech lends them, and who gets which.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django import forms
from django.db import IntegrityError
from django.db.models import QuerySet, prefetch_related_objects
from django.forms.boundfield import BoundField, BoundWidget
from django.utils.functional import cached_property

from anonymization.app.models import AnonymizationRun, NetworkSeed
from anonymization.app.network_training.selectors import warn_of_speakers
from anonymization.app.networks import list_readers
from anonymization.app.selectors import Pace, label_of, list_paces, list_unfinished_trials
from anonymization.app.services import start_trials
from anonymization.app.voice_assignment import BY_ROLE, TargetRequest
from anonymization.methods.contract import (
    Anonymizer,
    MethodError,
    Option,
    OptionValue,
    makes_vectors,
    plans_voices,
    takes_targets,
)
from anonymization.methods.registry import explain_missing, methods
from anonymization.methods.voices.targets import DEFAULT_SELECTION, SELECTIONS
from portal.challenges.models import Corpus, DataSet, Edition, Role
from portal.challenges.selectors import corpora_for, expected_sets, managed_editions_for
from portal.core.fields import NAME_LETTERS, LineField, RadioField, RowField, RowsField
from portal.core.labels import Missing, group_missing
from portal.corpora.selectors import DataSetRow, data_set_table
from portal.jobs.models import Job
from portal.jobs.workers import lacking
from portal.submissions.models import System
from portal.submissions.services import LONGEST_LABEL, baseline_problem, propose_label
from portal.systems.pages import measuring_per_second
from portal.systems.services import start_baseline, start_edition_baseline

LEVELS = (
    (BY_ROLE, "By the role of each set"),
    (AnonymizationRun.Level.SPEAKER.value, "Speaker level"),
    (AnonymizationRun.Level.UTTERANCE.value, "Utterance level"),
)
NO_EDITION = "No edition"
METHODS_SHOWN = 3  # the others are folded
YES, NO = "yes", "no"


@dataclass(frozen=True)
class Offer:
    """Read once for a page.

    Attributes:
        rows: the data sets of the corpus.
        known: the methods by name; missing: what each lacks here, empty where nothing.
        paces: of the methods of which anything tells one.
        measuring: seconds of work to measure a second of speech, None where nothing tells.
        editions: those of the corpus that this person organises.
        trials: of methods, under way.
        network: of a training in the portal, that the methods read in place of their own, or None.
    """

    rows: list[DataSetRow]
    known: dict[str, Anonymizer]
    missing: dict[str, str]
    paces: dict[str, Pace]
    measuring: float | None
    editions: list[Edition]
    trials: list[Job]
    network: NetworkSeed | None = None

    @property
    def ready(self) -> list[DataSetRow]:
        """Return the data sets that can be anonymised."""
        return [row for row in self.rows if 0 < row.utterances == row.with_audio]

    @property
    def without_audio(self) -> list[DataSetRow]:
        """Return the data sets that lack audio."""
        return [row for row in self.rows if not 0 < row.utterances == row.with_audio]

    @property
    def untried(self) -> list[str]:
        """Return the methods that could run here, of whose pace nothing is known and that are not being tried."""
        tried = {name for job in self.trials for name in job.parameters["methods"]}
        return [name for name, missing in self.missing.items() if not missing and name not in {*self.paces, *tried}]

    def asked_by(self, edition: Edition) -> list[str]:
        """Return the data sets of an edition's lists."""
        asked = {one.name for one in expected_sets(edition)}
        return [row.data_set.name for row in self.rows if row.data_set.name in asked]

    def cost_of(self, method: str) -> float | None:
        """Return seconds that anonymising and measuring a second of speech take; None where nothing tells one of the
        two."""
        pace = self.paces.get(method)
        return None if pace is None or self.measuring is None else pace.work_per_second + self.measuring


def editions_for(corpus: Corpus, by: Any) -> QuerySet[Edition]:
    """Return the editions of a corpus that this person organises, the newest first."""
    return managed_editions_for(by).filter(corpus=corpus, archived_at=None).order_by("-created_at", "-pk")


def make_offer(corpus: Corpus, by: Any, network: NetworkSeed | None = None) -> Offer:
    """Return what this person may choose from on this corpus, of methods those that read a network where one is
    given."""
    known: dict[str, Anonymizer] = {method.name: method for method in methods()}
    refused: dict[str, str] = {}
    if network is not None:
        known, refused = list_readers(network)
    editions = list(editions_for(corpus, by))
    prefetch_related_objects([corpus], "data_sets")
    for edition in editions:
        edition.corpus = corpus  # whose data sets are read once for all of them
    return Offer(
        rows=data_set_table(corpus),
        known=known,
        missing=lacking({name: explain_missing(method) for name, method in known.items()}) | refused,
        paces=list_paces(),
        measuring=measuring_per_second(),
        editions=editions,
        trials=list_unfinished_trials(corpus),
        network=network,
    )


@dataclass(frozen=True)
class MethodCard:
    """A method as the form offers it: its radio button, its pace, and the fields of its options."""

    button: BoundWidget
    method: Anonymizer
    pace: Pace | None
    cost: float | None
    options: list[BoundField]

    @property
    def plans_voices(self) -> bool:
        """Return whether its voices are mixtures, or vectors, that it plans itself."""
        return plans_voices(self.method)

    @property
    def makes_vectors(self) -> bool:
        """Return whether it makes its voices of the recordings."""
        return makes_vectors(self.method)

    @property
    def needed(self) -> list[BoundField]:
        """Return those without which it does not run: of methods with targets."""
        return self.options[: len(self.options) - len(self.method.options)]

    @property
    def usual(self) -> list[BoundField]:
        """Return those whose first values suit most runs."""
        return self.options[len(self.needed) :]

    @property
    def is_wrong(self) -> bool:
        """Return whether one of the usual options has an error."""
        return any(one.errors for one in self.usual)

    @property
    def pace_text(self) -> str:
        """Return how many seconds of speech a second of work anonymises here, and what tells so; empty where nothing
        does."""
        if self.pace is None:
            return ""
        ratio = 1 / self.pace.work_per_second if self.pace.work_per_second else float("inf")
        source = "a trial" if self.pace.source == "trial" else f"{self.pace.n} run{'s' if self.pace.n > 1 else ''}"
        return f"{ratio:,.3g} s of speech in a second, by {source} here"


@dataclass(frozen=True)
class MethodPart:
    """Cards of methods; with a title, they are folded under it."""

    cards: list[MethodCard]
    title: str = ""
    is_open: bool = False


def option_name(method: Anonymizer, option: Option) -> str:
    """Name of the field of an option."""
    return f"{method.name}__{option.name}"


def option_fields(known: Iterable[Anonymizer]) -> dict[str, forms.Field]:
    """Return the fields of all options of these methods, by name."""
    return {option_name(method, option): _field(option) for method in known for option in method.options}


def target_field_names(method: Anonymizer) -> tuple[str, str]:
    """Return names of the fields of a method with targets: their data set and their selection."""
    return f"{method.name}__target_set", f"{method.name}__target_selection"


def target_fields(known: Iterable[Anonymizer], data_sets: Sequence[DataSet]) -> dict[str, forms.Field]:
    """Return the fields of all methods with targets, by name. data_sets: what may lend them."""
    fields: dict[str, forms.Field] = {}
    for method in filter(takes_targets, known):
        of_set, of_selection = target_field_names(method)
        fields[of_set] = forms.ChoiceField(
            label="Targets come from",
            choices=[("", "Choose a data set"), *((str(one.pk), one.name) for one in data_sets)],
            required=False,
            error_messages={"invalid_choice": "Choose a data set of this list."},
            help_text="Its speakers are the targets; best are speakers who are not anonymised themselves.",
        )
        fields[of_selection] = forms.ChoiceField(
            label="Who gets which target",
            choices=[(one.name, one.title) for one in SELECTIONS.values()],
            required=False,
            initial=DEFAULT_SELECTION,
            error_messages={"invalid_choice": "Choose a selection of this list."},
            help_text=" ".join(f"{one.title}: {one.meaning}" for one in SELECTIONS.values()),
        )
    return fields


def chosen_targets(
    method: Anonymizer, cleaned: Mapping[str, Any], data_sets: Iterable[DataSet]
) -> tuple[TargetRequest | None, dict[str, str]]:
    """Return the targets that a cleaned form chose for a method, and by field what is wrong."""
    if not takes_targets(method):
        return None, {}
    of_set, of_selection = target_field_names(method)
    chosen = next((one for one in data_sets if str(one.pk) == cleaned.get(of_set)), None)
    if chosen is None:
        return None, {of_set: "Choose the data set whose speakers are the targets."} if of_set in cleaned else {}
    return TargetRequest(chosen, cleaned.get(of_selection) or DEFAULT_SELECTION), {}


def _field(option: Option) -> forms.Field:
    label, text = label_of(option.name.removesuffix("_s")), f"{option.meaning[:1].upper()}{option.meaning[1:]}."
    if option.choices:
        choices = [(choice, label_of(choice)) for choice in option.choices]
        return forms.ChoiceField(label=label, choices=choices, required=False, initial=option.default, help_text=text)
    if isinstance(option.default, bool):
        initial = YES if option.default else NO
        return forms.ChoiceField(
            label=label, choices=[(YES, "Yes"), (NO, "No")], required=False, initial=initial, help_text=text
        )
    unit = f", {option.unit.strip()}" if option.unit else ""
    return forms.FloatField(
        label=f"{label}{unit}",
        required=False,
        initial=option.default,
        min_value=option.low,
        max_value=option.high,
        help_text=text,
        widget=forms.NumberInput(attrs={"step": "any"}),
    )


def chosen_options(method: Anonymizer, cleaned: Mapping[str, Any]) -> tuple[dict[str, OptionValue], dict[str, str]]:
    """Return the options that a cleaned form chose for a method, and by field what is wrong with others."""
    options: dict[str, OptionValue] = {}
    wrong: dict[str, str] = {}
    for option in method.options:
        name = option_name(method, option)
        value = cleaned.get(name)
        if value in (None, ""):
            continue
        if isinstance(option.default, bool):
            value = value == YES
        try:
            options[option.name] = option.validate(value)
        except MethodError as error:
            wrong[name] = str(error)
    return options, wrong


class BaselineForm(forms.Form):
    """Which method, with which options, over which data sets of one corpus; by itself or as a baseline of an edition.

    `offer`: what there is to choose from. `edition`: name of the one that is chosen at first, with its data sets.
    `network`: of a training in the portal, that the method reads.
    """

    method = RadioField("Method", "a method")
    data_sets = RowsField(
        "Data sets",
        "data set",
        help_text="One job anonymises each, another measures it. A baseline needs all sets that teams submit.",
    )
    level = RadioField("Who gets a voice", "a level", choices=LEVELS, initial=BY_ROLE, required=False)
    edition = RowField(
        label="Edition",
        queryset=None,
        widget=forms.RadioSelect,
        required=False,
        blank=True,
        empty_label=NO_EDITION,
        error_messages={"invalid_choice": "Choose an edition of this list."},
    )
    label = LineField(
        label="Title on the leaderboard",
        max_length=LONGEST_LABEL,
        required=False,
        help_text="For a baseline of an edition. Left empty, it is made from the method, such as B2.",
    )
    incomplete = forms.BooleanField(label="Start without the data sets that are missing", required=False)
    name = forms.SlugField(
        label="Name of the system",
        max_length=60,
        required=False,
        help_text=f"Use {NAME_LETTERS}; it becomes part of addresses. Left empty, it is made from method and corpus.",
        error_messages={
            "invalid": f"Use {NAME_LETTERS} only, such as b2-speech.",
            "max_length": "Use at most %(limit_value)s characters; this name has %(show_value)s.",
        },
    )
    seed = forms.IntegerField(
        label="Seed",
        min_value=0,
        max_value=2**63 - 1,
        help_text="The same seed gives every speaker the same pseudo-speaker again. "
        "It reveals the choice of voices: keep it secret while results count.",
        error_messages={
            "required": "Give a seed: any whole number from 0 on.",
            "invalid": "A seed is a whole number from 0 on, such as 2022.",
            "min_value": "A seed is 0 or more.",
            "max_value": "A seed is at most %(limit_value)s.",
        },
    )

    def __init__(
        self,
        *args: Any,
        corpus: Corpus,
        by: Any,
        edition: str = "",
        network: NetworkSeed | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.corpus, self.by = corpus, by
        self.offer = make_offer(corpus, by, network)
        ready = [row.data_set.pk for row in self.offer.ready]
        fields: Any = self.fields
        fields["method"].choices = [(method.name, method.title) for method in self.offer.known.values()]
        fields["method"].initial = next((name for name, missing in self.offer.missing.items() if not missing), None)
        fields["data_sets"].queryset = corpus.data_sets.filter(pk__in=ready).select_related("corpus")
        fields["data_sets"].initial = ready
        fields["edition"].queryset = editions_for(corpus, by)
        self.wanted = next((one for one in self.offer.editions if one.name == edition), None)
        if self.wanted is not None:
            asked = self.offer.asked_by(self.wanted)
            fields["edition"].initial = self.wanted.pk
            fields["data_sets"].initial = [row.data_set.pk for row in self.offer.ready if row.data_set.name in asked]
        self.fields["seed"].initial = secrets.randbelow(10**9)
        self.fields |= option_fields(self.offer.known.values())
        self.fields |= target_fields(self.offer.known.values(), self._lenders)

    @property
    def _lenders(self) -> list[DataSet]:
        """Return the data sets whose speakers may be targets."""
        return [row.data_set for row in self.offer.ready]

    # What the page shows -----------------------------------------------------------------------------

    def method_choices(self) -> Iterator[MethodCard]:
        """Yield the radio button of each method that can run here, with all that is known of it."""
        for button, method in zip(self["method"], self.offer.known.values(), strict=True):
            if self.offer.missing[method.name]:
                continue
            pace = self.offer.paces.get(method.name)
            fields = [self[name] for name in _field_names(method)]
            yield MethodCard(button, method, pace, self.offer.cost_of(method.name), fields)

    def method_parts(self) -> list[MethodPart]:
        """Return the first methods, and the rest, which is folded until one of it is chosen."""
        cards = list(self.method_choices())
        rest = cards[METHODS_SHOWN:]
        is_open = any(card.method.name == self["method"].value() for card in rest)
        parts = [MethodPart(cards[:METHODS_SHOWN])]
        if rest:
            title = f"{len(rest)} more method{'' if len(rest) == 1 else 's'}"
            parts.append(MethodPart(rest, title, is_open))
        return parts

    def other_corpora(self) -> QuerySet[Corpus]:
        """Return those on which the same network could run."""
        return corpora_for(self.by).filter(archived_at=None).exclude(pk=self.corpus.pk).order_by("name")

    def warnings(self) -> list[str]:
        """Return what a reader of evaluations must know of the network on this corpus."""
        return warn_of_speakers(self.offer.network, self.corpus) if self.offer.network else []

    def seldom_changed(self) -> list[BoundField]:
        """Return fields whose first values suit most runs."""
        return [self[name] for name in ("label", "name", "seed") if name != "label" or self.offer.editions]

    @property
    def opens_more(self) -> bool:
        """Return whether one of the folded fields has an error."""
        return any(one.errors for one in (self["level"], *self.seldom_changed()))

    def missing_groups(self) -> list[Missing]:
        """Return the methods that cannot run here by what is missing."""
        return group_missing((one.title, self.offer.missing[one.name]) for one in self.offer.known.values())

    def data_set_choices(self) -> Iterator[tuple[BoundWidget, DataSetRow]]:
        """Yield each ready data set's checkbox with its numbers, in the order of the corpus page."""
        buttons = {int(str(button.data["value"])): button for button in self["data_sets"]}
        yield from ((buttons[row.data_set.pk], row) for row in self.offer.ready)

    def edition_choices(self) -> Iterator[tuple[BoundWidget, Edition | None, str]]:
        """Yield each edition's radio button, none first, with the names of the data sets that its teams anonymise."""
        for button, edition in zip(self["edition"], [None, *self.offer.editions], strict=True):
            yield button, edition, ", ".join(self.offer.asked_by(edition)) if edition else ""

    @property
    def asks_about_missing(self) -> bool:
        """Return whether data sets of the edition's lists are missing among those chosen."""
        return bool(self.is_bound and self.errors and self.missing_sets)

    # What it takes -----------------------------------------------------------------------------------

    def clean_method(self) -> str:
        name: str = self.cleaned_data["method"]
        if missing := self.offer.missing[name]:
            raise forms.ValidationError(missing)
        return name

    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"]
        if System.objects.filter(name=name).exists():
            raise forms.ValidationError(_say_taken(name))
        return name

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        self._clean_options(cleaned)
        self._clean_level(cleaned)
        if cleaned.get("edition") is not None:
            self._clean_edition(cleaned)
        elif "method" in cleaned and not cleaned.get("name") and "name" not in self.errors:
            cleaned["name"] = _free_name(f"{cleaned['method']}-{self.corpus.name}"[:60])
        return cleaned

    def _clean_options(self, cleaned: dict[str, Any]) -> None:
        """Only what belongs to the chosen method counts."""
        chosen = self.offer.known.get(cleaned.get("method", ""))
        for method in self.offer.known.values():
            for name in () if method is chosen else _field_names(method):
                self.errors.pop(name, None)
        if chosen is not None:
            self.options, wrong = chosen_options(chosen, cleaned)
            self.targets, missing = chosen_targets(chosen, cleaned, self._lenders)
            for name, sentence in (wrong | missing).items():
                self.add_error(name, sentence)

    def _clean_level(self, cleaned: dict[str, Any]) -> None:
        at_speaker_level = cleaned.get("level") == AnonymizationRun.Level.SPEAKER
        training = [one.name for one in cleaned.get("data_sets", ()) if one.role == Role.TRAINING]
        if at_speaker_level and training:
            sentence = f"Training data is anonymised at utterance level only: {', '.join(training)}."
            self.add_error("level", f"{sentence} Leave it out, or choose another level.")

    def _clean_edition(self, cleaned: dict[str, Any]) -> None:
        edition: Edition = cleaned["edition"]
        self.errors.pop("name", None)  # the system is named after its title
        cleaned["name"] = ""
        if "label" in cleaned and not cleaned["label"] and (method := self.offer.known.get(cleaned.get("method", ""))):
            cleaned["label"] = propose_label(edition, method.title.partition(":")[0].partition(" (")[0])
        if "label" in cleaned and (problem := baseline_problem(edition, cleaned["label"])):
            self.add_error("label", problem)
        if self.missing_sets and not cleaned.get("incomplete") and "data_sets" in cleaned:
            names = ", ".join(self.missing_sets)
            self.add_error(
                "data_sets",
                f"{edition} asks its teams for these, too: {names}. Choose them, or say below that it shall start "
                "without; numbers that rest on them will be missing.",
            )

    @cached_property
    def missing_sets(self) -> list[str]:
        """Return data sets of the lists of the chosen edition that were not chosen."""
        edition = self.cleaned_data.get("edition") if self.is_bound else None
        if edition is None:
            return []
        chosen = {data_set.name for data_set in self.cleaned_data.get("data_sets", ())}
        return [name for name in self.offer.asked_by(edition) if name not in chosen]

    # What comes of it --------------------------------------------------------------------------------

    def start(self) -> System | None:
        """Start what a valid form asks for; None with an error of the form where the name was taken meanwhile."""
        asked = {key: self.cleaned_data[key] for key in ("data_sets", "method", "seed", "level")}
        asked |= {"options": self.options, "targets": self.targets, "network": self.offer.network, "by": self.by}
        edition, label, name = (self.cleaned_data[key] for key in ("edition", "label", "name"))
        try:
            if edition is not None:
                return start_edition_baseline(edition=edition, label=label, **asked)
            return start_baseline(corpus=self.corpus, name=name, **asked)
        except MethodError as error:
            self.add_error("method", str(error))
        except IntegrityError:
            if edition is not None and (problem := baseline_problem(edition, label)):
                self.add_error("label", problem)
            elif edition is None and System.objects.filter(name=name).exists():
                self.add_error("name", _say_taken(name))
            else:
                raise
        return None

    def start_trial(self) -> Job | None:
        """Let the methods of unknown pace be tried on one utterance; None where there is none."""
        if not self.offer.untried or not self.offer.ready:
            return None
        return start_trials(corpus=self.corpus, methods=self.offer.untried, by=self.by)


def _field_names(method: Anonymizer) -> list[str]:
    """Of the fields that belong to a method alone."""
    targets = target_field_names(method) if takes_targets(method) else ()
    return [*targets, *(option_name(method, option) for option in method.options)]


def _say_taken(name: str) -> str:
    return f"There is a system {name} already. {_free_name(name)} is free."


def _free_name(wanted: str) -> str:
    taken = set(System.objects.filter(name__startswith=wanted[:50]).values_list("name", flat=True))
    if wanted not in taken:
        return wanted
    return next(name for number in range(2, len(taken) + 3) if (name := f"{wanted[:50]}-{number}") not in taken)
