"""Recipes made from the data sets of a corpus: what is proposed, and that the text gives the same recipe again."""

from dataclasses import replace

import pytest

from evaluation.protocols.evaluation_table import Evaluation
from evaluation.protocols.recipe_making import (
    Engines,
    SpeakerShare,
    SpeechSet,
    TrialCounts,
    explain_few_speakers,
    explain_little_training,
    explain_no_gain,
    explain_obstacles,
    find_obstacle,
    full_product,
    make_recipe,
    possible_utilities,
    propose_choices,
    write_recipe,
)
from evaluation.protocols.recipes import load_recipe, parse_recipe, shipped_editions

ENGINES = Engines(("wespeaker-resnet34", "ge2e"), ("whisper-base",), ("small",))
WOMEN = tuple(SpeakerShare(f"w{number}", "f", 4) for number in range(3))
MEN = tuple(SpeakerShare(f"m{number}", "m", 4) for number in range(2))


def trial_set(name, speakers, *, enrolment, split="", trials=None):
    return SpeechSet(name, "trial", split, speakers, sum(one.utterances for one in speakers), enrolment, trials)


def part(name, split="", *, speakers=WOMEN + MEN, trials=True):
    """Enrolment and trial sets of both genders."""
    enrolled = SpeechSet(f"{name}_enrolls", "enrolment", split, speakers)
    sets = [enrolled]
    for gender in dict.fromkeys(one.gender for one in speakers):
        of_gender = tuple(one for one in speakers if one.gender == gender)
        number = len(of_gender)
        given = {
            "split": split,
            "trials": TrialCounts(number, 4 * number, 4 * number * (number - 1)) if trials else None,
        }
        sets.append(trial_set(f"{name}_trials_{gender}", of_gender, enrolment=enrolled.name, **given))
    return sets


TRAINING = SpeechSet("libri_train", "training", "", tuple(SpeakerShare(f"t{one}", "f", 8) for one in range(10)))
DEMO = [
    SpeechSet("demo_enrolls", "enrolment", "test", WOMEN + MEN),
    trial_set("demo_trials_f", WOMEN, enrolment="demo_enrolls", split="test", trials=TrialCounts(3, 12, 24)),
    trial_set("demo_trials_m", MEN, enrolment="demo_enrolls", split="test", trials=TrialCounts(2, 8, 8)),
]
CORPORA = {
    "demo": DEMO,
    "no split": part("tones"),
    "women only": part("tones", speakers=WOMEN),
    "no trial lists": part("tones", trials=False),
    "training": [*part("libri"), TRAINING],
    "dev and test": [*part("libri_dev", "dev"), *part("libri_test", "test")],
    "one subset in two splits": [*part("a", "dev"), *part("b", "test"), *part("b2", "test")],
    "mixed": [
        SpeechSet("all", "enrolment", "test", WOMEN + MEN),
        trial_set("everybody", WOMEN + MEN, enrolment="all", split="test", trials=TrialCounts(5, 20, 80)),
    ],
}


def made(sets, **changes):
    choices = propose_choices(sets, ENGINES, edition="mine", title="My “challenge” \\ 1")
    return make_recipe(sets, replace(choices, **changes))


@pytest.mark.parametrize("corpus", CORPORA)
def test_recipe_of_a_corpus_is_read_back_from_its_text(corpus):
    recipe = made(CORPORA[corpus])
    text = write_recipe(recipe, comment="First line\n\nthird")
    assert text.startswith("# First line\n#\n# third\n\nedition = ")
    assert parse_recipe(text, file="mine.toml") == recipe


@pytest.mark.parametrize("edition", shipped_editions())
def test_text_of_a_shipped_recipe_gives_the_same_recipe(edition):
    assert parse_recipe(write_recipe(load_recipe(edition)), file="x.toml") == load_recipe(edition)


def test_everything_that_follows_from_the_corpus_is_in_the_recipe():
    recipe = made(CORPORA["dev and test"])
    one = recipe.data_sets["libri_test_trials_f"]
    assert (one.role, one.split, one.gender, one.enrolment) == ("trial", "test", "f", "libri_test_enrolls")
    assert (one.utterances, one.speakers, one.models, one.targets, one.nontargets) == (12, 3, 3, 12, 24)
    words = recipe.data_sets["libri_dev_asr"]
    assert (words.role, words.split, words.utterances) == ("recognition", "dev", 20)
    assert recipe.list_parts(words, {one.name for one in recipe.sets("trial")}) == (
        "libri_dev_trials_f",
        "libri_dev_trials_m",
    )
    assert dict(recipe.track.average("eer").weights["test"]) == {"libri_test_trials_f": 0.5, "libri_test_trials_m": 0.5}
    assert dict(recipe.track.average("wer").weights["dev"]) == {"libri_dev_asr": 1}
    ranking = recipe.track.ranking
    assert (ranking.split, ranking.attack_model, ranking.minimum_eers) == ("test", "lazy-informed", (10, 20, 30, 40))
    assert [(one.metric, one.better) for one in ranking.utilities] == [("wer", "lower")]
    assert ranking.gates[0].groups == (
        ("libri_dev_trials_f", "libri_dev_trials_m"),
        ("libri_test_trials_f", "libri_test_trials_m"),
    )
    assert recipe.evaluation == Evaluation("portal", ("wespeaker-resnet34",), "whisper-base")


