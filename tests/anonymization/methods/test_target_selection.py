"""Who gets which target: the rules of each selection, without any speech."""

from collections import Counter
from dataclasses import replace

import pytest

from anonymization.checks.voices import check_target_voices
from anonymization.conformance import make_vowel
from anonymization.methods.contract import MethodError, Target, TargetPool, takes_targets
from anonymization.methods.voices.pseudo_speakers import Assignment
from anonymization.methods.voices.targets import SELECTIONS, SourceUtterance, plan_targets, target_voice
from tests.anonymization.target_spectrum import METHODS

TARGETS = [Target(f"t{number}", "fm"[number % 2]) for number in range(10)]
GENDERS = {target.name: target.gender for target in TARGETS}


def sources(speakers=6, utterances=5, *, role="training", level="utterance", split="train"):
    return [
        SourceUtterance(f"s{speaker}-{number}", f"s{speaker}", "fm"[speaker % 2], role, split, level)
        for speaker in range(speakers)
        for number in range(utterances)
    ]


def drawn(rows, selection="random", seed=1, targets=TARGETS):
    return [each.voice.target for each in plan_targets(rows, targets, selection, seed=seed)]


def by_speaker(rows, chosen):
    found = {}
    for row, target in zip(rows, chosen, strict=True):
        found.setdefault(row.speaker, []).append(target)
    return found


@pytest.mark.parametrize("selection", SELECTIONS)
def test_plan_depends_on_seed_and_names_alone(selection):
    rows = sources()
    first = plan_targets(rows, TARGETS, selection, seed=1)
    assert plan_targets(rows, TARGETS[::-1], selection, seed=1) == first
    backwards = plan_targets(rows[::-1], TARGETS, selection, seed=1)
    assert backwards[::-1] == first
    assert [(each.utterance, each.speaker) for each in first] == [(row.utterance, row.speaker) for row in rows]
    one_by_one = [plan_targets([row], TARGETS, selection, seed=1)[0] for row in rows]
    assert one_by_one == first
    assert len({tuple(drawn(rows, selection, seed)) for seed in range(10)}) > 1


def test_random_targets_tell_nothing_of_the_source():
    """Of the pairs of source and target all 60 occur, so that no source has targets of its own."""
    rows = sources(speakers=6, utterances=200)
    found = by_speaker(rows, drawn(rows))
    assert all(set(targets) == set(GENDERS) for targets in found.values())


@pytest.mark.parametrize(("selection", "is_same"), [("same-gender", True), ("opposite-gender", False)])
def test_genders_are_as_the_selection_says(selection, is_same):
    rows = sources(utterances=40)
    chosen = drawn(rows, selection)
    assert all((GENDERS[target] == row.gender) is is_same for row, target in zip(rows, chosen, strict=True))
    assert set(chosen) == set(GENDERS)


@pytest.mark.parametrize("selection", ["one-per-source", "one-per-source-same-gender"])
def test_one_per_source_gives_a_speaker_one_target_at_utterance_level(selection):
    rows = sources(speakers=40)
    found = by_speaker(rows, drawn(rows, selection))
    assert all(len(set(targets)) == 1 for targets in found.values())
    assert len({targets[0] for targets in found.values()}) > 5
    if selection.endswith("gender"):
        assert all(GENDERS[found[row.speaker][0]] == row.gender for row in rows)


def test_constant_is_one_for_all_roles_levels_and_splits():
    everybody = [
        *sources(),
        *sources(role="trial", level="speaker", split="dev"),
        *sources(role="enrolment", level="speaker", split="test"),
    ]
    assert len(set(drawn(everybody, "constant"))) == 1


@pytest.mark.parametrize("selection", ["random", "one-per-source"])
def test_speakers_at_speaker_level_have_targets_of_their_own(selection):
    rows = sources(speakers=10, role="trial", level="speaker", split="dev")
    found = by_speaker(rows, drawn(rows, selection))
    assert all(len(set(targets)) == 1 for targets in found.values())
    assert sorted(targets[0] for targets in found.values()) == sorted(GENDERS)


def test_more_speakers_than_targets_share_evenly():
    rows = sources(speakers=25, utterances=1, role="trial", level="speaker", split="dev")
    assert sorted(Counter(drawn(rows)).values()) == [2] * 5 + [3] * 5


