"""Which engines evaluate the demo: the real ones, or what stands in for them; and the challenge made for a corpus."""

import pytest

from evaluation.protocols.recipe_making import Engines
from portal.accounts.models import User
from portal.demo import challenge
from portal.demo.terminal import TerminalScreen
from speech.encoders import long_term_spectrum
from tests.portal.factories import make_corpus, make_organizer

ATTACKER, RECOGNIZER = "wespeaker-resnet34", "moonshine-tiny"
SPECTRUM = long_term_spectrum.ENGINE.name


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def say(said: list[str]) -> TerminalScreen:
    return TerminalScreen(said.append, moves=False)


def lack(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """These engines miss their model, the others have theirs."""
    for registry in (challenge.encoders, challenge.recognizers):
        monkeypatch.setattr(registry, "explain_missing", lambda one: "It is missing." if one.name in names else "")


@pytest.mark.parametrize(
    ("missing", "with_models", "expected"),
    [
        ((), True, Engines((ATTACKER,), (RECOGNIZER,))),
        ((RECOGNIZER,), True, Engines((ATTACKER,))),
        ((ATTACKER, RECOGNIZER), True, Engines((SPECTRUM,))),
        ((), False, Engines((SPECTRUM,))),
    ],
)
def test_real_engines_evaluate_where_they_are_and_what_stands_in_for_them_is_told(
    monkeypatch, say, said, missing, with_models, expected
):
    lack(monkeypatch, *missing)
    assert challenge.choose_engines(with_models=with_models, say=say) == expected
    assert len(said) == (len(missing) if with_models else 1)


@pytest.mark.django_db
def test_challenge_of_a_corpus_is_evaluated_by_the_portal_and_made_once(say):
    organizer: User = make_organizer()
    corpus = make_corpus("tones", speakers=4)
    assert challenge.find_obstacle(corpus) == ""
    editions = [
        challenge.make_demo_edition(corpus=corpus, organizer=organizer, with_models=False, say=say) for _ in range(2)
    ]
    assert editions[0] == editions[1]
    assert editions[0].recipe.evaluation.by == "portal"
    assert editions[0].recipe.evaluation.attackers == (SPECTRUM,)
    assert {one.metric for one in editions[0].recipe.tracks["main"].averages} == {"eer", "pitch_correlation"}
