"""The form by which an organizer chooses the settings of an analysis."""

from __future__ import annotations

from typing import Any

from django import forms

from listening.analysis.errors import AnalysisInputError
from listening.analysis.settings import Settings
from listening.models import Analysis, Study
from listening.results import analysing
from listening.results.result_method import CORRECTIONS, NORMALISATIONS
from portal.jobs.services import NotPossible

USUAL = Settings()
FEWEST, MOST = 200, 20_000


class AnalyseForm(forms.Form):
    """Settings that an organizer may choose; the others stay usual."""

    normalisation = forms.ChoiceField(
        choices=[(name, f"{name}: {formula}") for name, formula in NORMALISATIONS.items()],
        help_text="How the ratings of a listener become scores from 0 to 1. Raw ratings are analysed beside them.",
    )
    correction = forms.ChoiceField(
        choices=list(CORRECTIONS.items()),
        label="Correction of p-values",
        help_text="Over all pairs of systems of a task. Holm is the stricter one.",
    )
    resamples = forms.IntegerField(
        min_value=FEWEST, max_value=MOST, help_text="Draws of listeners from which intervals are taken."
    )
    permutations = forms.IntegerField(
        min_value=FEWEST, max_value=MOST, help_text="Of the tests within listeners, and of the lines of chance."
    )
    level = forms.FloatField(
        min_value=0.5, max_value=0.999, help_text="Coverage of intervals as a share; 0.95 is usual.",
        widget=forms.NumberInput(attrs={"step": "any"}),
    )  # fmt: skip
    seed = forms.IntegerField(
        min_value=0, max_value=2**31 - 1, help_text="Of every draw: equal seeds give equal numbers."
    )
    least_clusters = forms.IntegerField(
        min_value=2, max_value=1000, label="Fewest listeners for an interval",
        help_text="With fewer there are numbers and no intervals.",
    )  # fmt: skip
    partial_trials = forms.IntegerField(
        min_value=0, max_value=10_000, label="Ratings that an unfinished session needs",
        help_text="Below it the session counts for raw ratings only, as ranks over too few would mislead.",
    )  # fmt: skip
    partial_of_each_kind = forms.IntegerField(
        min_value=0, max_value=10_000, label="Of them at least, original and anonymised each"
    )

    def __init__(self, data: Any = None, *, study: Study, analysis: Analysis | None) -> None:
        chosen = USUAL.as_data() | (analysis.chosen if analysis is not None else {})
        super().__init__(data, initial=chosen)
        self.study = study

    def save(self, by: Any) -> Analysis | None:
        """Start it; what stands in the way is said by the form."""
        try:
            return analysing.start_analysis(self.study, by, self.cleaned_data)
        except AnalysisInputError as error:
            self.add_error(None, error.problems)
        except NotPossible as reason:
            self.add_error(None, str(reason))
        return None
