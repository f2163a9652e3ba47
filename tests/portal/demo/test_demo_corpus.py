"""The demo corpus in the repository: its files, its manifest, its licence, and the script's plan.

Nothing here needs the speech engine; the plan of the script is made again and compared.
"""

import csv
import re
from pathlib import Path

import numpy as np
import pytest
import soundfile

from demo import make_corpus

CORPUS = Path(__file__).parents[3] / "demo" / "corpus"


def read_rows() -> list[dict[str, str]]:
    with (CORPUS / "utterances.csv").open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


ROWS = read_rows()


def test_manifest_matches_the_files() -> None:
    files = sorted(path.relative_to(CORPUS).as_posix() for path in CORPUS.rglob("*.flac"))
    assert sorted(row["path"] for row in ROWS) == files
    for row in ROWS:
        assert row["path"] == f"{row['speaker']}/{row['utterance_id']}.flac"


def test_files_are_sixteen_kilohertz_mono_and_as_long_as_stated() -> None:
    for row in ROWS:
        samples, rate = soundfile.read(CORPUS / row["path"], dtype="int16", always_2d=True)
        info = soundfile.info(CORPUS / row["path"])
        assert (info.format, info.subtype, rate, samples.shape[1]) == ("FLAC", "PCM_16", 16_000, 1), row
        assert row["duration_s"] == f"{len(samples) / 16_000:.3f}"
        assert 2 <= len(samples) / 16_000 <= 6, row
        assert 3_000 < np.abs(samples.astype(int)).max() < 32_000, row


def test_licence_says_synthetic_speech_and_names_every_voice() -> None:
    text = (CORPUS / "LICENCE.md").read_text(encoding="utf-8")
    assert "synthetic speech: no real person speaks here" in text
    assert "Kokoro-82M" in text
    assert {row["licence"] for row in ROWS} == {"CC0-1.0"}
    assert "CC0-1.0" in text
    table = re.findall(r"^\| (d\d\d) \| ([FM]) \| `(\w+)` \|", text, flags=re.MULTILINE)
    assert table == [(s.name, s.gender, s.voice) for s in make_corpus.SPEAKERS]


def test_script_plans_the_manifest_again() -> None:
    generator = np.random.default_rng(make_corpus.SEED)
    plan = make_corpus.plan_corpus(*make_corpus.read_sentences(make_corpus.SENTENCES), generator)
    lengths = {row["utterance_id"]: round(float(row["duration_s"]) * 16_000) for row in ROWS}
    assert [utterance.row(samples=lengths[utterance.name]) for utterance in plan] == ROWS


def test_sentence_given_twice_is_refused_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "sentences.txt"
    path.write_text("[common]\nOne.\n[different]\nOne.\n", encoding="utf-8")
    with pytest.raises(make_corpus.CorpusError, match=r"line 4: .* is there twice"):
        make_corpus.read_sentences(path)


def test_missing_and_wrong_parts_are_named_with_both_checksums(tmp_path: Path) -> None:
    part = make_corpus.VOICES_PART
    with pytest.raises(make_corpus.CorpusError, match="is missing"):
        make_corpus.check_part(tmp_path, part)
    (tmp_path / part.name).write_bytes(b"other")
    with pytest.raises(make_corpus.CorpusError, match=f"{part.sha256}, found 5 bytes with d9298a"):
        make_corpus.check_part(tmp_path, part)


def test_finished_samples_are_trimmed_levelled_and_repeatable() -> None:
    tone = 0.01 * np.sin(2 * np.pi * 300 * np.arange(24_000) / 24_000)
    raw = np.concatenate([np.zeros(12_000), tone, np.zeros(24_000)])
    done = make_corpus.finish_samples(raw, np.random.default_rng(1))
    assert done.dtype == np.int16
    assert len(done) == pytest.approx(16_000 * 1.3, abs=320)
    middle = done[4_000:16_000] / 32_768
    assert 10 * np.log10(np.mean(middle**2)) == pytest.approx(-26, abs=0.3)
    assert np.array_equal(done, make_corpus.finish_samples(raw, np.random.default_rng(1)))
