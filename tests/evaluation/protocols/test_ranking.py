"""Ranks by hand: every row of the table in protocol 2.10, its boundaries, and what must hold for any entries."""

import pytest

from common.errors import InputError
from evaluation.protocols.ranking.entries import LeaderboardEntry, MeasuredValue, Place, Reason
from evaluation.protocols.ranking.policy import find_changes, make_policy, policy_in_words
from evaluation.protocols.ranking.ranking import rank
from evaluation.protocols.recipes import load_recipe

RECIPE = load_recipe("2022")
SETS = [name for group in make_policy(RECIPE).gates[0].groups for name in group]


def policy(**changes):
    return make_policy(RECIPE, changes=changes)


def entry(key, eer, wer, *, rho=0.5, wer_interval=None, eer_interval=(None, None), reported=False, **fields):
    low, high = wer_interval or (None, None)
    pitch = rho if isinstance(rho, dict) else dict.fromkeys(SETS, rho)
    defaults = {
        "key": key,
        "label": key,
        "team": key.partition("-")[0],
        "privacy": None if eer is None else MeasuredValue(eer, *eer_interval, is_reported=reported),
        "utilities": {} if wer is None else {"wer": MeasuredValue(wer, low, high)},
        "gate_values": {"pitch_correlation": {name: MeasuredValue(value) for name, value in pitch.items()}},
    }
    return LeaderboardEntry(**defaults | fields)


def table(entries, minimum=15, **changes):
    return next(one for one in rank(entries, policy(**changes)).tables if one.minimum == minimum)


def ranks(found):
    """Rank by key of what is listed, in the order of the table."""
    return [(row.entry.key, row.rank) for row in found.rows]


def codes(row):
    return [reason.code for reason in row.reasons]


# Conditions ----------------------------------------------------------------------------------------


def test_cumulative_policy_ranks_a_system_in_every_condition_that_it_meets():
    leaderboard = rank([entry("A", 32, 9), entry("B", 16, 8)], policy(policy="cumulative"))
    assert [(one.minimum, ranks(one)) for one in leaderboard.tables] == [
        (15, [("B", 1), ("A", 2)]),
        (20, [("A", 1)]),
        (25, [("A", 1)]),
        (30, [("A", 1)]),
    ]
    assert [one.upper for one in leaderboard.tables] == [None] * 4


def test_interval_policy_ranks_a_system_in_one_condition():
    leaderboard = rank([entry("A", 32, 9), entry("B", 16, 8)], policy(policy="interval"))
    assert [(one.minimum, one.upper, ranks(one)) for one in leaderboard.tables] == [
        (15, 20, [("B", 1)]),
        (20, 25, []),
        (25, 30, []),
        (30, None, [("A", 1)]),
    ]


def test_average_near_a_limit_is_noted_with_digits_that_tell_them_apart():
    [row] = table([entry("A", 15.05, 8)]).rows
    assert [(note.code, note.text) for note in row.notes] == [
        ("near-limit", "Its EER of 15.050 % is within 0.05 of 15 %.")
    ]
    [row] = table([entry("A", 15.0004, 8)]).rows
    assert "15.0004 %" in row.notes[0].text
    assert table([entry("A", 15.0500001, 8)]).rows[0].notes == ()


def test_system_just_below_a_limit_is_named_there():
    found = table([entry("A", 14.95, 8), entry("B", 14.949, 7), entry("C", 16, 9)])
    assert [(miss.entry.key, miss.distance) for miss in found.just_missed] == [("A", 0.05)]
    assert found.nearest is None


def test_interval_that_holds_a_limit_is_noted():
    wide, narrow = entry("A", 16, 8, eer_interval=(14, 18)), entry("B", 16, 9, eer_interval=(15.5, 16.5))
    assert [[note.code for note in row.notes] for row in table([wide, narrow]).rows] == [["interval-at-limit"], []]


def test_empty_condition_names_who_came_nearest():
    found = table([entry("A", 11.809, 8), entry("B", 9, 7), entry("O", 3.8, 4, kind="original", team="")])
    assert ranks(found) == [("O", None)]
    assert found.nearest is not None
    assert (found.nearest.entry.key, found.nearest.distance) == ("A", 3.191)


def test_eer_above_chance_is_accepted_with_a_hint():
    rows = [table([entry("A", eer, 8)], minimum=30).rows[0] for eer in (50.0, 50.1, 57.76, 100.0)]
    assert [[note.code for note in row.notes] for row in rows] == [[], *[["above-chance"]] * 3]
    assert all(row.rank == 1 for row in rows)


