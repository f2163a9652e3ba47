"""The door to all readers: which layout a folder has, and its draft.

Nothing here opens audio; `audio_checks` does, one utterance at a time.
"""

from __future__ import annotations

from pathlib import Path

from portal.challenges.readers import kaldi_directories, librispeech, manifest, vctk
from portal.challenges.readers.draft import CorpusDraft, Layout, empty_draft
from portal.challenges.readers.rows import Place

_SHAPES = "; ".join((librispeech.SHAPE, vctk.SHAPE, kaldi_directories.SHAPE, manifest.SHAPE))


def detect_layout(folder: Path) -> Layout | None:
    """The layout of a folder, by the names of its files; None where none fits.

    ``utterances.csv`` or ``manifest.csv`` win over everything else, since somebody wrote them for
    this folder; any other CSV file counts only where nothing else fits. A folder that cannot be
    read has no layout.
    """
    try:
        return _detect(folder)
    except OSError:
        return None


def _detect(folder: Path) -> Layout | None:
    if not folder.is_dir():
        return None
    if any((folder / name).is_file() for name in manifest.USUAL_NAMES):
        return Layout.MANIFEST
    if kaldi_directories.find_directories(folder):
        return Layout.KALDI
    if vctk.find_root(folder):
        return Layout.VCTK
    if librispeech.find_root(folder):
        return Layout.LIBRISPEECH
    return Layout.MANIFEST if manifest.find_manifest(folder) else None


def read_corpus(
    folder: Path,
    layout: Layout | str | None = None,
    *,
    audio_root: Path | None = None,
    without_audio: bool = False,
    enrolment_share: float = 0.25,
) -> CorpusDraft:
    """Read the listings of a corpus and check them, all faults at once; no audio is opened.

    Args:
        folder: the folder that was handed in.
        layout: how to read it (a `Layout` or its value); detected by default.
        audio_root: Kaldi directories only: the folder below which the audio lies.
        without_audio: Kaldi directories only: accept that there is no audio.
        enrolment_share: share of a speaker's utterances that is enrolment where no role is given.

    Raises:
        ValueError: an unknown layout, `enrolment_share` not between 0 and 1, or an option of Kaldi directories with
            another layout.
    """
    if not 0 < enrolment_share < 1:
        raise ValueError(f"expected an enrolment share between 0 and 1, found {enrolment_share}")
    layout = None if layout is None else Layout(layout)
    try:
        return _read(folder, layout, audio_root, without_audio, enrolment_share)
    except OSError as error:
        expected, found = "files that the portal may read", f"“{error.strerror}”"
        remedy = "Mend the folder, or let the account of the portal's processes read it."
        place = Place(str(error.filename or folder))
        return empty_draft(layout, (place.problem("not-readable", expected, found, remedy),))


def _read(
    folder: Path, layout: Layout | None, audio_root: Path | None, without_audio: bool, enrolment_share: float
) -> CorpusDraft:
    if not folder.is_dir():
        found = "a file" if folder.exists() else "nothing of this name"
        return _not_a_corpus(folder, layout, "missing-folder", found)
    layout = layout or _detect(folder)
    if layout is None:
        return _not_a_corpus(folder, None, "unknown-layout", _content(folder))
    if layout is Layout.KALDI:
        return kaldi_directories.read_kaldi_directories(folder, audio_root=audio_root, without_audio=without_audio)
    if audio_root or without_audio:
        raise ValueError(f"an audio root, or no audio, is for Kaldi directories, not {layout}")
    reader = {
        Layout.LIBRISPEECH: librispeech.read_librispeech,
        Layout.VCTK: vctk.read_vctk,
        Layout.MANIFEST: manifest.read_manifest,
    }[layout]
    return reader(folder, enrolment_share=enrolment_share)


def _not_a_corpus(folder: Path, layout: Layout | None, code: str, found: str) -> CorpusDraft:
    expected = f"a folder with one of these: {_SHAPES}"
    remedy = "Name the top folder of the corpus, or write a manifest."
    return empty_draft(layout, (Place(str(folder)).problem(code, expected, found, remedy),))


def _content(folder: Path) -> str:
    names = sorted(path.name for path in folder.iterdir())
    if not names:
        return "an empty folder"
    return f"a folder of {len(names)} entries such as {', '.join(names[:3])}"
