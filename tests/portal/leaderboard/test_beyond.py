"""Privacy beyond the EER on a leaderboard: columns on request, and attacks that are not reliable."""

from dataclasses import replace

import pytest
from django.utils import timezone

from evaluation.formats.results import AttackModel
from evaluation.objective_results.values import ObjectiveValues
from evaluation.protocols.ranking.entries import MeasuredValue
from evaluation.protocols.recipes import FOLDER, Gate
from portal.leaderboard.exports import leaderboard_as_dict
from portal.leaderboard.figures import list_drawings
from portal.leaderboard.selectors import build_leaderboard
from portal.leaderboard.tables import answer
from tests.portal.factories import make_edition, make_submission, make_team, make_team_system
from tests.portal.objective_runs import make_objective_run, number, ranked_numbers

pytestmark = pytest.mark.django_db


@pytest.fixture
def edition():
    return make_edition(published_at=timezone.now())


def add_system(edition, eer, **averages):
    """A system with this EER, and further averages of the test sets by metric or attack model."""
    submission = make_submission(make_team_system(make_team(edition)), state="evaluated", evaluated_at=timezone.now())
    further = [
        number(edition, "eer", "kaldi", "average_test", value, attack=name.replace("_", "-"))
        if name.replace("_", "-") in set(AttackModel)
        else number(edition, name, "", "average_test", value)
        for name, value in averages.items()
    ]
    make_objective_run(submission, [*ranked_numbers(edition, eer=eer, wer=8.0), *further])
    return submission.system


def test_columns_beyond_the_eer_are_switched_on_and_sorted_by(client, edition):
    add_system(edition, 20.0, rank_disclosure=1.25, accepted_at_1_percent=37.5)
    address = f"/editions/{edition.name}/leaderboard/"
    plain, beyond = (
        client.get(address + query).content.decode() for query in ("", "?privacy=all&sort=rank_disclosure")
    )
    table, meanings = plain.split("What each number means")
    assert "Rank disclosure" not in table
    assert ">Rank disclosure" in meanings
    assert "Beyond the EER" in plain
    assert "Rank disclosure" in beyond
    assert "37.5" in beyond
    [row] = [one for one in leaderboard_as_dict(build_leaderboard(edition))["rankings"][0]["rows"] if one["rank"]]
    assert row["averages"]["rank_disclosure"]["value"] == 1.25


def test_leaderboard_by_an_attack_without_training_says_that_the_true_eer_may_be_lower(edition):
    add_system(edition, 30.0)
    leaderboard = build_leaderboard(edition)
    ranking = leaderboard.table.tables[0]
    assert not any("may be lower" in sentence for sentence in answer(leaderboard, ranking))
    weaker = replace(leaderboard, policy=replace(leaderboard.policy, attack_model="lazy-informed"))
    assert answer(weaker, ranking)[-1].startswith(
        "The EERs are those of lazy-informed attacks: the attacker anonymises its enrolment speech with the same "
        "system. No attacker was trained"
    )


def test_eer_of_an_attack_that_is_not_reliable_says_so_on_leaderboard_system_and_in_api(client, edition):
    weak = add_system(edition, 74.0, lazy_informed=12.0, better_sign_eer=26.0)
    add_system(edition, 30.0, lazy_informed=40.0)
    page = client.get(f"/editions/{edition.name}/leaderboard/").content.decode().replace("\xa0", " ")
    assert page.count("not reliable</") == 1
    assert f"The EER of {weak} is 74.0 % (73.0 to 75.0). An EER above 50 % usually means a broken attacker" in page
    assert "It is weaker than an attacker that was not trained on such speech: 74.0 % against 12.0 %." in page
    rows = leaderboard_as_dict(build_leaderboard(edition))["rankings"][0]["rows"]
    assert {row["system"]: bool(row["weak_attack"]) for row in rows if row["rank"]}[weak.name] is True
    text = client.get(f"/systems/{weak.name}/").content.decode().replace("\xa0", " ")
    assert "That attack is not reliable" in text
    assert "With the sign of the scores reversed wherever that helps the attacker, it is 26.0 %." in text


def test_single_set_with_an_unreliable_attack_is_named_beside_an_average_that_hides_it(client, edition):
    system = make_team_system(make_team(edition))
    submission = make_submission(system, state="evaluated", evaluated_at=timezone.now())
    further = [
        number(edition, "eer", "kaldi", data_set, value, attack="lazy-informed")
        for data_set, value in (("libri_test_trials_f", 12.0), ("libri_test_trials_m", 40.0), ("average_test", 33.0))
    ]
    inverted = number(edition, "inverted_targets", "", "libri_test_trials_m", 71.0)
    make_objective_run(submission, [*ranked_numbers(edition, eer=30.0, wer=8.0), *further, inverted])
    [row] = [one for one in leaderboard_as_dict(build_leaderboard(edition))["rankings"][0]["rows"] if one["rank"]]
    weak = [
        "libri_test_trials_f: It is weaker than an attacker that was not trained on such speech: "
        "30.0 % against 12.0 %.",
        "libri_test_trials_m: It is misled: 71 % of targets lie below the median nontarget, above 60 %.",
    ]
    assert sorted(row["weak_attack"]) == weak
    assert row["doubts"] == ["not reliable"]
    for address in (f"/editions/{edition.name}/leaderboard/", f"/systems/{system.name}/"):
        page = client.get(address).content.decode().replace("\xa0", " ")
        assert "not reliable" in page
        assert [one for one in weak if one not in page] == []