def test_eer_above_chance_whose_interval_holds_50_accuses_no_attacker():
    holding, above = (entry("A", 53, 8, eer_interval=interval) for interval in ((48, 58), (51, 55)))
    assert [[note.code for note in table([one], minimum=30).rows[0].notes] for one in (holding, above)] == [
        [],
        ["above-chance"],
    ]


def test_lower_eer_of_another_attack_is_noted_where_it_misses_a_limit_that_is_reached():
    lowest = ("ignorant", MeasuredValue(19.2, 18.1, 20.3))
    found = table(
        [entry("A", 32, 8, lower_attack=lowest), entry("B", 18, 9, lower_attack=("ignorant", MeasuredValue(15.5)))]
    )
    assert [(row.rank, [note.text for note in row.notes]) for row in found.rows] == [
        (
            1,
            [
                "The ignorant attack already gives a lower EER, 19.2 %, which misses the limits of 20, 25 and 30 %; "
                "ranks rest on the semi-informed attack only."
            ],
        ),
        (2, []),
    ]
    [row] = table([entry("A", 24, 8, lower_attack=("ignorant", MeasuredValue(19.996)))]).rows
    assert "a lower EER, just below 20.0 %, which misses the limit of 20 %" in row.notes[0].text


def test_limit_that_another_estimator_misses_is_noted():
    others = {"rocch": MeasuredValue(19.6), "speechbrain": MeasuredValue(20.1)}
    [row] = table([entry("A", 21, 8, other_eers=others)]).rows
    assert [note.text for note in row.notes] == [
        "By the estimator ROC convex hull its EER is 19.6 %, which misses the limit of 20 %; "
        "ranks rest on the estimator Kaldi only."
    ]


# Order ---------------------------------------------------------------------------------------------


def test_lower_wer_is_better_and_higher_uar():
    assert ranks(table([entry("A", 16, 8), entry("B", 29, 8.01)])) == [("A", 1), ("B", 2)]
    recipe = load_recipe("2024")
    both = [
        LeaderboardEntry(
            key, key, key, privacy=MeasuredValue(20), utilities={"wer": MeasuredValue(wer), "uar": MeasuredValue(uar)}
        )
        for key, wer, uar in (("A", 5, 50), ("B", 4, 45))
    ]
    tables = rank(both, make_policy(recipe)).tables
    assert [(one.number, one.utility.metric, ranks(one)) for one in tables[:2]] == [
        (1, "wer", [("B", 1), ("A", 2)]),
        (1, "uar", [("A", 1), ("B", 2)]),
    ]


def test_equal_values_share_a_rank_in_the_order_of_higher_eer():
    found = table([entry("A", 16, 8), entry("B", 17, 9), entry("C", 19, 9), entry("D", 18, 10)])
    assert ranks(found) == [("A", 1), ("C", 2), ("B", 2), ("D", 4)]


# One system of a team ------------------------------------------------------------------------------


def test_only_the_system_of_lowest_wer_of_a_team_is_ranked():
    found = table([entry("T1-p1", 16, 9), entry("T1-c1", 17, 8), entry("T2-p1", 16, 8.5)])
    assert ranks(found) == [("T1-c1", 1), ("T2-p1", 2), ("T1-p1", None)]
    assert found.rows[2].reasons == (
        Reason("another-system", "Of this team T1-c1 is ranked, which has the lower WER."),
    )


def test_best_system_of_a_team_is_chosen_in_each_condition_anew():
    leaderboard = rank([entry("T1-p1", 32, 9), entry("T1-c1", 17, 8)], policy())
    assert [ranks(one) for one in leaderboard.tables] == [[("T1-c1", 1), ("T1-p1", None)], *[[("T1-p1", 1)]] * 3]


def test_of_two_equal_systems_of_a_team_the_more_private_is_ranked():
    found = table([entry("T1-p1", 16, 8), entry("T1-c1", 17, 8)])
    assert ranks(found) == [("T1-c1", 1), ("T1-p1", None)]
    assert found.rows[1].reasons[0].text == "Of this team T1-c1 is ranked, which has an equal WER and comes first."


def test_of_two_equal_systems_of_a_team_the_primary_one_is_ranked():
    found = table([entry("T1-p1", 16, 8), entry("T1-c1", 17, 8, is_contrastive=True)])
    assert ranks(found) == [("T1-p1", 1), ("T1-c1", None)]


def test_system_that_may_not_be_ranked_does_not_stand_in_for_its_team():
    found = table([entry("T1-p1", 16, 9), entry("T1-c1", 17, 8, is_late=True), entry("T1-c2", 17, 7, rho=0.2)])
    assert ranks(found) == [("T1-c2", None), ("T1-c1", None), ("T1-p1", 1)]


