"""Speech for the tests of pitch shifting: women and men from across the corpora at hand."""

import csv

import soundfile

CORPORA = ("librispeech-test-other", "librispeech-dev-clean", "librispeech-train-clean-100", "vctk", "ravdess")


def read_speech(shared, per_gender):
    """(gender, samples) of the first speakers and utterances of each corpus, all at 16 kHz, int16."""
    with (shared / "speech/utterances.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["corpus"] in CORPORA]
    chosen = []
    for corpus in CORPORA:
        for gender in "FM":
            here = [row for row in rows if (row["corpus"], row["gender"]) == (corpus, gender)]
            chosen += here[:: max(1, len(here) // per_gender)][:per_gender]
    assert chosen
    return [(row["gender"], soundfile.read(shared / "speech" / row["path"], dtype="int16")[0]) for row in chosen]
