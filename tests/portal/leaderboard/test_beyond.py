"""Privacy beyond the EER on a leaderboard: columns on request, and attacks that are not reliable."""

from dataclasses import replace

import pytest
from django.utils import timezone

from common.tables import Cell
from evaluation.figures.tradeoff import SystemPoint
from evaluation.formats.results import AttackModel
from evaluation.protocols.ranking.entries import MeasuredValue
from evaluation.protocols.recipes import FOLDER
from portal.leaderboard.exports import leaderboard_as_dict
from portal.leaderboard.pages import above_chance_note
from portal.leaderboard.selectors import build_leaderboard
from portal.systems.objective_results.tables import mark_turned
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


def test_eer_of_an_attack_that_is_not_reliable_says_so_on_leaderboard_system_and_in_api(client, edition):
    weak = add_system(edition, 74.0, lazy_informed=12.0, better_sign_eer=26.0)
    add_system(edition, 30.0, lazy_informed=40.0)
    page = client.get(f"/editions/{edition.name}/leaderboard/").content.decode().replace("\xa0", " ")
    assert page.count("not reliable</") == 1
    assert f"The EER of {weak} is 74.0 % (73.0 to 75.0). An EER above 50 % usually means a broken attacker" in page
    assert "26.0 % with the better sign of each set" in page
    assert "It is weaker than an attacker that was not trained on such speech: 74.0 % against 12.0 %." in page
    rows = leaderboard_as_dict(build_leaderboard(edition))["rankings"][0]["rows"]
    assert {row["system"]: bool(row["weak_attack"]) for row in rows if row["rank"]}[weak.name] is True
    text = client.get(f"/systems/{weak.name}/").content.decode().replace("\xa0", " ")
    assert "That attack is not reliable" in text
    assert "With the sign of the scores reversed wherever that helps the attacker, it is 26.0 %." in text


def test_reversed_sign_stands_beside_an_eer_that_it_lowers_and_is_no_name_for_a_mean(edition):
    of_set, of_average = "libri_test_trials_f", "average_test"
    notes = [
        mark_turned(
            Cell("EER"),
            number(edition, "eer", "kaldi", data_set, eer),
            number(edition, "better_sign_eer", "", data_set, turned),
        ).note
        for data_set, eer, turned in ((of_set, 51.4, 51.4), (of_set, 74.0, 26.0), (of_average, 57.0, 42.9))
    ]
    assert notes == ["", "26.0 with reversed sign", "42.9 with the better sign of each set"]


def test_caption_of_eers_blames_the_attacker_only_where_an_interval_leaves_out_50():
    held, above = (SystemPoint("T01", 53.0, 8.0, eer_interval=interval) for interval in ((48.0, 58.0), (51.0, 55.0)))
    assert above_chance_note([held]) == ""
    assert "likely at fault" in above_chance_note([held, above])


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
    assert [one.key for one in leaderboard.columns if one.switch == "languages"] == ["eer-fr", "wer-fr", "wer-ja"]
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