def test_every_system_is_ranked_where_the_policy_says_so():
    found = table([entry("T1-p1", 16, 9), entry("T1-c1", 17, 8)], several_systems="all")
    assert ranks(found) == [("T1-c1", 1), ("T1-p1", 2)]


def test_systems_without_a_team_do_not_share_one():
    found = table([entry("X", 16, 9, team=""), entry("Y", 17, 8, team="")])
    assert ranks(found) == [("Y", 1), ("X", 2)]


# Gates, late, reported numbers, missing ----------------------------------------------------------------------


def test_gate_holds_the_mean_of_both_genders_of_each_set():
    uneven = dict.fromkeys(SETS, 0.5) | {"vctk_dev_trials_f": 0.2, "vctk_dev_trials_m": 0.45}
    assert table([entry("A", 16, 8, rho=uneven)]).rows[0].rank == 1
    low = dict.fromkeys(SETS, 0.5) | {"vctk_dev_trials_f": 0.2, "vctk_dev_trials_m": 0.3}
    [row] = table([entry("A", 16, 8, rho=low)]).rows
    assert (row.place, row.rank) == (Place.UNRANKED, None)
    assert row.reasons == (
        Reason(
            "gate",
            "Pitch correlation ρF0 must exceed 0.3 on each data set; it is 0.2500 on vctk_dev_trials_f and "
            "vctk_dev_trials_m.",
        ),
    )


def test_gate_can_be_moved_or_taken_away():
    low = [entry("A", 16, 8, rho=0.25)]
    assert table(low, gates={"pitch_correlation": 0.2}).rows[0].rank == 1
    assert table(low, gates={"pitch_correlation": None}).rows[0].rank == 1
    assert table([entry("A", 16, 8, rho={})], gates={"pitch_correlation": None}).rows[0].rank == 1


def test_late_system_is_listed_in_its_place_without_a_rank():
    systems = [entry("A", 16, 8), entry("B", 16, 7, is_late=True), entry("C", 16, 9)]
    found = table(systems)
    assert ranks(found) == [("B", None), ("A", 1), ("C", 2)]
    assert codes(found.rows[0]) == ["late"]
    found = table(systems, late="ranked")
    assert ranks(found) == [("B", 1), ("A", 2), ("C", 3)]
    assert [note.code for note in found.rows[0].notes] == ["late"]


def test_claimed_numbers_are_ranked_only_where_claims_are_allowed():
    systems = [entry("A", 16, 8, reported=True), entry("B", 16, 9)]
    leaderboard = rank(systems, policy())
    assert ranks(leaderboard.tables[0]) == [("B", 1)]
    assert [(one.entry.key, [reason.code for reason in one.reasons]) for one in leaderboard.unrankable] == [
        ("A", ["reported"])
    ]
    found = table(systems, basis="claims")
    assert ranks(found) == [("A", 1), ("B", 2)]
    assert [[note.code for note in row.notes] for row in found.rows] == [["reported"], []]


def test_claimed_value_of_a_gate_counts_as_a_claim():
    reported_numbers = {name: MeasuredValue(0.5, is_reported=name.startswith("libri_dev")) for name in SETS}
    reported = entry("A", 16, 8, gate_values={"pitch_correlation": reported_numbers})
    assert rank([reported], policy()).unrankable[0].reasons[0].text == (
        "Only recomputed numbers are ranked; only reported: Pitch correlation ρF0."
    )
    assert table([reported], gates={"pitch_correlation": None}).rows[0].rank == 1


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"eer": None}, "There is no average EER (Kaldi)."),
        ({"wer": None, "missing": {"wer": ("libri_test_asr",)}}, "There is no average WER; missing: libri_test_asr."),
        ({"rho": {}}, f"Pitch correlation ρF0 is missing for {', '.join(SETS)}."),
        ({"eer": float("nan")}, "The average EER (Kaldi) must be 0 to 100 %; it is nan %."),
        ({"reasons": (Reason("failed-check", "Trials are missing."),)}, "Trials are missing."),
    ],
)
def test_unrankable_system_is_listed_with_the_reason(fields, text):
    leaderboard = rank([entry(**{"key": "A", "eer": 16, "wer": 8} | fields), entry("B", 16, 9)], policy())
    assert all(row.entry.key != "A" for one in leaderboard.tables for row in one.rows)
    assert [(one.entry.key, [reason.text for reason in one.reasons]) for one in leaderboard.unrankable] == [
        ("A", [text])
    ]


# References ----------------------------------------------------------------------------------------


