"""The forms by which an organizer chooses the settings of an analysis, and imports ratings collected elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.http import Http404

from listening.analysis.reading.inputs import Settings
from listening.app.models import Analysis, Study
from listening.app.results.importing import ENDINGS, LARGEST_FILE, MEGABYTE, Imported, start_import
from listening.app.results.labels import settings_of
from listening.app.results.services import start_analysis
from listening.app.studies.forms import EditionField, StudyNameField, or_errors
from portal.challenges.selectors import managed_editions_for
from portal.core.fields import LineField
from portal.jobs.models import Job


class AnalyseForm(forms.Form):
    """Settings that an organizer may choose, those that matter for this form of study; the others stay usual."""

    def __init__(self, data: Any = None, *, study: Study, analysis: Analysis | None) -> None:
        chosen = Settings().as_data() | (analysis.chosen if analysis is not None else {})
        super().__init__(data, initial=chosen)
        self.study = study
        self.fields |= {name: _make_field(about) for name, about in settings_of(study.form_of_results).items()}

    def save(self, by: Any) -> Analysis | None:
        """Start it; what stands in the way is said by the form."""
        return or_errors(self, start_analysis, study=self.study, by=by, chosen=self.cleaned_data)


def _make_field(about: Mapping[str, Any]) -> forms.Field:
    """Return the field of a setting, as the data dictionary describes it."""
    words = {"label": about.get("label", about["title"]), "help_text": about["help"]}
    if "choices" in about:
        return forms.ChoiceField(choices=list(about["choices"].items()), **words)
    ends = {"min_value": about["lowest"], "max_value": about["highest"]}
    if isinstance(about["lowest"], int):
        return forms.IntegerField(**ends, **words)
    return forms.FloatField(**ends, **words, widget=forms.NumberInput(attrs={"step": "any"}))


class RatingsImportForm(forms.Form):
    """A file of ratings and what has to be known about it; every problem of the file is an error of its field."""

    edition = EditionField(
        "Its organizers see the results, and everybody once they are published. Systems with the same names are "
        "matched with those of this edition."
    )
    title = LineField(label="Title", max_length=120, error_messages={"required": "Give the study a title."})
    name = StudyNameField()
    file = forms.FileField(
        label="Ratings",
        help_text=f"A CSV file, plain or gzipped, of at most {LARGEST_FILE // MEGABYTE} MB. It needs the columns "
        "listener, task, system and rating; or it has the form of the Voice Conversion Challenge 2020. "
        "Reasons in the column excluded are published with the results.",
        widget=forms.ClearableFileInput(attrs={"accept": ",".join((*ENDINGS, ".gz"))}),
        error_messages={"required": "Choose a file.", "empty": "The file is empty. Choose one with ratings."},
    )
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
