import numpy as np
import pytest

from listening.analysis.reading.inputs import ORIGINAL, ObjectiveRows, Settings, Transcripts
from listening.analysis.transcription.transcripts import make_transcription_tables
from tests.listening.analysis.made_ratings import fill

SETTINGS = Settings(resamples=300)
SAID = {
    "u1": "AFTER EARLY NIGHTFALL THE YELLOW LAMPS WOULD LIGHT UP",
    "u2": "THE SQUALID QUARTER OF THE TOWN",
    "u3": "NUMBER TEN IS WAITING ON YOU",
    "u4": "A COLD LUCID INDIFFERENCE REIGNED IN HIS SOUL",
}


def transcripts_of(rows):
    usual = {
        "listener": "l1",
        "session": "s1",
        "item": "i",
        "system": ORIGINAL,
        "utterance": "u1",
        "speaker": "p",
        "text": "",
        "reference": "",
        "nothing": False,
        "excluded": "",
    }
    return fill(Transcripts, [{"reference": SAID.get(row.get("utterance", "u1"), "")} | row for row in rows], usual)


def made_up_transcripts(listeners=12, seed=1, missed=(("original", 0.1), ("T01", 0.3), ("T02", 0.6))):
    """Words are left out, exchanged or doubled at a rate by system."""
    numbers = np.random.default_rng(seed)
    rows = []
    for listener in range(listeners):
        for place, (system, rate) in enumerate(missed):
            for number in range(4):
                utterance = f"u{(listener + number + place) % 4 + 1}"
                heard = []
                for word in SAID[utterance].split():
                    chance = numbers.random()
                    heard += [word] if chance > rate else ([] if chance < rate / 2 else ["zzz"] * (1 + number % 2))
                rows.append(
                    {
                        "listener": f"l{listener:02}",
                        "session": f"s{listener:02}",
                        "system": system,
                        "item": f"i{number}",
                        "utterance": utterance,
                        "text": " ".join(heard).lower(),
                        "nothing": not heard,
                    }
                )
    return transcripts_of(rows)


def objective_of(rows):
    columns = list(zip(*rows, strict=True))
    texts = [np.array(column) for column in columns[:2]]
    return ObjectiveRows(*texts, *(np.array(column, float) for column in columns[2:]), np.full(len(rows), np.nan))


def plain_distance(said, heard):
    """Least edits by dynamic programming, on its own."""
    row = list(range(len(heard) + 1))
    for i, word in enumerate(said, 1):
        diagonal, row[0] = row[0], i
        for j, other in enumerate(heard, 1):
            diagonal, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diagonal + (word != other))
    return row[-1]


def test_errors_agree_with_an_independent_count():
    transcripts = made_up_transcripts()
    table, each = make_transcription_tables(transcripts, None, SETTINGS)
    expected = {}
    for row in range(len(transcripts)):
        said, heard = SAID[str(transcripts.utterance[row])].lower().split(), str(transcripts.text[row]).split()
        counts = expected.setdefault(str(transcripts.system[row]), [0, 0, 0])
        counts[0] += plain_distance(said, heard)
        counts[1] += len(said)
        counts[2] += 1
    assert table.values("system") == [ORIGINAL, "all", "T01", "T02"]
    expected["all"] = [sum(parts) for parts in zip(expected["T01"], expected["T02"], strict=True)]
    for row in table.records():
        errors, words, n = expected[row["system"]]
        assert (row["words"], row["n"], row["utterances"], row["listeners"]) == (words, n, 4, 12)
        assert row["wer"] == pytest.approx(errors / words)
        assert row["substitutions"] + row["deletions"] + row["insertions"] == pytest.approx(row["wer"])
        assert row["wer_low"] <= row["wer"] <= row["wer_high"]
    for row in each.records():
        assert row["errors"] == plain_distance(row["reference"].split(), row["heard"].split())
    assert sum(row["errors"] for row in each.records()) == expected[ORIGINAL][0] + expected["all"][0]


def test_kinds_of_errors_keywords_and_empty_answers_by_hand():
    table, each = make_transcription_tables(
        transcripts_of(
            [
                {
                    "utterance": "u1",
                    "text": "after early night the yellow lamps would light up up",
                },  # 1 sub, 1 ins of 9
                {"utterance": "u2", "text": "the squalid of town"},  # 2 del of 6
                {"utterance": "u3", "nothing": True},  # 6 del of 6
                {"utterance": "u4", "text": " ... "},  # 8 del of 8
            ]
        ),
        None,
        SETTINGS,
    )
    row = table.records()[0]
    assert row["words"] == 29
    assert row["substitutions"] == pytest.approx(1 / 29)
    assert row["insertions"] == pytest.approx(1 / 29)
    assert row["deletions"] == pytest.approx(16 / 29)
    assert row["wer"] == pytest.approx(18 / 29)
    assert row["nothing"] == 0.5
    # early nightfall yellow lamps light, squalid quarter town, number ten waiting, cold lucid indifference reigned soul
    assert row["keyword_accuracy"] == pytest.approx((4 + 2) / 16)
    assert (row["recogniser_wer"], row["wer_low"]) == (None, None)
    assert row["remark"] == "Fewer than 10 listeners: no interval."
    assert [one["errors"] for one in each.records()] == [2, 2, 6, 8]


def test_recogniser_is_weighted_as_listeners_are():
    transcripts = transcripts_of(
        [{"system": "T01", "utterance": "u1", "text": "after"}] * 3 + [{"system": "T01", "utterance": "u2"}]
    )
    objective = objective_of([("T01", "u1", 2, 9), ("T01", "u2", 6, 6), (ORIGINAL, "u1", 9, 9), ("T02", "u2", 0, 6)])
    row = make_transcription_tables(transcripts, objective, SETTINGS)[0].records()[0]
    assert row["recogniser_wer"] == pytest.approx((3 * 2 + 6) / (3 * 9 + 6))
    partly = objective_of([("T01", "u1", 2, 9), ("T01", "u2", np.nan, np.nan)])
    row = make_transcription_tables(transcripts, partly, SETTINGS)[0].records()[0]
    assert row["recogniser_wer"] == pytest.approx(2 / 9)
    assert "The recogniser's result is known for 3 of 4 transcripts." in row["remark"]


def test_transcripts_without_a_reference_or_excluded_are_left_out():
    table, each = make_transcription_tables(
        transcripts_of(
            [
                {"system": "T01", "utterance": "u1", "text": "after"},
                {"system": "T01", "utterance": "u9", "text": "what was it"},
                {"system": "T01", "utterance": "u2", "text": "the", "excluded": "too fast"},
            ]
        ),
        None,
        SETTINGS,
    )
    row = table.records()[0]
    assert (row["n"], len(each.rows)) == (1, 1)
    assert row["remark"].startswith("1 transcript left out: what was said is not known.")


def test_other_languages_have_no_keywords():
    rows = [{"reference": "L'ÉTÉ À PARIS", "text": "l’été a Paris"}]
    row = make_transcription_tables(transcripts_of(rows), None, SETTINGS, "fr")[0].records()[0]
    assert (row["words"], row["wer"], row["keyword_accuracy"]) == (4, 0.25, None)
