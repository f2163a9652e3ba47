"""What an edition allows when, how its phases read, which dates, recipes and corpora fit together: pure functions."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from common.errors import ProblemsError
from evaluation.protocols.recipes import FOLDER, load_recipe, shipped_editions
from portal.challenges.rules import (
    HeldSet,
    Phase,
    contradictions,
    date_problems,
    missing_sets,
    read_recipe_text,
    registration_phase,
    submission_phase,
    track_problem,
)
from portal.editions.pages import make_rules

TICK = timedelta(microseconds=1)
OPENS = datetime(2026, 3, 1, 12, tzinfo=UTC)
CLOSES = OPENS + timedelta(days=30)
LATE = CLOSES + timedelta(days=2)


def edition(**fields):
    names = ("registration_opens_at", "registration_closes_at", "submissions_open_at", "submissions_close_at")
    return SimpleNamespace(**dict.fromkeys([*names, "late_until", "archived_at"]) | fields)


LIMITED = edition(
    registration_opens_at=OPENS,
    registration_closes_at=CLOSES,
    submissions_open_at=OPENS,
    submissions_close_at=CLOSES,
    late_until=LATE,
)


@pytest.mark.parametrize(
    ("now", "registration", "submissions"),
    [
        (OPENS - TICK, Phase.BEFORE, Phase.BEFORE),
        (OPENS, Phase.OPEN, Phase.OPEN),
        (CLOSES - TICK, Phase.OPEN, Phase.OPEN),
        (CLOSES, Phase.CLOSED, Phase.LATE),
        (LATE - TICK, Phase.CLOSED, Phase.LATE),
        (LATE, Phase.CLOSED, Phase.CLOSED),
    ],
)
def test_phase_changes_at_the_very_moment(now, registration, submissions):
    assert (registration_phase(LIMITED, now), submission_phase(LIMITED, now)) == (registration, submissions)


def test_dates_in_the_wrong_order_are_named():
    swapped = {
        "registration_opens_at": CLOSES,
        "registration_closes_at": OPENS,
        "submissions_open_at": OPENS,
        "submissions_close_at": OPENS,
        "late_until": OPENS,
    }
    assert set(date_problems(swapped)) == {"registration_closes_at", "submissions_close_at", "late_until"}
    assert date_problems({"late_until": LATE}) == {
        "late_until": "Late submissions need a deadline that they come after."
    }
    assert date_problems(vars(LIMITED)) == {}


def recipe_of(year):
    return (FOLDER / f"{year}.toml").read_text()


@pytest.mark.parametrize("year", shipped_editions())
def test_shipped_recipes_are_read_and_told_in_words(year):
    recipe = read_recipe_text(recipe_of(year), file="own.toml")
    for track in recipe.tracks:
        told = make_rules(recipe, track)
        assert len(told.metrics) == len(recipe.metrics)
        if told.track.ranking is None:
            assert told.sentences == ()
        elif limits := told.track.ranking.minimum_eers:
            assert f"its limit ({', '.join(f'{limit:g}' for limit in limits)} %)" in told.sentences[0]
        else:
            assert told.sentences[0] == "No condition is set, so nothing is ranked."


BROKEN = {
    "": "expected at least one table",
    recipe_of("2022").replace('languages = ["en"]', 'languages = ["en", 5]'): "expected texts in quotation marks",
    recipe_of("2022").replace("utterances = 343", f"utterances = {10**400}"): "found a number of about 401 digits",
    "x = " + "[" * 5000 + "]" * 5000: "line 1: expected at most 16 levels, found 5,000",
    ".".join(["a"] * 20_000) + " = 1": "line 1: expected at most 8 parts of a key, found 20,000",
    "".join(f"k{number} = 1\n" for number in range(20_001)): "at most 20,000 entries, found 20,001",
    "# " + "x" * (1 << 20): "at most 256 KiB",
}


@pytest.mark.parametrize(("text", "said"), BROKEN.items(), ids=range(len(BROKEN)))
def test_recipe_that_cannot_be_used_is_a_sentence(text, said):
    with pytest.raises(ProblemsError, match=r"^own\.toml(, line \d+)?: ") as refused:
        read_recipe_text(text, file="own.toml")
    assert said in str(refused.value)


def test_every_problem_of_a_recipe_is_told_at_once():
    text = recipe_of("2022").replace('title = "VoicePrivacy 2022"', "").replace('policy = "cumulative"', 'policy = "x"')
    text = text.replace('key = "cllr"', 'key = "beauty"').replace("libri_dev_trials_f = 0.25", "libri_dev_trials_f = 1")
    text = text.replace("utterances = 343", 'utterances = "343"').replace("[15, 20, 25, 30]", "[15, 120]")
    with pytest.raises(ProblemsError) as refused:
        read_recipe_text(text, file="own.toml")
    problems = refused.value.problems
    assert str(refused.value).splitlines() == list(problems)
    wanted = ["libri_dev_enrolls.utterances", "add up to 1", "policy", "from 0 to 100 %", "“beauty”", "“title”"]
    assert [any(words in problem for problem in problems) for words in wanted] == [True] * len(wanted)
    assert all(problem.startswith("own.toml: ") for problem in problems)


def test_engines_that_nobody_knows_are_refused():
    table = '[evaluation]\nby = "both"\nattackers = ["x"]\nrecognizer = "y"\ntraining = "z"\n'
    with pytest.raises(ProblemsError) as refused:
        read_recipe_text(recipe_of("2024") + table, file="own.toml")
    wanted = ["attackers: expected one of wespeaker-resnet34, ", "recognizer: ", "training: expected one of spane, "]
    assert [any(f"evaluation.{words}" in one for one in refused.value.problems) for words in wanted] == [True] * 3


def test_track_must_be_one_of_the_recipe():
    several, one = load_recipe("2026"), load_recipe("2022")
    assert (track_problem(one, ""), track_problem(one, "main"), track_problem(several, "track2")) == ("", "", "")
    assert track_problem(several, "") == (
        "The recipe has several tracks: track1, track2. Name the one of this edition."
    )
    assert "found “track3”" in track_problem(several, "track3")


def held(role="trial", utterances=1018):
    return HeldSet(role=role, utterances=tuple(f"u{number:04d}" for number in range(utterances)))


def test_corpus_with_none_of_the_data_sets_contradicts_the_recipe():
    [sentence] = contradictions(load_recipe("2022"), "tones", {"tones_trials_f": held()})
    assert sentence.startswith("The corpus tones holds none of the 17 enrolment, trial and training sets of the recipe")
    assert "found tones_trials_f." in sentence


def test_role_number_and_names_of_a_data_set_are_held_against_the_recipe():
    recipe = load_recipe("2022")
    place = "The data set libri_dev_trials_f of the recipe and of the corpus libri differ"
    assert contradictions(recipe, "libri", {"libri_dev_trials_f": held("enrolment", 7)}) == [
        f"{place}: expected the role trial, found enrolment.",
        f"{place}: expected 1018 utterances, found 7.",
    ]
    [names] = contradictions(recipe, "libri", {"libri_dev_trials_f": held()})
    assert names.startswith(f"{place}: expected utterances whose names hash to 3f42ebf4c66ab4b1, found ")


def test_lacking_data_sets_are_no_contradiction_but_told():
    text = recipe_of("2022").replace("utterances = 1018, ", "").replace('id_hash = "3f42ebf4c66ab4b1", ', "")
    recipe = read_recipe_text(text, file="own.toml")
    assert contradictions(recipe, "libri", {"libri_dev_trials_f": held(utterances=3)}) == []
    missing = missing_sets(recipe, ["libri_dev_trials_f"])
    assert len(missing) == 15
    assert "libri_dev_trials_f" not in missing
