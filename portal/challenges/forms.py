"""The form that starts an import."""

from __future__ import annotations

from pathlib import Path

from django import forms
from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import validate_slug

LAYOUTS = (
    ("", "find out"),
    ("manifest", "CSV manifest"),
    ("librispeech", "LibriSpeech tree"),
    ("vctk", "VCTK tree"),
    ("kaldi", "Kaldi data directories"),
)


class ImportForm(forms.Form):
    """Where a corpus lies on the server and what to call it."""

    folder = forms.CharField(
        label="Folder on the server",
        help_text="A folder below one of those that the operator has opened for imports.",
        max_length=400,
    )
    name = forms.CharField(
        label="Name of the corpus",
        help_text="Letters, digits, hyphens; it becomes part of addresses. An existing name continues that corpus.",
        max_length=60,
        validators=[validate_slug],
    )
    layout = forms.ChoiceField(label="Layout", choices=LAYOUTS, required=False)
    audio_root = forms.CharField(
        label="Folder of the audio files",
        help_text="Only for Kaldi data directories whose wav.scp does not lead to the files.",
        max_length=400,
        required=False,
    )
    without_audio = forms.BooleanField(
        label="Import the lists without audio",
        help_text="Statistics only; audio can follow later.",
        required=False,
    )
    resample = forms.BooleanField(
        label="Convert audio that is not 16 kHz",
        help_text="Without this, audio at another rate is refused.",
        required=False,
    )
    is_synthetic = forms.BooleanField(
        label="Synthetic speech",
        help_text="No real person speaks; every page will say so.",
        required=False,
    )

    def clean_folder(self) -> str:
        return _allowed_folder(self.cleaned_data["folder"])

    def clean_audio_root(self) -> str:
        text = self.cleaned_data["audio_root"]
        return _allowed_folder(text) if text else ""


def _allowed_folder(text: str) -> str:
    roots = [root.resolve() for root in settings.IMPORT_ROOTS]
    if not roots:
        raise ValidationError(
            "No folder is open for imports from this page. The operator opens one with PORTAL_IMPORT_ROOTS; "
            "manage.py import_corpus works with any folder."
        )
    folder = Path(text).resolve()
    if not any(folder.is_relative_to(root) for root in roots):
        raise ValidationError(
            f"Expected a folder below {' or '.join(map(str, roots))}, found {text}."
        )
    if not folder.is_dir():
        raise ValidationError(f"There is no folder {text}.")
    return str(folder)
