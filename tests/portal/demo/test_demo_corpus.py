"""The demo corpus in the repository: its files, its manifest, its licence, and the script's plan.

Nothing here needs the speech engine; the plan of the script is made again and compared.
"""

import csv
from pathlib import Path

import numpy as np

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


def test_script_plans_the_manifest_again() -> None:
    generator = np.random.default_rng(make_corpus.SEED)
    plan = make_corpus.plan_corpus(*make_corpus.read_sentences(make_corpus.SENTENCES), generator)
    lengths = {row["utterance_id"]: round(float(row["duration_s"]) * 16_000) for row in ROWS}
    assert [utterance.row(samples=lengths[utterance.name]) for utterance in plan] == ROWS
