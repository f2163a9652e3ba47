"""A recipe that was stored before texts that no page should print were refused: everything of its edition goes on."""

from dataclasses import replace

import pytest
from django.test import Client
from django.urls import reverse

from evaluation.protocols.recipes import FOLDER, RecipeError
from portal.challenges.models import Edition
from portal.challenges.rules import read_recipe_text
from portal.challenges.services import InvalidEdition, change_edition, copy_edition
from portal.submissions.models import Submission
from tests.portal.api.calls import Api, Challenge
from tests.portal.archives import anonymised, hand_in
from tests.portal.factories import make_team
from tests.portal.test_nobody_else import kind_of, names_of, patterns

pytestmark = pytest.mark.django_db

SHIPPED = (FOLDER / "2022.toml").read_text()
CHANGES = {
    '"VoicePrivacy 2022"': f'"{300 * "x"}\\n\\u202e\\u0000"',
    '"Weighted average EER"': '"""Weighted\naverage EER"""',
    '"Average WER"': f'"Average WER {250 * "y"}"',
    '"equal rank,': r'"\u001b[31m equal rank,',
    '"B1.a"': r'"B1\u202ea"',
}


@pytest.fixture
def challenge():
    return Challenge()


def store_unprintable(edition):
    """As if it had been stored by an earlier version."""
    text = SHIPPED
    for old, new in CHANGES.items():
        assert old in text
        text = text.replace(old, new)
    Edition.objects.filter(pk=edition.pk).update(recipe_text=text)
    edition.refresh_from_db()
    edition.__dict__.pop("recipe", None)
    return text


def statuses(challenge):
    """How each page of the edition and of its systems answers, to its organizer and by the API."""
    named, _ = names_of(challenge)
    of_edition = {"edition": challenge.edition.name, "figure": "tradeoff-wer", "extension": "svg", "file": "SHA256SUMS"}
    of_edition |= {"data_set": "tones_trials_f", "corpus": challenge.edition.corpus.name}
    browser, program = Client(raise_request_exception=False), Api(challenge.organizer).client
    browser.force_login(challenge.organizer)
    found = {}
    for name, parts in patterns():
        namespace = name.rpartition(":")[0]
        if namespace not in {"editions", "leaderboard", "systems", "submissions", "teams", "api"}:
            continue
        known = of_edition | named.get(kind_of(name), {})
        if name != "api:nothing" and "secret" not in parts and set(parts) <= set(known):
            address = reverse(name, kwargs={part: known[part] for part in parts})
            found[name] = (program if namespace == "api" else browser).get(address).status_code
    return found


def test_every_page_answers_as_before(challenge):
    challenge.publish()
    before = statuses(challenge)
    store_unprintable(challenge.edition)
    assert len(before) > 80
    assert statuses(challenge) == before


def test_archive_is_read_and_ranked_as_before(challenge):
    text = store_unprintable(challenge.edition)
    submission = hand_in(make_team(challenge.edition), anonymised(challenge.edition.corpus))
    assert submission.state in {Submission.State.ACCEPTED, Submission.State.EVALUATING}
    assert challenge.edition.recipe.title == challenge.edition.title
    with pytest.raises(RecipeError, match="expected at most 200 characters, found 303"):
        read_recipe_text(text, file="mine.toml")


def test_edition_can_be_changed_and_copied_but_not_given_such_a_recipe(challenge):
    text = store_unprintable(challenge.edition)
    change_edition(edition=challenge.edition, by=challenge.organizer, title="New", submissions_per_team=9)
    copied = copy_edition(edition=challenge.edition, by=challenge.organizer, name="copied", title="Copied")
    assert copied.recipe == replace(challenge.edition.recipe, title="Copied")
    with pytest.raises(InvalidEdition) as caught:
        change_edition(edition=copied, by=challenge.organizer, recipe_text=f"{text}\n")
    assert set(caught.value.problems) == {"recipe_text"}
