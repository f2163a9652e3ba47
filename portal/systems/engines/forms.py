"""Which runs of the portal's attackers and recognisers a visitor sees, and the forms that start them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from django import forms
from django.forms.boundfield import BoundWidget
from django.shortcuts import get_object_or_404

from anonymization.app.selectors import sum_speech
from common.errors import NotPossible
from evaluation.app.attacks.services import start_attack
from evaluation.app.models import EvaluationRun
from evaluation.app.recognition.services import start_recognition
from evaluation.app.runs.context import EvaluationContext, SetState
from evaluation.app.runs.kinds import ATTACK, CHAINED_KINDS, RECOGNITION, EngineRunKind, RunKind
from evaluation.app.runs.selectors import EngineRuns, group_unfinished, list_runs, measure_pace
from portal.core.fields import RadioField
from portal.core.labels import Missing, group_missing
from portal.jobs.workers import lacking
from portal.submissions.models import Submission
from portal.systems.selectors import View


def organized_run(view: View, run: int) -> EvaluationRun:
    """Return a run of an attacker or recogniser on a system, or "not found"."""
    kinds = [one.kind for one in CHAINED_KINDS]
    return get_object_or_404(EvaluationRun, submission__system=view.system, kind__in=kinds, pk=run)


def list_unfinished(view: View, kind: RunKind) -> EngineRuns | None:
    """Return the runs under way or stopped, for the system's own people."""
    return group_unfinished(list_runs(view.submission, kind.kind)) if view.is_own else None


@dataclass(frozen=True)
class EngineCard:
    """An engine as the form offers it. cost: seconds of work for a second of speech, None where nothing tells."""

    button: BoundWidget
    engine: Any
    cost: float | None

    @property
    def pace(self) -> str:
        """Return how much speech it works through in a second, by what it took here before; empty before it worked
        here."""
        return f"{1 / self.cost:,.3g} s of speech in a second, by earlier runs here" if self.cost else ""


@dataclass(frozen=True)
class SetRow:
    """A data set that a form offers.

    Attributes:
        seconds: of speech that an engine goes through for it.
        problem: why it cannot be chosen, in one sentence; empty where it can.
        note: what it is tested with.
    """

    name: str
    seconds: float
    problem: str
    note: str


def list_rows(states: Iterable[SetState], note: Callable[[SetState], str]) -> list[SetRow]:
    """Return data sets with their speech, which counts twice: original and anonymised."""
    parts = {one: [part.pk for part in (one.data_set, one.enrolment) if part] for one in states}
    seconds = sum_speech({key for keys in parts.values() for key in keys})
    return [
        SetRow(one.name, 2 * sum(seconds.get(key, 0.0) for key in keys), one.problem, note(one))
        for one, keys in parts.items()
    ]


