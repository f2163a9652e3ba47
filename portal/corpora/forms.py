"""The form that starts an import: a corpus that was found on the server, or a folder that is named.

Only what lies in the open folders (`IMPORT_ROOTS`) can be imported by a page.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from django import forms
from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import validate_slug
from django.utils.text import slugify

from common.errors import NotPossible
from portal.challenges.models import Corpus
from portal.core.fields import NAME_LETTERS, LineField
from portal.corpora.services import change_corpus, start_import
from portal.intake.corpora.draft import Layout
from portal.intake.corpora.manifest import USUAL_NAMES
from portal.intake.corpora.reading import detect_layout
from portal.jobs.models import Job

LAYOUTS = (
    ("", "Detect automatically"),
    ("manifest", "CSV manifest"),
    ("librispeech", "LibriSpeech tree"),
    ("kaldi", "Kaldi data directories"),
)
LAYOUT_NAMES = dict(LAYOUTS)
_OTHER = "other"
DEEPEST, MOST_FOLDERS, LONGEST_S, MOST_SHOWN = 2, 200, 1.0, 30


@dataclass(frozen=True)
class FoundCorpus:
    folder: Path
    layout: Layout


def open_roots() -> list[Path]:
    """Return the open folders as they really are, links followed."""
    return [root.resolve() for root in settings.IMPORT_ROOTS]


def is_open(folder: Path) -> bool:
    """Return whether a folder, links followed, is one of the open ones or lies below one."""
    return any(folder.is_relative_to(root) for root in open_roots())


def is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:  # such as a name that is too long, or a folder that may not be read
        return False


def find_corpora() -> list[FoundCorpus]:
    """Return the folders that look like a corpus, by path: an open one, or one at most two levels below.

    Inside a corpus is not looked further, nor behind links. The search ends after 200 folders or a second, so that the
    page opens at once; a corpus that it did not reach can still be named.
    """
    found: dict[Path, FoundCorpus] = {}
    ends_at = time.monotonic() + LONGEST_S
    waiting = deque((root, 0) for root in open_roots())
    for _ in range(MOST_FOLDERS):
        if not waiting or time.monotonic() > ends_at or len(found) == MOST_SHOWN:
            break
        folder, depth = waiting.popleft()
        layout = detect_layout(folder)
        if layout and _is_likely(layout, folder):
            found[folder] = FoundCorpus(folder, layout)
        elif depth < DEEPEST:
            waiting.extend((subfolder, depth + 1) for subfolder in _subfolders(folder))
    return sorted(found.values(), key=lambda corpus: corpus.folder)


def _is_likely(layout: Layout, folder: Path) -> bool:
    """Not just any CSV file, nor a folder whose subfolder is the corpus in truth."""
    if layout is Layout.MANIFEST:
        return any((folder / name).is_file() for name in USUAL_NAMES)
    if layout is Layout.KALDI:
        return True
    return all(detect_layout(subfolder) is not layout for subfolder in _subfolders(folder))


def _subfolders(folder: Path) -> Iterator[Path]:
    try:
        yield from sorted(
            path for path in folder.iterdir() if path.is_dir() and not path.is_symlink() and path.name[0] != "."
        )
    except OSError:  # it may not be read, or has gone
        return


class CorpusForm(forms.ModelForm):
    """What the owner of a corpus says of it."""

    class Meta:
        model = Corpus
        fields = ("name", "licence", "link")
        field_classes = {"licence": LineField, "link": LineField}
        labels = {"name": "Short name", "link": "Web address of the speech"}
        help_texts = {
            "name": "Part of its address: links to the old one stop working. Data sets keep the names that teams see.",
            "licence": "Such as CC BY 4.0. Teams that download the speech accept it, and again after a change.",
            "link": "Where it was published. Teams see it with the licence.",
        }
        error_messages = {"link": {"invalid": "Give an address that begins with https:// or http://."}}

    def save_changes(self, *, by: Any) -> Corpus | None:
        """Return the changed corpus; None with an error of the form where it is not possible."""
        try:
            return change_corpus(corpus=self.instance, by=by, **self.cleaned_data)
        except NotPossible as reason:
            self.add_error("name", str(reason))
            return None


class CorpusField(forms.ChoiceField):
    """One of the corpora that were found on the server, or another folder, which is what an empty answer means."""

    def clean(self, value: Any) -> Any:
        return super().clean(value or _OTHER)


class FolderField(forms.CharField):
    """The path of a folder; empty where a corpus is chosen instead, so the form asks for one of the two."""

    def validate(self, value: Any) -> None:
        pass


def find_misplaced_option(folder: Path, options: Mapping[str, Any]) -> dict[str, str]:
    """Find an option that is for Kaldi data directories and given for another layout, with a sentence."""
    layout = options.get("layout") or detect_layout(folder)
    given = [name for name in ("audio_root", "without_audio") if options.get(name)]
    if not given or layout in (None, Layout.KALDI):
        return {}
    return {given[0]: f"Only for Kaldi data directories; this is read as a {LAYOUT_NAMES[str(layout)]}."}


class UploadForm(forms.Form):
    """What to call a corpus and how to read it, where its archive is uploaded."""

    name = forms.CharField(
        label="Name of the corpus",
        help_text=f"Use {NAME_LETTERS}; it becomes part of addresses. An existing name continues that corpus.",
        max_length=60,
        validators=[validate_slug],
        # The browser says so at the field before an archive is sent.
        widget=forms.TextInput({"pattern": r"[A-Za-z0-9_\-]+", "title": f"Use {NAME_LETTERS}, such as libri-dev."}),
        error_messages={
            "required": "Give the corpus a name, such as libri-dev.",
            "invalid": f"Use {NAME_LETTERS} only, such as libri-dev.",
            "max_length": "Use at most 60 characters.",
        },
    )
    layout = forms.ChoiceField(label="Layout", choices=LAYOUTS, required=False)
    resample = forms.BooleanField(
        label="Convert audio that is not 16 kHz",
        help_text="Without this, audio at another rate is refused.",
        required=False,
    )
    is_synthetic = forms.BooleanField(
        label="Synthetic speech", help_text="No real person speaks; every page will say so.", required=False
    )
    licence = LineField(
        label="Licence",
        help_text="Such as CC BY 4.0. It wins over the column of a manifest or a licence file in the folder; a corpus "
        "that states one already keeps it until its owner changes it under “Edit”.",
        max_length=200,
        required=False,
    )
    is_shared = forms.BooleanField(
        label="Share a new corpus with all organizers",
        help_text="Without this, you and the organizers of editions that use it see and hear it.",
        required=False,
    )


class CorpusImportForm(UploadForm):
    """Where a corpus lies on the server and what to call it."""

    found = CorpusField(
        label="Corpus on the server",
        widget=forms.RadioSelect,
        initial=_OTHER,
        error_messages={"invalid_choice": "This corpus no longer exists. Choose another one."},
    )
    folder = FolderField(label="Folder on the server", max_length=400)
    audio_root = forms.CharField(
        label="Folder of the audio files",
        help_text="Only for Kaldi data directories whose wav.scp does not lead to the files.",
        max_length=400,
        required=False,
    )
    without_audio = forms.BooleanField(
        label="Import the lists without audio", help_text="Statistics only; audio can follow later.", required=False
    )
    field_order = ("found", "folder", "name", "layout", "audio_root", "without_audio")
    next = forms.CharField(required=False, widget=forms.HiddenInput, max_length=20)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.roots = open_roots()
        self.fields["folder"].help_text = f"A folder below {_either(self.roots)}, in full or as its name there."
        corpora = find_corpora()
        if not corpora:
            del self.fields["found"]
            return
        self.fields["folder"].help_text += " If filled in, it wins over the corpus that the form chose above."
        self.fields["folder"].required = False
        choices = {str(corpus.folder): f"{corpus.folder} ({LAYOUT_NAMES[corpus.layout]})" for corpus in corpora}
        found = cast("CorpusField", self.fields["found"])
        found.choices = [*choices.items(), (_OTHER, "Another folder: “Folder on the server” below")]
        if self.initial.get("folder") in choices:
            self.initial["found"] = self.initial.pop("folder")
        elif not self.initial.get("folder"):
            self._choose_new(corpora)

    def _choose_new(self, corpora: list[FoundCorpus]) -> None:
        """Choose the first corpus that was not imported yet, under the name of its folder."""
        imported = set(Corpus.objects.values_list("source", flat=True))
        new = next((str(one.folder) for one in corpora if str(one.folder) not in imported), "")
        if new:
            self.initial["found"] = new
            self.initial.setdefault("name", slugify(Path(new).name)[:60])

    def start(self, *, by: Any) -> Job | None:
        """Start the import of a valid form, or find it; None with an error where another of this name is under way."""
        try:
            wanted = {name: value for name, value in self.cleaned_data.items() if name not in ("found", "next")}
            return start_import(by=by, **wanted)
        except NotPossible as reason:
            if not reason.under_way:
                self.add_error("name", str(reason))
            return reason.under_way

    def clean(self) -> dict[str, Any]:
        wanted = super().clean() or {}
        if "folder" in wanted:
            for option, sentence in find_misplaced_option(Path(wanted["folder"]), wanted).items():
                self.add_error(option, sentence)
        return wanted

    def clean_folder(self) -> str:
        """Return the folder that was named, else the one that was chosen; not both, unless the form chose by itself."""
        named, found = self.cleaned_data["folder"], self.cleaned_data.get("found", _OTHER)
        if found != _OTHER and not named:
            return _allowed_folder(found)
        if not named and "found" not in self.errors:
            raise ValidationError("Fill in “Folder on the server”, or choose a corpus above where one is listed.")
        folder = _allowed_folder(named) if named else ""
        if found not in (_OTHER, self.initial.get("found"), folder):
            raise ValidationError(f"Both {found} and {named} are given. Choose “Another folder”, or empty this field.")
        return folder

    def clean_audio_root(self) -> str:
        text = self.cleaned_data["audio_root"]
        return _allowed_folder(text) if text else ""


def _allowed_folder(text: str) -> str:
    """Return the folder of this path, or of this name below an open folder, links followed."""
    folders = [(root / text).resolve() for root in open_roots()] or [Path(text).resolve()]
    # `root / text` is `text` where that is absolute.
    folder = next((one for one in folders if is_open(one) and is_folder(one)), folders[0])
    if not is_open(folder):
        raise ValidationError(f"Expected a folder below {_either(open_roots())}, found {text}.")
    if not is_folder(folder):
        below = "" if Path(text).is_absolute() else f" below {_either(open_roots())}"
        raise ValidationError(f"There is no folder “{text}”{below}.")
    return str(folder)


def _either(roots: list[Path]) -> str:
    return " or ".join(map(str, roots))
