"""The table ``[evaluation]`` of a recipe: what it gives, and the sentence of each problem."""

from __future__ import annotations

import pytest

from common.errors import ProblemsError
from evaluation.protocols.evaluation_table import Evaluation, KnownEngines
from evaluation.protocols.recipes import load_recipe, parse_recipe, shipped_editions

RECIPE = """
edition = "mine"
title = "Mine"
anonymised_suffix = "_anon"
baselines = []
attack_models = ["unprotected", "ignorant", "lazy-informed", "semi-informed"]
uncertain = []

[data_sets]
enrolled = {{ role = "enrolment", split = "test", gender = "all" }}
tried = {{ role = "trial", split = "test", gender = "mixed", enrolment = "enrolled" }}
trained = {{ role = "{role}", split = "train", gender = "all" }}

[evaluation]
{evaluation}

[[metrics]]
key = "eer"
estimator = "kaldi"
primary = true

[tracks.main]
languages = ["en"]
[[tracks.main.averages]]
metric = "{metric}"
estimator = "{estimator}"
label = "Average"
weights.test = {{ tried = 1.0 }}

[tracks.main.ranking]
split = "test"
attack_model = "{attack}"
privacy = {{ metric = "eer", estimator = "kaldi" }}
minimum_eers = []
policy = "cumulative"
inclusive = true
note_within = 0.05
utilities = [{{ metric = "eer", estimator = "kaldi", better = "higher" }}]
ties = ""
several_systems = ""
late = ""
"""
ENGINES = KnownEngines(("wespeaker-resnet34", "ge2e"), ("whisper-base",), ("small",))
USUAL = {"metric": "eer", "estimator": "kaldi", "attack": "lazy-informed", "role": "training"}


def read(evaluation: str, **changes: str):
    text = RECIPE.format(evaluation=evaluation, **USUAL | changes)
    return parse_recipe(text, file="mine.toml", engines=ENGINES)


def test_teams_evaluate_in_every_shipped_edition():
    for edition in shipped_editions():
        evaluation = load_recipe(edition).evaluation
        assert (evaluation, evaluation.by_teams, evaluation.by_portal) == (Evaluation(), True, False)
        assert evaluation.attacks == ()


def test_the_portal_evaluates_by_the_engines_of_the_recipe():
    evaluation = read('by = "portal"\nattackers = ["ge2e"]\nrecognizer = "whisper-base"\ntraining = "small"').evaluation
    assert evaluation == Evaluation("portal", ("ge2e",), "whisper-base", "small")
    assert (evaluation.by_teams, evaluation.by_portal) == (False, True)
    assert evaluation.attacks == ("unprotected", "ignorant", "lazy-informed", "semi-informed")


def test_both_evaluate():
    evaluation = read('by = "both"\nattackers = ["ge2e"]').evaluation
    assert (evaluation.by_teams, evaluation.by_portal) == (True, True)
    assert evaluation.attacks == ("unprotected", "ignorant", "lazy-informed")


PORTAL = 'by = "portal"\nattackers = ["ge2e"]'


@pytest.mark.parametrize(
    ("evaluation", "changes", "sentence"),
    [
        ('by = "nobody"', {}, "evaluation.by: expected one of teams, portal, both, found “nobody”."),
        ('recognizer = "whisper-base"', {}, "evaluation: expected by = “portal” or “both” where engines are named"),
        ('by = "portal"', {}, "evaluation.attackers: expected at least one attacker, found none."),
        (f'{PORTAL}\ntraining = "small"', {"role": "joint"}, "expected a data set of the role training"),
        ('by = "both"\nattackers = ["ge2e", "ge2e"]', {}, "expected each attacker once, found ge2e, ge2e."),
        (PORTAL, {"attack": "semi-informed"}, "semi-informed needs evaluation.training"),
        (PORTAL, {"metric": "wer", "estimator": ""}, "expected evaluation.recognizer, which word error rates need"),
        (
            f'{PORTAL}\nrecognizer = "whisper-base"',
            {"metric": "wer", "estimator": "tglarge"},
            "expected no estimator of word error rates, found “tglarge”.",
        ),
        (PORTAL, {"metric": "uar", "estimator": ""}, "expected a metric that the portal computes"),
    ],
)
def test_problem_of_the_table_is_named(evaluation, changes, sentence):
    with pytest.raises(ProblemsError) as caught:
        read(evaluation, **changes)
    assert sentence in str(caught.value)


def test_any_name_is_taken_where_the_engines_are_not_known():
    text = RECIPE.format(evaluation='by = "portal"\nattackers = ["of another portal"]', **USUAL)
    assert parse_recipe(text, file="mine.toml").evaluation.attackers == ("of another portal",)
