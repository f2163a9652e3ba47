"""Archives as teams pack them, and what an edition expects of them, made from samples."""

from __future__ import annotations

import io
import tarfile
import zipfile
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

import numpy as np
import soundfile

from anonymization.methods.registry import get_method
from anonymization.methods.voices.pseudo_speakers import draw_pseudo_speaker, pseudo_speaker_key
from evaluation.protocols.recipes import FOLDER
from portal.intake.archives.reading import ArchiveLimits
from portal.intake.check import ArchiveCheck, FoundSpeech
from portal.intake.expectation import ExpectedSubmission, ExpectedUtterance, pcm_sha256
from tests.recordings import RATE, read_demo

RECIPE_2022 = (FOLDER / "2022.toml").read_text()


def wav(samples, rate=RATE, subtype="PCM_16"):
    """A WAV file as bytes."""
    file = io.BytesIO()
    soundfile.write(file, samples, rate, format="WAV", subtype=subtype)
    return file.getvalue()


def flac(samples, rate=RATE, subtype="PCM_16"):
    """A FLAC file as bytes."""
    file = io.BytesIO()
    soundfile.write(file, samples, rate, format="FLAC", subtype=subtype)
    return file.getvalue()


def pack_zip(path: Path, files: Iterable[tuple[str, bytes]]) -> Path:
    """A zip archive of the files; names may repeat."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, content in files:
            archive.writestr(name, content)
    return path


def pack_tar(path: Path, files: Iterable[tuple[str, bytes]], mode: str = "w:gz") -> Path:
    """A tar archive of the files, packed quickly rather than well."""
    level = {"w:xz": {"preset": 0}, "w": {}}.get(mode, {"compresslevel": 1})
    with tarfile.open(path, mode, **level) as archive:
        for name, content in files:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


def unpack(folder: Path, files: Iterable[tuple[str, bytes]]) -> Path:
    """The files in a plain folder."""
    for name, content in files:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def expect(originals: Mapping[str, np.ndarray], data_sets=None, **changes) -> ExpectedSubmission:
    """What an edition expects that has these originals, one data set of all of them unless told."""
    given = {
        "edition": "autumn",
        "recipe_text": RECIPE_2022,
        "data_sets": data_sets if data_sets is not None else {"all": tuple(originals)},
        "utterances": {
            name: ExpectedUtterance(name, samples.size, RATE, pcm_sha256(samples))
            for name, samples in originals.items()
        },
        "audio_required": True,
        "scores_required": False,
        "description_required": False,
        "limits": ArchiveLimits(),
    }
    return ExpectedSubmission(**(given | changes))


def check(
    source: Path, expected: ExpectedSubmission, documents: Path, keeper=None, inherited=None, beside=None, progress=None
):
    """The report on an archive or a folder; `beside` gets the paths of the documents that came and names others."""
    documents.mkdir(exist_ok=True)
    archive = ArchiveCheck(source.name, expected, documents, progress or (lambda *_: None))
    for found in archive.read(source):
        if keeper is not None:
            (keeper.keep_speech if isinstance(found, FoundSpeech) else keeper.keep_document)(found)
    others = beside(archive.paths) if beside is not None and archive.refusal is None else ()
    return archive.report(inherited or {}, others)


def find_problems(report):
    """Each finding as (utterance or file, code), sorted; a finding that stands for several counts as often."""
    return sorted((Path(one.file).stem, one.code) for one in report.findings)


@cache
def original(name: str) -> np.ndarray:
    """An utterance of the demo corpus."""
    return read_demo(name)


@cache
def anonymised(name: str) -> np.ndarray:
    """The same by B2, in the voice of its speaker's pseudo-speaker."""
    method = get_method("mcadams-2022")
    key = pseudo_speaker_key(seed=1, role="trial", split="dev", speaker=name.partition("-")[0])
    voice = draw_pseudo_speaker(key, method.parameters)
    return method.anonymize(original(name), RATE, voice, threads=1)


def tone(duration_s: float, *, seed: int) -> np.ndarray:
    """Made-up speech: three drifting partials that swell and fade, another for each seed; int16 at 16 kHz."""
    random = np.random.default_rng(seed)
    time_s = np.arange(round(duration_s * RATE)) / RATE
    pitch_hz = random.uniform(90, 250) + 10 * np.sin(2 * np.pi * random.uniform(0.5, 2) * time_s)
    phase = 2 * np.pi * np.cumsum(pitch_hz) / RATE
    partials = sum(np.sin(number * phase) / number for number in (1, 2, 3))
    swell = 0.55 + 0.45 * np.sin(2 * np.pi * random.uniform(2, 4) * time_s)
    return np.rint(partials * swell * 6000 + random.normal(0, 20, time_s.size)).astype(np.int16)


def pdf_of(*objects: bytes, catalog: bytes = b"", note: bytes = b"how our system works") -> bytes:
    """A PDF of one empty page, with these further objects, entries of its catalog and a comment."""
    content, places = b"%PDF-1.4\n% " + note + b"\n", []
    pages = b"<</Type/Pages/Kids[3 0 R]/Count 1>>", b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]>>"
    rows = [b"<</Type/Catalog/Pages 2 0 R" + catalog + b">>", *pages, *objects]
    for number, row in enumerate(rows, 1):
        places.append(len(content))
        content += b"%d 0 obj" % number + row + b"endobj\n"
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    head = b"xref\n0 %d\n0000000000 65535 f \n" % (len(rows) + 1)
    end = b"trailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n" % (len(rows) + 1, len(content))
    return content + head + table + end


DESCRIPTION = pdf_of()
