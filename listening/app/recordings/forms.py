"""The form of a new listening test of one's own recordings."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from django import forms
from django.core.exceptions import ValidationError

from common.errors import ProblemsError
from listening.app.models import LOUDNESS, Study
from listening.app.recordings.files import LARGEST_TEST_FILE, read_test_file
from listening.app.recordings.services import (
    PRESETS,
    USUAL_PRESET,
    OwnTest,
    find_original_problems,
    make_test,
)
from listening.app.recordings.uploads import begin_upload
from listening.app.studies.forms import (
    CHANNELS,
    RATES,
    SOUND,
    ResponsibleField,
    StudyNameField,
    WholeField,
    keep_months_field,
    mark_needed_for_launch,
    or_errors,
    radios,
)
from listening.app.studies.rules import GOLD_AT_MOST, PRACTICE_AT_MOST
from listening.app.studies.selectors import free_study_name
from listening.app.studies.services import USUAL_MONTHS
from listening.questions import load_preset
from listening.stimuli.making import Loudness
from portal.core.fields import LineField
from portal.intake.archives.limits import ARCHIVE_ENDINGS, ARCHIVE_FORMATS, MEGABYTE
from portal.submissions.models import Upload
from portal.submissions.rules import LARGEST_RECORDINGS_BYTES

ANCHORS = [
    ("", "Both for MUSHRA, else none"),
    ("3500", "3.5 kHz"),
    ("3500 7000", "3.5 and 7 kHz"),
    ("none", "None"),
]


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
    def choose(self) -> tuple[OwnTest, dict[str, Any]]:
        """Return what a valid form chooses, and the further fields of its `Study`."""

    def save(self) -> Study | None:
        """Return the test of a valid form; None with errors of the form where it cannot be made."""
        chosen, fields = self.choose()
        given = {"chosen": chosen, "archive": self.cleaned_data["archive"], "by": self.user}
        made: Study | None = or_errors(self, make_test, "archive", **given, **fields)
        return made

    def begin_upload(self, archive: Mapping[str, Any]) -> Upload | None:
        """Return the upload of an archive that is announced; None with errors of the form where it cannot be used."""
        chosen, fields = self.choose()
        given = {"chosen": chosen, "fields": fields, "by": self.user}
        upload: Upload | None = or_errors(self, begin_upload, "archive", **given, **archive)
        return upload


class RepeatedTestForm(ArchiveForm):
    """An archive of recordings and the file of a test that is made of them."""

    test = forms.FileField(
        label="File of the test",
        help_text="As the page of a test gives it, or written by hand.",
        widget=forms.ClearableFileInput(attrs={"accept": ".toml"}),
        error_messages={"required": "Choose the file of a test.", "empty": "The file is empty. Choose another one."},
    )

    title = LineField(label="Title", max_length=120, required=False, help_text="Empty: as in the file.")

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.fields["archive"].required = False  # where the file names an edition

    def clean_test(self) -> tuple[OwnTest, dict[str, Any]]:
        file = self.cleaned_data["test"]
        if file.size > LARGEST_TEST_FILE:
            raise ValidationError(f"Expected at most {LARGEST_TEST_FILE >> 10} kB, found {file.size >> 10} kB.")
        try:
            return read_test_file(file.read().decode())
        except UnicodeDecodeError:
            raise ValidationError("Expected text in UTF-8, found other bytes.") from None
        except ProblemsError as error:
            raise ValidationError(error.problems) from None

    def choose(self) -> tuple[OwnTest, dict[str, Any]]:
        chosen, fields = self.cleaned_data["test"]
        if title := self.cleaned_data["title"]:
            chosen = replace(chosen, title=title, name=free_study_name(title))
        return chosen, fields


class OwnTestForm(ArchiveForm):
    """An archive of recordings and what cannot be seen from them."""

    title = LineField(label="Title", max_length=120, error_messages={"required": "Give the test a title."})
    name = StudyNameField("Part of the address of its pages. Empty: made of the title.", required=False)
    preset = radios(
        "What is asked",
        [(one.name, f"{one.title}: {one.about}") for one in map(load_preset, PRESETS)],
        "The wording can be changed afterwards.",
        "Choose what is asked.",
        initial=USUAL_PRESET,
    )
    original = LineField(
        label="Original",
        required=False,
        help_text="The condition with which the others are compared, such as clean. DCR and MUSHRA play it as the "
        "reference, and once more among the others without saying so. Empty: none.",
    )
    anchors = forms.ChoiceField(
        label="Anchors",
        required=False,
        choices=ANCHORS,
        help_text="Further conditions that the portal makes: the original without what lies above 3.5 or 7 kHz "
        "(ITU-R BS.1534-3), as far as the sampling rate allows.",
    )
    references = LineField(
        label="References",
        required=False,
        help_text="Further conditions that are references, with commas between them. Empty: none.",
    )
    against = LineField(
        label="Compared with",
        required=False,
        help_text="Of AB, CCR and ABX: the condition with which each other is compared. Empty: each with each other.",
    )
    rate_hz = forms.TypedChoiceField(
        label="Sampling rate",
        required=False,
        choices=[("", "As most recordings have"), *RATES],
        coerce=int,
        empty_value=None,
    )
    channels = forms.TypedChoiceField(
        label="Channels",
        required=False,
        choices=[("", "Stereo if a recording is"), *CHANNELS],
        coerce=int,
        empty_value=None,
    )
    loudness = radios(
        "Loudness", LOUDNESS, "What is equal in all recordings.", "Choose it.", initial=Loudness.PROGRAMME
    )
    practice_trials = WholeField(
        "Practice trials", 0, PRACTICE_AT_MOST, "They come first and are not counted. Empty: none.", required=False
    )
    gold_trials = WholeField(
        "Control trials",
        0,
        GOLD_AT_MOST,
        "Of DCR, CCR, AB and ABX: their answer is known, such as one recording twice. Empty: none.",
        required=False,
    )
    responsible = ResponsibleField()
    contact = LineField(label="Contact", max_length=200, required=False, help_text="For questions of evaluators.")
    keep_months = keep_months_field()

    def __init__(self, data: Any = None, files: Any = None, *, user: Any) -> None:
        initial = {"contact": user.email, "keep_months": USUAL_MONTHS}
        super().__init__(data, files, user=user, initial=initial)
        mark_needed_for_launch(self)

    def clean(self) -> dict[str, Any]:
        given = super().clean() or self.cleaned_data
        if not self.errors and (problems := [*find_original_problems(self.choose()[0])]):
            self.add_error("original", problems)
        return given

    def choose(self) -> tuple[OwnTest, dict[str, Any]]:
        given = self.cleaned_data
        chosen = OwnTest(
            name=given["name"] or free_study_name(given["title"]),
            anchors=tuple(int(hz) for hz in given["anchors"].split() if hz != "none") if given["anchors"] else None,
            references=tuple(filter(None, (one.strip() for one in given["references"].split(",")))),
            practice_trials=given["practice_trials"] or 0,
            gold_trials=given["gold_trials"] or 0,
            **{name: given[name] for name in ("title", "preset", "original", "against", *SOUND)},
        )
        consent = {name: given[name] for name in ("responsible", "contact", "keep_months") if given[name]}
        return chosen, consent
