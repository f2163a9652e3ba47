"""The form of a new listening test of one's own recordings."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

from django import forms
from django.core.exceptions import ValidationError

from common.errors import ProblemsError
from listening.app.models import Study
from listening.app.recordings.choosing import ChosenTestForm
from listening.app.recordings.files import LARGEST_TEST_FILE, read_test_file
from listening.app.recordings.services import make_test
from listening.app.recordings.uploads import begin_upload
from listening.app.studies.forms import SOUND, or_errors
from listening.app.studies.rules import CONSENT_FIELDS
from listening.app.studies.services import USUAL_MONTHS
from portal.core.fields import LineField
from portal.intake.archives.limits import ARCHIVE_ENDINGS, ARCHIVE_FORMATS, MEGABYTE
from portal.submissions.models import Upload
from portal.submissions.rules import LARGEST_RECORDINGS_BYTES


class AnnouncedArchiveForm(forms.Form):
    """An archive that is sent afterwards; its SHA-256, by which it is known again."""

    file_name = forms.CharField(max_length=255)
    size = forms.IntegerField(min_value=0, max_value=10**18)
    sha256 = forms.RegexField("^[0-9a-f]{64}$")


class ArchiveForm(forms.Form):
    """An archive of recordings."""

    archive = forms.FileField(
        label="Recordings",
        help_text=f"An archive ({ARCHIVE_FORMATS}) of at most {LARGEST_RECORDINGS_BYTES // MEGABYTE:,} MB. Each "
        "condition is a folder with a WAV or FLAC file for each item, which has the same name in every condition. "
        "A table items.csv with the columns item, speaker, sex, language, text and answer may lie beside the "
        "folders. Folders practice-trials and control-trials hold recordings that are not scored.",
        widget=forms.ClearableFileInput(attrs={"accept": ",".join(ARCHIVE_ENDINGS), "id": "file"}),
        error_messages={"required": "Choose an archive.", "empty": "The archive is empty. Choose one with recordings."},
    )

    def __init__(self, data: Any = None, files: Any = None, *, user: Any, **more: Any) -> None:
        self.user = user
        super().__init__(data, files, **more)

    @abstractmethod
    def test_form(self) -> ChosenTestForm:
        """Return the valid form of what is chosen."""

    def save(self) -> Study | None:
        """Return the test of a valid form; None with errors of the form where it cannot be made."""
        given = {"chosen": self.test_form().choose(), "archive": self.cleaned_data["archive"], "by": self.user}
        made: Study | None = or_errors(self, make_test, "archive", **given)
        return made

    def begin_upload(self, archive: Mapping[str, Any]) -> Upload | None:
        """Return the upload of an archive that is announced; None with errors of the form where it cannot be used."""
        given = {"test": self.test_form(), "by": self.user}
        upload: Upload | None = or_errors(self, begin_upload, "archive", **given, **archive)
        return upload


class RepeatedTestForm(ArchiveForm):
    """An archive of recordings and the file of a test that is made of them."""

    test = forms.FileField(
        label="File of the test",
        help_text="As the page of a test gives it, or written by hand.",
        widget=forms.ClearableFileInput(attrs={"accept": ".toml"}),
        error_messages={"required": "Choose the file of a test."},
    )

    title = LineField(label="Title", max_length=120, required=False, help_text="Empty: as in the file.")

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.fields["archive"].required = False  # where the file names an edition

    def clean(self) -> dict[str, Any]:
        """Read the file of the test once its title is known."""
        given = super().clean() or self.cleaned_data
        if "test" in given and "title" in given:
            try:
                given["test"] = self._read(given["test"], given["title"])
            except ValidationError as error:
                self.add_error("test", error)
        return given

    def _read(self, file: Any, title: str) -> ChosenTestForm:
        if file.size > LARGEST_TEST_FILE:
            raise ValidationError(f"Expected at most {LARGEST_TEST_FILE >> 10} kB, found {file.size >> 10} kB.")
        try:
            return read_test_file(file.read().decode(), **{"title": title, "name": ""} if title else {})
        except UnicodeDecodeError:
            raise ValidationError("Expected text in UTF-8, found other bytes.") from None
        except ProblemsError as error:
            raise ValidationError(error.problems) from None

    def test_form(self) -> ChosenTestForm:
        form: ChosenTestForm = self.cleaned_data["test"]
        return form


class OwnTestForm(ArchiveForm, ChosenTestForm):
    """An archive of recordings and what cannot be seen from them."""

    shown = (
        *("archive", "title", "name", "preset", "original", "anchors", "references", "against", *SOUND),
        *("practice_trials", "gold_trials", *CONSENT_FIELDS),
    )
    needed = ("archive", "title", "preset", "loudness")

    def __init__(self, data: Any = None, files: Any = None, *, user: Any) -> None:
        initial = {"contact": user.email, "keep_months": USUAL_MONTHS}
        super().__init__(data, files, user=user, initial=initial)

    def test_form(self) -> ChosenTestForm:
        return self