class EngineForm(forms.Form):
    """Which engine goes over which data sets of a submission.

    Attributes:
        under_way: a sentence where `start` found that this was asked for before.
    """

    under_way = ""

    engine = RadioField("", "one")
    data_sets = forms.MultipleChoiceField(
        label="Data sets",
        widget=forms.CheckboxSelectMultiple,
        error_messages={
            "required": "Choose at least one data set.",
            "invalid_choice": "Choose data sets of this list.",
        },
    )
    kind: EngineRunKind
    heading = engine_label = sets_help = submit = ""

    def __init__(self, *args: Any, submission: Submission, by: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.submission, self.by = submission, by
        registry = self.kind.engines
        self.engines: Mapping[str, Any] = registry.engines()
        self.missing = lacking({name: registry.explain_missing(engine) for name, engine in self.engines.items()})
        self.costs = {name: measure_pace(engine.key) for name, engine in self.engines.items()}
        self.rows = sorted(self.offered_sets(), key=lambda row: row.name)
        self.ready = [row for row in self.rows if not row.problem]
        fields: Any = self.fields
        fields["engine"].label = self.engine_label
        fields["engine"].choices = [(name, engine.title) for name, engine in self.engines.items()]
        usable = [name for name, missing in self.missing.items() if not missing]
        fields["engine"].initial = next((name for name in usable if self.suits(name)), usable[0] if usable else None)
        fields["data_sets"].choices = [(row.name, row.name) for row in self.ready]
        fields["data_sets"].initial = [row.name for row in self.ready]
        fields["data_sets"].help_text = self.sets_help

    # Of each kind of engine --------------------------------------------------------------------------

    def offered_sets(self) -> Sequence[SetRow]:
        """Return the data sets of the submission."""
        raise NotImplementedError

    def suits(self, name: str) -> bool:  # noqa: ARG002
        """Return whether an engine can go over all of these data sets, so that it is proposed."""
        return True

    def start_run(self, engine: str, data_sets: Sequence[str]) -> EvaluationRun:
        """Begin the work."""
        raise NotImplementedError

    # What the page shows -----------------------------------------------------------------------------

    def engine_cards(self) -> Iterator[EngineCard]:
        """Yield the radio button of each engine that can run here."""
        for button, (name, engine) in zip(self["engine"], self.engines.items(), strict=True):
            if not self.missing[name]:
                yield EngineCard(button, engine, self.costs[name])

    def missing_groups(self) -> list[Missing]:
        """Return the engines that cannot run here by what is missing."""
        return group_missing((engine.title, self.missing[name]) for name, engine in self.engines.items())

    def set_choices(self) -> Iterator[tuple[BoundWidget, SetRow]]:
        """Yield each ready data set's checkbox with what it is."""
        yield from zip(self["data_sets"], self.ready, strict=True)

    @property
    def refused(self) -> list[SetRow]:
        """Return the data sets that cannot be chosen."""
        return [row for row in self.rows if row.problem]

    # What it takes -----------------------------------------------------------------------------------

    def clean_engine(self) -> str:
        name: str = self.cleaned_data["engine"]
        if missing := self.missing[name]:
            raise forms.ValidationError(missing)
        return name

    def start(self) -> EvaluationRun | None:
        """Start what a valid form asks for, or find it under way; None with an error of the form where it cannot be."""
        try:
            return self.start_run(self.cleaned_data["engine"], self.cleaned_data["data_sets"])
        except NotPossible as reason:
            if reason.under_way:
                self.under_way = str(reason)
                return cast("EvaluationRun", reason.under_way)
            self.add_error(None, str(reason))
        return None


class AttackForm(EngineForm):
    """Attack a submission with a speaker encoder."""

    kind = ATTACK
    heading = "Attack this system"
    engine_label = "Attacker"
    sets_help = (
        "Trial sets. Each is attacked unprotected, ignorant and lazy-informed; their speech counts twice, original and "
        "anonymised, with that of the enrolment. Speech that this attacker has processed before is not processed again."
    )
    submit = "Attack this system"

    def offered_sets(self) -> Sequence[SetRow]:
        states = [one for one in EvaluationContext(self.submission).trial_sets() if one.data_set is not None]
        return list_rows(states, lambda one: f"enrolment: {one.enrolled}")

    def start_run(self, engine: str, data_sets: Sequence[str]) -> EvaluationRun:
        return start_attack(submission=self.submission, engine=engine, data_sets=data_sets, by=self.by)


class RecognitionForm(EngineForm):
    """Let a recogniser write down what a submission says."""

    kind = RECOGNITION
    heading = "Recognise the speech of this system"
    engine_label = "Recogniser"
    sets_help = (
        "Original and anonymised speech are both transcribed, so its speech counts twice. "
        "Speech that this recogniser has processed before is not processed again."
    )
    submit = "Recognise speech"

    def offered_sets(self) -> Sequence[SetRow]:
        context = EvaluationContext(self.submission)
        states = context.spoken_sets()
        self.languages = {context.language_of(one.name) for one in states}
        return list_rows(states, lambda one: str(one.data_set.get_role_display()).lower() if one.data_set else "")

    def suits(self, name: str) -> bool:
        return all(self.engines[name].knows(one) for one in self.languages)

    def start_run(self, engine: str, data_sets: Sequence[str]) -> EvaluationRun:
        return start_recognition(submission=self.submission, engine=engine, data_sets=data_sets, by=self.by)