@pytest.mark.parametrize("selection", ["random", "same-gender"])
def test_enrolment_differs_from_the_trials_of_the_same_speaker(selection):
    trial = sources(speakers=10, role="trial", level="speaker", split="dev")
    enrolment = [replace(row, role="enrolment") for row in trial]
    found = drawn([*enrolment, *trial], selection)
    assert all(one != other for one, other in zip(found[: len(trial)], found[len(trial) :], strict=True))


def test_runs_of_one_split_agree_when_they_know_its_population():
    rows = sources(speakers=8, utterances=1, role="trial", level="speaker", split="dev")
    population = {"dev": {row.speaker: row.gender for row in rows}}
    whole = plan_targets(rows, TARGETS, "random", seed=3, population=population)
    parts = [
        each
        for part in (rows[:3], rows[3:])
        for each in plan_targets(part, TARGETS, "random", seed=3, population=population)
    ]
    assert parts == whole


@pytest.mark.parametrize(
    ("level", "selection"), [("speaker", "random"), ("utterance", "same-gender"), ("utterance", "one-per-source")]
)
def test_nobody_gets_their_own_voice(level, selection):
    rows = [
        SourceUtterance(f"{name}-{number}", name, gender, "trial", "dev", level)
        for name, gender in GENDERS.items()
        for number in range(30)
    ]
    chosen = drawn(rows, selection)
    assert not [row for row, target in zip(rows, chosen, strict=True) if row.speaker == target]


@pytest.mark.parametrize(
    ("rows", "targets", "selection", "words"),
    [
        (sources(), TARGETS, "nearest", 'selected by one of random, .*found "nearest"'),
        (sources(), [], "random", "at least one speaker; found none"),
        (sources(), [Target("t0", "f")], "same-gender", "needs a male target for the speaker s1; the pool has none"),
        ([replace(sources()[0], gender="")], TARGETS, "same-gender", "gender of every speaker; found none of s0"),
        ([replace(sources()[0], level="speaker")], TARGETS, "random", "Training data is anonymised at utterance level"),
        ([replace(sources()[0], speaker="t0")], TARGETS[:1], "random", "contains only t0"),
    ],
)
def test_what_cannot_be_planned_is_refused_in_words(rows, targets, selection, words):
    with pytest.raises(MethodError, match=words):
        plan_targets(rows, targets, selection, seed=1)


# The rule ------------------------------------------------------------------------------------------


def assignments(rows, chosen):
    return [
        Assignment(
            row.role,
            row.split,
            row.level,
            row.speaker,
            row.utterance if row.level == "utterance" else "",
            target_voice(target),
        )
        for row, target in zip(rows, chosen, strict=True)
    ]


def test_check_names_shared_targets_as_a_breach_that_was_chosen():
    rows = sources(speakers=11, utterances=1, role="trial", level="speaker", split="dev")
    report = check_target_voices(assignments(rows, drawn(rows)))
    assert [(problem.code, problem.severity.value) for problem in report.problems] == [("shared-target", "warning")]
    assert not report.voices_differ
    assert "Voices do not differ as required" in report.sentence()


def test_check_names_a_target_for_enrolment_and_trials():
    trial = sources(speakers=3, utterances=1, role="trial", level="speaker", split="dev")
    both = [*trial, *(replace(row, role="enrolment") for row in trial)]
    report = check_target_voices(assignments(both, ["t1", "t2", "t3", "t1", "t3", "t2"]))
    assert [problem.code for problem in report.problems] == ["target-for-both"]
    assert "s0" in report.problems[0].sentence()


# A method and its pool ----------------------------------------------------------------------------


def test_method_without_its_pool_anonymises_nothing():
    [method] = METHODS
    assert takes_targets(method)
    with pytest.raises(MethodError, match=r"voices of target speakers; found none\. Name a folder"):
        method.anonymize(make_vowel(16_000), 16_000, target_voice("a"))


@pytest.mark.parametrize(
    ("targets", "words"),
    [
        ([], "at least one speaker; found none"),
        ([Target("a", "f", (make_vowel,)), Target("a", "f", (make_vowel,))], "each speaker once; found a twice"),
        ([Target("a")], "a recording at least; found none of a"),
    ],
)
def test_pools_that_are_none_are_refused(targets, words):
    with pytest.raises(MethodError, match=words):
        TargetPool(targets)
