"""The forms that let an attacker or a recogniser of this portal loose on a submission."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

from django import forms
from django.forms.boundfield import BoundWidget

from anonymization.estimates import seconds_of
from evaluation.attackers import registry as attackers
from evaluation.models import EvaluationRun
from evaluation.recognizers import registry as recognizers
from evaluation.selectors_attack import seconds_per_second, trial_sets_of
from evaluation.selectors_recognition import spoken_sets_of
from evaluation.services_attack import start_attack
from evaluation.services_recognition import start_recognition
from portal.core.wording import roughly
from portal.jobs.services import NotPossible
from portal.submissions.models import Submission


class Described(Protocol):
    """What attackers and recognisers say of themselves."""

    @property
    def name(self) -> str: ...
    @property
    def version(self) -> str: ...
    @property
    def key(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def source(self) -> str: ...
    @property
    def licence(self) -> str: ...


@dataclass(frozen=True)
class EngineCard:
    """An engine as the form offers it. cost: seconds of work for a second of speech, None where nothing tells."""

    button: BoundWidget
    engine: Described
    missing: str
    cost: float | None

    @property
    def pace(self) -> str:
        """How much speech it works through in a second, by what it took here before; empty before it worked here."""
        return f"{1 / self.cost:,.3g} s of speech in a second, by earlier runs here" if self.cost else ""


@dataclass(frozen=True)
class SetRow:
    """A data set that a form offers.

    Attributes:
        seconds: of speech that an engine goes through for it.
        refusal: why it cannot be chosen, in one sentence; empty where it can.
        note: what it is tested with.
    """

    name: str
    seconds: float
    refusal: str
    note: str


class EngineForm(forms.Form):
    """Which engine goes over which data sets of a submission."""

    engine = forms.ChoiceField(
        widget=forms.RadioSelect,
        error_messages=dict.fromkeys(("required", "invalid_choice"), "Choose one of this list."),
    )
    data_sets = forms.MultipleChoiceField(
        label="Data sets",
        widget=forms.CheckboxSelectMultiple,
        error_messages={
            "required": "Choose at least one data set.",
            "invalid_choice": "Choose data sets of this list.",
        },
    )
    heading = ""
    engine_label = ""
    sets_help = ""
    submit = ""

    def __init__(self, *args: Any, submission: Submission, by: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.submission, self.by = submission, by
        self.engines = self.known_engines()
        self.missing = self.missing_engines()
        self.costs = {name: seconds_per_second(engine.key) for name, engine in self.engines.items()}
        self.rows = sorted(self.offered_sets(), key=lambda row: row.name)
        self.ready = [row for row in self.rows if not row.refusal]
        engine_field = cast("forms.ChoiceField", self.fields["engine"])
        engine_field.label = self.engine_label
        engine_field.choices = [(name, engine.title) for name, engine in self.engines.items()]
        engine_field.initial = next((name for name, missing in self.missing.items() if not missing), None)
        sets_field = cast("forms.MultipleChoiceField", self.fields["data_sets"])
        sets_field.choices = [(row.name, row.name) for row in self.ready]
        sets_field.initial = [row.name for row in self.ready]
        sets_field.help_text = self.sets_help

    # What there is, of each kind of engine -----------------------------------------------------------

    def known_engines(self) -> Mapping[str, Described]:
        """By name, the usual one first."""
        raise NotImplementedError

    def missing_engines(self) -> Mapping[str, str]:
        """Why an engine cannot run here, by name; empty where it can."""
        raise NotImplementedError

    def offered_sets(self) -> Sequence[SetRow]:
        """The data sets of the submission."""
        raise NotImplementedError

    def start_run(self, engine: str, data_sets: Sequence[str]) -> EvaluationRun:
        """Begin the work."""
        raise NotImplementedError

    # What the page shows -----------------------------------------------------------------------------

    def engine_cards(self) -> Iterator[EngineCard]:
        """Each engine's radio button, disabled where it cannot run here."""
        for button, (name, engine) in zip(self["engine"], self.engines.items(), strict=True):
            missing = self.missing[name]
            if missing:
                button.data["attrs"] = button.data["attrs"] | {"disabled": True}
            yield EngineCard(button, engine, missing, self.costs[name])

    def set_choices(self) -> Iterator[tuple[BoundWidget, SetRow]]:
        """Each ready data set's checkbox with what it is."""
        yield from zip(self["data_sets"], self.ready, strict=True)

    @property
    def refused(self) -> list[SetRow]:
        """The data sets that cannot be chosen."""
        return [row for row in self.rows if row.refusal]

    def extent(self) -> str:
        """How much the chosen data sets are; app.js keeps it true while boxes are ticked."""
        wanted = set(self["data_sets"].value() or [])
        chosen = [row for row in self.ready if row.name in wanted]
        if not chosen:
            return "No data set chosen."
        seconds = sum(row.seconds for row in chosen)
        sets = f"{len(chosen)} data set{'s' if len(chosen) > 1 else ''}, {roughly(seconds)} of speech"
        cost = self.costs.get(str(self["engine"].value() or ""))
        return f"{sets}; the work takes {roughly(seconds * cost)}." if cost else f"{sets}."

    # What it takes -----------------------------------------------------------------------------------

    def clean_engine(self) -> str:
        name: str = self.cleaned_data["engine"]
        if missing := self.missing[name]:
            raise forms.ValidationError(missing)
        return name

    def start(self) -> EvaluationRun | None:
        """Start what a valid form asks for; None with an error of the form where it cannot be."""
        try:
            return self.start_run(self.cleaned_data["engine"], self.cleaned_data["data_sets"])
        except NotPossible as reason:
            self.add_error(None, str(reason))
        return None


