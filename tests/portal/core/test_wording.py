"""How durations, estimates, numbers and facts read on a page."""

from datetime import timedelta

from common.packages import describe_missing
from portal.core import labels as wording


def test_durations_read_as_people_say_them():
    found = [wording.duration(seconds) for seconds in (0, 0.04, 9.94, 9.96, 59.6, 61, 3600, 7390, 90000, None)]
    assert found == ["0 s", "under 0.1 s", "9.9 s", "10 s", "1 min", "1 min 1 s", "1 h", "2 h 3 min", "1 d 1 h", "–"]


def test_estimates_are_no_finer_than_they_can_be():
    found = [wording.time_left(timedelta(seconds=seconds)) for seconds in (1, 7, 57, 70, 5000, 6000)]
    assert found == [
        "a few seconds left",
        "about 5 s left",
        "about 55 s left",
        "about 1 min left",
        "about 83 min left",
        "about 2 h left",
    ]
    assert wording.time_left(None) == ""


def test_decimals_have_a_true_minus_and_no_negative_zero():
    assert [wording.decimals(value, 2) for value in (-0.001, -1.234, 3, None)] == ["0.00", "−1.23", "3.00", "–"]


def test_facts_open_inner_objects_and_leave_out_what_is_empty():
    values = {
        "corpus": "tones",
        "voices": {"demo_trials_f": 1200, "demo_trials_m": 0},
        "resample": False,
        "is_synthetic": True,
        "layout": "",
        "missing": [],
        "sets": ["a", "b"],
        "rows": [{"eer": 4.2}],
        "speech_s": 250.5,
        "rate_hz": 16000,
        "level_dbov": -26.0,
        "kbit_per_s": 256.0,
    }
    assert wording.as_facts(values) == [
        ("Corpus", "tones"),
        ("Voices: demo_trials_f", "1,200"),
        ("Voices: demo_trials_m", "0"),
        ("Synthetic", "yes"),
        ("Sets", "a, b"),
        ("Speech", "4 min 10 s"),
        ("Rate", "16,000 Hz"),
        ("Level", "−26.0 dBov"),
        ("Kbit", "256 per s"),
    ]


def test_line_on_what_cannot_run_holds_no_commands():
    lacks = [("World", describe_missing("World", "pyworld")), ("B", ""), ("C", "Its weights are missing.")]
    assert wording.missing_line(lacks) == (
        "Cannot run here: World (needs the package pyworld, which is not installed here); C (Its weights are missing)."
    )
    assert wording.missing_line([("B", "")]) == ""


def test_what_cannot_run_for_one_reason_is_named_together_with_the_command_that_helps():
    lacks = [(title, f"{title} needs torch.") for title in ("A lite (a)", "B", "A lite (b)")]
    fetch = "The model file of X is missing. Fetch it with “python -m evaluation models fetch x”."
    assert wording.group_missing([*lacks, ("C (c)", fetch), ("D", ""), ("E (e)", fetch), ("F (f)", "No weights.")]) == [
        wording.Missing(["A lite", "B"], "needs torch"),
        wording.Missing(["C", "E"], "The model file of X is missing", "python -m evaluation models fetch x"),
        wording.Missing(["F (f)"], "No weights"),
    ]
