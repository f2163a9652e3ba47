"""The forms by which an organizer chooses the settings of an analysis, and imports ratings collected elsewhere."""

from __future__ import annotations

from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.http import Http404

from listening.analysis.reading.inputs import Settings
from listening.app.models import Analysis, Study
from listening.app.results import labels
from listening.app.results.importing import ENDINGS, LARGEST_FILE, MEGABYTE, Imported, start_import
from listening.app.results.labels import CORRECTIONS, NORMALISATIONS
from listening.app.results.services import start_analysis
from listening.app.studies.forms import EditionField, StudyNameField, or_errors
from portal.challenges.selectors import managed_editions_for
from portal.core.fields import LineField
from portal.jobs.models import Job

USUAL = Settings()
FEWEST, MOST = 200, 20_000


class AnalyseForm(forms.Form):
    """Settings that an organizer may choose, those that matter for this form of study; the others stay usual."""

    normalisation = forms.ChoiceField(
        choices=[(name, f"{name}: {formula}") for name, formula in NORMALISATIONS.items()],
        help_text="How the ratings of a listener become scores from 0 to 1. Raw ratings are analysed too.",
    )
    correction = forms.ChoiceField(
        choices=list(CORRECTIONS.items()),
        label="Correction of p-values",
        help_text="Over all pairs of a task. Holm is the stricter one.",
    )
    resamples = forms.IntegerField(
        min_value=FEWEST, max_value=MOST, help_text="Resamples of listeners for the intervals."
    )
    permutations = forms.IntegerField(
        min_value=FEWEST, max_value=MOST, help_text="Of the tests within listeners, and of the lines of chance."
    )
    level = forms.FloatField(
        min_value=0.5,
        max_value=0.999,
        help_text="Coverage of intervals as a share; 0.95 is usual.",
        widget=forms.NumberInput(attrs={"step": "any"}),
    )
    seed = forms.IntegerField(
        min_value=0, max_value=2**31 - 1, help_text="Of every draw: equal seeds give equal numbers."
    )
    least_clusters = forms.IntegerField(
        min_value=2,
        max_value=1000,
        label="Fewest listeners for an interval",
        help_text="With fewer there are numbers and no intervals.",
    )
    partial_trials = forms.IntegerField(
        min_value=0,
        max_value=10_000,
        label="Ratings that an unfinished session needs",
        help_text="Below it the session counts for raw ratings only, as ranks over too few would mislead.",
    )
    partial_of_each_kind = forms.IntegerField(
        min_value=0, max_value=10_000, label="Of these, original and anonymised each, at least"
    )

    def __init__(self, data: Any = None, *, study: Study, analysis: Analysis | None) -> None:
        chosen = USUAL.as_data() | (analysis.chosen if analysis is not None else {})
        super().__init__(data, initial=chosen)
        self.study = study
        for name in self.fields.keys() - labels.settings_of(study.form_of_results).keys():
            del self.fields[name]

    def save(self, by: Any) -> Analysis | None:
        """Start it; what stands in the way is said by the form."""
        return or_errors(self, start_analysis, study=self.study, by=by, chosen=self.cleaned_data)


class RatingsForm(forms.Form):
    """What has to be known about ratings that were collected elsewhere."""

    title = LineField(label="Title", max_length=120, error_messages={"required": "Give the study a title."})
    name = StudyNameField()
    original = LineField(
        label="Name of unprotected speech",
        required=False,
        max_length=120,
        help_text="As in the column system. Empty: original, or ref for the Voice Conversion Challenge 2020.",
    )
    attribution = LineField(
        label="Attribution",
        required=False,
        max_length=400,
        help_text="Whose ratings these are and under which licence; it is shown with every result.",
    )
    is_simulated = forms.BooleanField(
        label="These ratings are simulated", required=False, help_text="A program made them; every page says so."
    )


class ImportForm(RatingsForm):
    """A file of ratings and what has to be known about it; every problem of the file is an error of its field."""

    edition = EditionField(
        "Its organizers see the results, and everybody once they are published. Systems with the same names are "
        "matched with those of this edition."
    )
    file = forms.FileField(
        label="Ratings",
        help_text=f"A CSV file, plain or gzipped, of at most {LARGEST_FILE // MEGABYTE} MB. It needs the columns "
        "listener, task, system and rating; or it has the form of the Voice Conversion Challenge 2020. "
        "Reasons in the column excluded are published with the results.",
        widget=forms.ClearableFileInput(attrs={"accept": ",".join((*ENDINGS, ".gz"))}),
        error_messages={"required": "Choose a file.", "empty": "The file is empty. Choose one with ratings."},
    )
    field_order = ("edition", "title", "name", "file")

    def __init__(self, data: Any = None, files: Any = None, *, user: Any) -> None:
        self.user = user
        editions = managed_editions_for(user).filter(archived_at=None)
        if not user.is_organizer and not editions.exists():
            raise Http404
        super().__init__(data, files)
        self.fields["edition"].queryset = editions  # type: ignore[attr-defined]

    def clean_file(self) -> Any:
        file = self.cleaned_data["file"]
        if not file.name.lower().endswith(ENDINGS):
            raise ValidationError(f"Expected a file that ends in .csv or .csv.gz, found {file.name[:80]}.")
        return file

    def save(self) -> Imported | Job | None:
        """Return the study of a valid form, or the job that reads a large file; None with every problem as an error."""
        file = self.cleaned_data.pop("file")
        return or_errors(self, start_import, "file", by=self.user, file=file, file_name=file.name, **self.cleaned_data)