def test_track_of_several_languages_has_columns_of_each_on_request(client):
    edition = make_edition(protocol="2026", track="track2", published_at=timezone.now())
    submission = make_submission(make_team_system(make_team(edition)))
    make_objective_run(
        submission,
        [
            number(edition, "eer", "speechbrain", "average_test", 20.0),
            number(edition, "wer", "", "average_test", 10.0),
            number(edition, "eer", "speechbrain", "fr_test_trials_mixed", 31.5),
            replace(number(edition, "wer", "", "fr_test_asr", 12.5), low=11.0, high=14.0),
            number(edition, "wer", "", "ja_test_asr", 44.0),
            number(edition, "wer", "", "fr_dev_asr", 99.0),
        ],
    )
    leaderboard = build_leaderboard(edition)
    assert [one.key for one in leaderboard.by_language] == ["eer-fr", "wer-fr", "wer-ja"]
    entry = next(one for one in leaderboard.entries if one.label != "Original")
    assert entry.averages["wer-fr"] == MeasuredValue(12.5, 11.0, 14.0)
    address = f"/editions/{edition.name}/leaderboard/"
    plain, each = (client.get(address + query).content.decode() for query in ("", "?languages=all"))
    assert "WER, Japanese" not in plain
    for heading in ("EER, French", "WER, French", "WER, Japanese"):
        assert heading in each


def edition_of_lazy_attacks():
    """An edition of 2022 that ranks by the lazy-informed attack and averages min C_llr and the ROCCH-EER, too."""
    text = (FOLDER / "2022.toml").read_text(encoding="utf-8")
    weights = "weights.test = { libri_test_trials_f = 0.5, libri_test_trials_m = 0.5 }"
    further = "".join(
        f'[[tracks.main.averages]]\nmetric = "{metric}"\nestimator = "{estimator}"\nlabel = "x"\n{weights}\n\n'
        for metric, estimator in (("min_cllr", "pav"), ("eer", "rocch"))
    )
    text = text.replace("[tracks.main.ranking]", f"{further}[tracks.main.ranking]", 1)
    text = text.replace('attack_model = "semi-informed"', 'attack_model = "lazy-informed"', 1)
    return make_edition(protocol="", recipe_text=text, published_at=timezone.now())


def test_averages_that_do_not_rank_are_of_the_attack_that_ranks():
    edition = edition_of_lazy_attacks()
    submission = make_submission(make_team_system(make_team(edition)), state="evaluated", evaluated_at=timezone.now())
    numbers = [
        number(edition, "min_cllr", "pav", "average_test", value, attack=attack)
        for attack, value in (("semi-informed", 0.77), ("lazy-informed", 0.5))
    ]
    make_objective_run(submission, numbers)
    entry = build_leaderboard(edition).entries[-1]
    assert entry.averages["min_cllr"].value == 0.5


def test_gate_on_speaker_verification_holds_the_attack_that_ranks():
    edition = edition_of_lazy_attacks()
    gate = Gate("min_cllr", 0.6, True, (("libri_test_trials_f",),), "pav")
    numbers = [
        number(edition, "min_cllr", "pav", "libri_test_trials_f", value, attack=attack)
        for attack, value in (("semi-informed", 0.77), ("lazy-informed", 0.5))
    ]
    values = ObjectiveValues(1, 1, None, {one.identity: one for one in numbers})
    assert values.gate_values(gate, AttackModel.LAZY_INFORMED) == {"libri_test_trials_f": 0.5}


def test_second_average_of_a_ranking_metric_is_shown_under_a_name_of_its_own():
    edition = edition_of_lazy_attacks()
    submission = make_submission(make_team_system(make_team(edition)), state="evaluated", evaluated_at=timezone.now())
    numbers = [
        number(edition, "eer", estimator, "average_test", value, attack="lazy-informed")
        for estimator, value in (("kaldi", 20.0), ("rocch", 19.5))
    ]
    make_objective_run(submission, numbers)
    leaderboard = build_leaderboard(edition)
    found = leaderboard_as_dict(leaderboard)
    [system] = [one for one in found["unrankable"] if one["kind"] == "system"]
    assert {key: one["value"] for key, one in system["averages"].items()} == {"eer": 20.0, "eer-rocch": 19.5}
    assert [one.heading for one in leaderboard.averages if one.key == "eer-rocch"] == ["EER (ROCCH), %"]
    assert "eer-rocch" in list_drawings(leaderboard)
