"""The form by which an organizer hands in ratings that were collected elsewhere."""

from __future__ import annotations

from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.http import Http404

from listening.analysis.errors import AnalysisInputError
from listening.results.importing import ENDINGS, LARGEST_FILE, MEGABYTE, Imported, import_study
from listening.studies.study_fields import StudyNameField
from listening.studies.study_rules import StudyProblems
from portal.challenges.models import Edition
from portal.challenges.selectors import managed_editions_for
from portal.core.fields import LineField

NO_EDITION = "Choose an edition that you organise."


class ImportForm(forms.Form):
    """A file of ratings and what has to be known about it; every fault of the file is an error of its field."""

    edition: forms.ModelChoiceField[Edition] = forms.ModelChoiceField(
        label="Edition",
        queryset=Edition.objects.none(),
        empty_label=None,
        help_text="Its organizers see the results, and everybody once they are published. Systems that are called as "
        "in this edition are taken for these.",
        error_messages={"required": NO_EDITION, "invalid_choice": NO_EDITION},
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
        help_text="What it is called in the column of systems. Empty: original, or ref in the form of 2020.",
    )
    attribution = LineField(
        label="Attribution",
        required=False,
        max_length=400,
        help_text="Whose ratings these are and under which licence; it stands with every result.",
    )
    is_simulated = forms.BooleanField(
        label="These ratings are simulated", required=False, help_text="A program made them; every page says so."
    )

    def __init__(self, data: Any = None, files: Any = None, *, user: Any) -> None:
        self.user = user
        editions = managed_editions_for(user)
        if not user.is_organizer and not editions.exists():
            raise Http404
        super().__init__(data, files)
        self.fields["edition"].queryset = editions  # type: ignore[attr-defined]

    def clean_file(self) -> Any:
        file = self.cleaned_data["file"]
        if not file.name.lower().endswith(ENDINGS):
            raise ValidationError(f"Expected a file that ends in .csv or .csv.gz, found {file.name[:80]}.")
        return file

    def save(self) -> Imported | None:
        """The study of a valid form; None with every fault as an error of the form."""
        given = dict(self.cleaned_data)
        file = given.pop("file")
        try:
            return import_study(by=self.user, file=file, file_name=file.name, **given)
        except AnalysisInputError as error:
            self.add_error("file", error.problems)
        except StudyProblems as error:
            for field, sentences in error.problems.items():
                self.add_error(field or None, sentences)
        return None