def test_baselines_and_original_stand_in_their_place_without_a_rank():
    found = table(
        [
            entry("A", 16, 8),
            entry("B", 17, 10),
            entry("B1.b", 15.5, 9, kind="baseline", team="", rho={}, reported=True),
            entry("B2", 7, 7, kind="baseline", team=""),
            entry("Original", 3.8, 5, kind="original", team="", rho={}),
        ]
    )
    assert ranks(found) == [("Original", None), ("A", 1), ("B1.b", None), ("B", 2)]
    assert [row.place for row in found.rows] == [Place.REFERENCE, Place.RANKED, Place.REFERENCE, Place.RANKED]
    assert [row.entry.key for row in found.competitors] == ["A", "B"]


def test_original_speech_stands_with_the_numbers_that_there_are():
    original = entry("Original", 3.8, None, kind="original", team="", rho={})
    found = table([entry("A", 16, 8), original])
    assert ranks(found) == [("A", 1), ("Original", None)]
    assert found.rows[1].place is Place.REFERENCE
    assert rank([original], policy()).unrankable == ()
    assert [one.key for one in rank([original], policy(minimum_eers=[])).outside] == ["Original"]


def test_systems_that_meet_no_condition_are_named_outside():
    leaderboard = rank(
        [entry("A", 16, 8), entry("B", 9, 8), entry("C", 11, 8), entry("B2", 7, 8, kind="baseline")], policy()
    )
    assert [one.key for one in leaderboard.outside] == ["C", "B", "B2"]


def test_same_system_twice_is_refused():
    with pytest.raises(InputError, match="found “A” again"):
        rank([entry("A", 16, 8), entry("B", 16, 8), entry("A", 17, 8)], policy())


# Groups --------------------------------------------------------------------------------------------


def grouped(*intervals, **fields):
    """Groups of systems A, B, … whose WERs have these intervals, the WER in the middle."""
    systems = [
        entry(chr(65 + n), 16, sum(limits) / 2 if limits else 5 + n, wer_interval=limits)
        for n, limits in enumerate(intervals)
    ]
    return table(systems, **fields).groups


def test_neighbours_whose_intervals_overlap_are_one_group():
    assert grouped((7, 9), (8, 10), (11, 12)) == (("A", "B"),)
    assert grouped((7, 9), (9, 10)) == (("A", "B"),)
    assert grouped((7, 8.9), (9, 10)) == ()


def test_groups_are_no_chains():
    assert grouped((7, 9), (8, 11), (10, 13)) == (("A", "B"), ("B", "C"))
    assert grouped((7, 10), (8, 11), (9, 13), (10.5, 14)) == (("A", "B", "C"), ("B", "C", "D"))


def test_row_without_an_interval_ends_a_group():
    assert grouped((7, 9), None, (7.5, 9.5)) == (("A", "C"),)  # B, of WER 6, stands before both
    assert grouped(None, None) == ()


def test_unranked_rows_belong_to_no_group():
    systems = [
        entry("A", 16, 8, wer_interval=(7, 9)),
        entry("B", 16, 8.1, wer_interval=(7, 9), is_late=True),
        entry("C", 16, 8.2, wer_interval=(7, 9)),
    ]
    assert table(systems).groups == (("A", "C"),)


# The policy ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"minimum_eers": [20, 15]}, "expected limits from 0 to 100 % that ascend, found 20, 15"),
        ({"minimum_eers": list(range(13))}, "at most 12"),
        ({"policy": "best"}, "expected one of cumulative, interval, found “best”"),
        ({"inclusive": 1}, "expected true or false"),
        ({"gates": {"uar": 1}}, "the recipe has pitch_correlation; found “uar”"),
        ({"colour": "red"}, "Expected the fields minimum_eers"),
    ],
)
def test_policy_that_cannot_be_used_is_refused_in_words(changes, sentence):
    with pytest.raises(InputError) as refusal:
        policy(**changes)
    assert sentence in str(refusal.value)


@pytest.mark.parametrize(
    "changes",
    [
        {"minimum_eers": [5.0, 8.0], "policy": "interval", "inclusive": False, "note_within": 0.1, "late": "ranked"},
        {"gates": {"pitch_correlation": 0.25}, "basis": "claims", "several_systems": "all"},
    ],
)
def test_changes_of_a_policy_are_what_made_it(changes):
    assert find_changes(policy(**changes), RECIPE) == changes


def test_edition_without_a_ranking_ranks_nothing():
    found = make_policy(load_recipe("2020"))
    assert (found.minimum_eers, found.attack_model, found.privacy.estimator) == ((), "lazy-informed", "kaldi")
    assert rank([entry("A", 16, 8)], found).tables == ()
    assert policy_in_words(found)[0] == "No condition is set, so nothing is ranked."