class AttackForm(EngineForm):
    """Attack a submission with a speaker encoder."""

    heading = "Attack this system"
    engine_label = "Attacker"
    sets_help = (
        "Trial sets. Each is attacked unprotected, ignorant and lazy-informed; their speech counts twice, original and "
        "anonymised, with that of the enrolment. What this attacker heard before is not gone through again."
    )
    submit = "Attack this system"

    def known_engines(self) -> Mapping[str, Described]:
        return attackers.engines()

    def missing_engines(self) -> Mapping[str, str]:
        return {name: attackers.missing_of(engine) for name, engine in attackers.engines().items()}

    def offered_sets(self) -> Sequence[SetRow]:
        states = trial_sets_of(self.submission)
        parts = {one.name: [part.pk for part in (one.data_set, one.enrolment) if part] for one in states}
        speech = seconds_of({key for keys in parts.values() for key in keys})
        return [
            SetRow(
                name=one.name,
                seconds=2 * sum(speech.get(key, 0.0) for key in parts[one.name]),
                refusal=one.refusal,
                note=f"enrolment: {one.enrolled}",
            )
            for one in states
        ]

    def start_run(self, engine: str, data_sets: Sequence[str]) -> EvaluationRun:
        return start_attack(submission=self.submission, engine=engine, data_sets=data_sets, by=self.by)


class RecognitionForm(EngineForm):
    """Let a recogniser write down what a submission says."""

    heading = "Recognise the speech of this system"
    engine_label = "Recogniser"
    sets_help = (
        "Each is written down as the original says it and as the anonymised speech does, so its speech counts twice. "
        "What this recogniser heard before is not gone through again."
    )
    submit = "Recognise speech"

    def known_engines(self) -> Mapping[str, Described]:
        return recognizers.engines()

    def missing_engines(self) -> Mapping[str, str]:
        return {name: recognizers.missing_of(engine) for name, engine in recognizers.engines().items()}

    def offered_sets(self) -> Sequence[SetRow]:
        states = spoken_sets_of(self.submission)
        speech = seconds_of({one.data_set.pk for one in states})
        return [
            SetRow(
                name=one.data_set.name,
                seconds=2 * speech.get(one.data_set.pk, 0.0),
                refusal=one.refusal,
                note=str(one.data_set.get_role_display()).lower(),
            )
            for one in states
        ]

    def start_run(self, engine: str, data_sets: Sequence[str]) -> EvaluationRun:
        return start_recognition(submission=self.submission, engine=engine, data_sets=data_sets, by=self.by)
