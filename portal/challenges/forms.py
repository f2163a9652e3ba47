"""The form that starts an import."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django import forms
from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import validate_slug

from portal.challenges.importing import start_import
from portal.challenges.readers.corpus import detect_layout
from portal.challenges.readers.draft import Layout
from portal.jobs.models import Job
from portal.jobs.services import NotPossible

LAYOUTS = (
    ("", "find out"),
    ("manifest", "CSV manifest"),
    ("librispeech", "LibriSpeech tree"),
    ("vctk", "VCTK tree"),
    ("kaldi", "Kaldi data directories"),
)


_LAYOUT_NAMES = dict(LAYOUTS)


class ImportForm(forms.Form):
    """Where a corpus lies on the server and what to call it."""

    folder = forms.CharField(
        label="Folder on the server",
        help_text="No folder is open for imports from this page yet; the operator opens one with PORTAL_IMPORT_ROOTS.",
        max_length=400,
    )
    name = forms.CharField(
        label="Name of the corpus",
        help_text="Letters, digits, hyphens; it becomes part of addresses. An existing name continues that corpus.",
        max_length=60,
        validators=[validate_slug],
        error_messages={"invalid": "Use letters a to z, digits, hyphens and underscores only, such as libri-dev."},
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

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if settings.IMPORT_ROOTS:
            self.fields["folder"].help_text = f"A folder below {' or '.join(map(str, settings.IMPORT_ROOTS))}."

    def start(self, *, by: Any) -> Job | None:
        """Start the import of a valid form; None with an error of the form where one of this name is under way."""
        try:
            return start_import(by=by, **self.cleaned_data)
        except NotPossible as reason:
            self.add_error("name", str(reason))
            return None

    def clean(self) -> dict[str, Any]:
        wanted = super().clean() or {}
        if "folder" not in wanted or not (wanted.get("audio_root") or wanted.get("without_audio")):
            return wanted
        layout = wanted.get("layout") or detect_layout(Path(wanted["folder"]))
        if layout and layout != Layout.KALDI:
            option = "audio_root" if wanted.get("audio_root") else "without_audio"
            self.add_error(option, f"Only for Kaldi data directories; this is read as a {_LAYOUT_NAMES[str(layout)]}.")
        return wanted

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
        raise ValidationError(f"Expected a folder below {' or '.join(map(str, roots))}, found {text}.")
    if not _is_folder(folder):
        raise ValidationError(f"There is no folder {text}.")
    return str(folder)


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:  # such as a name that is too long, or a folder that may not be read
        return False