def test_training_set_makes_the_attack_semi_informed():
    recipe = made(CORPORA["training"])
    assert recipe.evaluation.training == "small"
    assert recipe.data_sets["libri_train"].role == "training"
    assert (recipe.attack_models[-1], recipe.track.ranking.attack_model) == ("semi-informed", "semi-informed")
    without = made(CORPORA["training"], evaluation=Evaluation("portal", ("ge2e",)))
    assert not without.sets("training")
    assert without.track.ranking.attack_model == "lazy-informed"


@pytest.mark.parametrize(("speakers", "utterances", "found"), [(9, 8, "72 and 9"), (10, 6, "60 and 10")])
def test_too_little_training_speech_proposes_no_trained_attacker(speakers, utterances, found):
    training = SpeechSet(
        "train", "training", "", tuple(SpeakerShare(f"t{one}", "f", utterances) for one in range(speakers))
    )
    sets = [*part("libri"), training]
    assert explain_little_training(sets).endswith(f"found {found}.")
    assert made(sets).evaluation.training == ""
    assert explain_little_training(CORPORA["training"]) == ""


def test_few_speakers_of_the_ranked_split_are_told():
    def trial(split, speakers):
        people = tuple(SpeakerShare(f"t{one}", "f", 2) for one in range(speakers))
        return SpeechSet(f"libri_{split}_trials_f", "trial", split, people)

    assert explain_few_speakers([trial("dev", 40), trial("test", 19)]).startswith(
        "The EERs that rank are of 19 speakers"
    )
    assert explain_few_speakers([trial("dev", 4), trial("test", 20)]) == explain_few_speakers([]) == ""


def test_full_product_counts_pairs_of_one_gender():
    enrolment = SpeechSet("e", "enrolment", "", (*WOMEN[:2], *MEN))
    assert full_product(SpeechSet("t", "trial", "", WOMEN), enrolment) == TrialCounts(2, 8, 16)
    recipe = made(CORPORA["no trial lists"])
    assert recipe.data_sets["tones_trials_f"].nontargets == 24


def test_weights_are_shares_of_their_split_and_none_leaves_a_set_out():
    weights = {"libri_test_trials_f": 3.0, "libri_test_trials_m": 1.0, "libri_dev_trials_m": 0.0}
    track = made(CORPORA["dev and test"], weights=weights).track
    assert dict(track.average("eer").weights["test"]) == {"libri_test_trials_f": 0.75, "libri_test_trials_m": 0.25}
    assert dict(track.average("eer").weights["dev"]) == {"libri_dev_trials_f": 1}


def test_what_a_corpus_does_not_allow_is_not_proposed():
    untold = [replace(one, transcribed=0) for one in DEMO]
    choices = propose_choices(untold, ENGINES, edition="mine", title="Mine")
    assert (choices.evaluation.recognizer, choices.ranked_by) == ("", ("pitch_correlation",))
    assert not make_recipe(untold, choices).sets("recognition")
    single = [SpeechSet("t", "trial", "", (SpeakerShare("a", "f", 1), SpeakerShare("b", "f", 1)), 2)]
    assert possible_utilities(single) == ("wer", "pitch_correlation")
    assert propose_choices(DEMO, Engines(), edition="mine", title="Mine").evaluation == Evaluation("teams")
    assert possible_utilities(DEMO[1:2])[-1] == "gain_of_voice_distinctiveness"
    assert "gain_of_voice_distinctiveness" not in possible_utilities(DEMO[1:])
    assert explain_no_gain(DEMO[1:]).endswith("in each trial set: demo_trials_m has 2.")


def test_sets_that_cannot_be_attacked_are_left_out_and_say_why():
    alone = trial_set("alone_trials", WOMEN[:1], enrolment="tones_enrolls")
    lost = trial_set("lost_trials", WOMEN, enrolment="")
    sets = [*part("tones"), alone, lost]
    assert find_obstacle(alone, sets) == ""  # against the other women who are enrolled
    assert explain_obstacles(sets) == ["lost_trials has no enrolment set; import one with it."]
    enrolled = SpeechSet("e", "enrolment", "", WOMEN[:1])
    both = [enrolled, replace(alone, enrolment="e")]
    needs = "needs target and nontarget trials; it has 4 and 0."
    assert explain_obstacles(both) == [f"alone_trials {needs}"]
    several = [both[0], *(replace(both[1], name=name) for name in "abc")]
    assert explain_obstacles(several) == [f"Each of a, b and c {needs}"]
    assert "lost_trials" not in made(sets).data_sets
    with pytest.raises(ValueError, match="at least one trial set"):
        made([*both, lost])
