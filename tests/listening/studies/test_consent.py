"""What evaluators are told before they consent; no study opens without it."""

import pytest
from django.core.exceptions import ValidationError
from django.test import Client
from django.utils import timezone

from listening.app.studies import services
from listening.app.studies.pages import seconds_of_trial
from listening.app.studies.rules import CONSENT_FIELDS
from listening.app.studies.rules import seconds_of_trial as seconds
from listening.app.studies.selectors import expected_effort
from tests.listening.edition_factories import TOLD, make_draft, make_edition_with_speech
from tests.listening.factories import make_study
from tests.listening.rated import questions_of
from tests.listening.visits import PLAIN, Visit, link_of, text_of
from tests.portal.factories import make_organizer

pytestmark = pytest.mark.django_db


def make_told(**fields):
    return make_study(**{"screening": PLAIN, "pay_per_hour": 12, "currency": "EUR"} | TOLD | fields)


def test_criterion_30_consent_tells_everything_in_both_languages():
    visit = Visit(make_told())
    told = visit.text()
    minutes = expected_effort(visit.study)["minutes"]
    for words in (
        "Test University",
        "study@example.org",
        f"about {minutes} minutes",
        "for the whole test (12.00 EUR an hour)",
    ):
        assert words in told
    for words in (
        "What is stored",
        "your ID there",
        "24 months after",
        "Withdraw and delete my answers",
    ):
        assert words in told
    visit.ask("post", f"{visit.address}language/", {"language": "fr"})
    french = visit.text()
    for words in (
        "Test University",
        f"environ {minutes} minutes",
        "24 mois après",
        "Droit de retrait",
    ):
        assert words in french


def test_criterion_30_previewer_of_the_platform_reads_the_same():
    told = text_of(Client().get(link_of(make_told(platform="mturk"))))
    assert ("Test University" in told, "24 months after" in told) == (True, True)


def test_what_was_told_is_kept_with_the_session():
    visit = Visit(make_told())
    visit.consent()
    kept = visit.session.events.get(kind="consented").data
    assert {name: kept[name] for name in TOLD} == TOLD
    assert (kept["an_hour"], kept["currency"]) == ("12.00", "EUR")
    assert kept["minutes"] == expected_effort(visit.study)["minutes"]


@pytest.mark.parametrize("empty", CONSENT_FIELDS)
def test_criterion_30_study_cannot_open_while_one_is_empty(empty):
    study = make_study(state="prepared", launched_at=None, **TOLD | {empty: None if empty == "keep_months" else ""})
    with pytest.raises(ValidationError) as refused:
        services.launch_study(study=study, by=None, now=timezone.now())
    consent = [one for one in refused.value.messages if one.startswith("Consent ")]
    assert len(consent) == 1
    assert "on the page “Edit”" in consent[0]
    organizer = make_organizer()
    study.edition.organizers.add(organizer)
    client = Client()
    client.force_login(organizer)
    page = client.get(study.get_absolute_url()).content.decode()
    assert f'<a href="{study.get_absolute_url()}edit/#id_{empty}">{consent[0]}</a>' in page
    assert ("Everything is" in page, f'href="{study.get_absolute_url()}launch/"' in page) == (False, False)
    assert consent[0] in client.get(f"{study.get_absolute_url()}launch/").content.decode()


def test_what_evaluators_were_told_cannot_be_emptied_after_the_launch():
    study = make_told()
    with pytest.raises(ValidationError, match="cannot be empty any more"):
        services.change_study(study=study, by=None, contact="")
    assert services.change_study(study=study, by=None, contact="other@example.org").contact == "other@example.org"


def test_new_study_knows_the_contact_and_the_next_one_everything():
    edition = make_edition_with_speech()
    by = edition.organizers.first()
    first = make_draft(edition, responsible="", contact=by.email, keep_months=None)
    assert first.contact == by.email
    services.change_study(study=first, by=by, **TOLD)
    second = services.create_study(edition=edition, by=by, systems=[], data_sets=[], name="second", title="Second")
    assert {name: getattr(second, name) for name in TOLD} == TOLD


def test_duration_counts_every_hearing_and_every_answer():
    assert seconds(questions_of(), [3, 5]) == 3 + 5 + 3 + 3 * 4
    assert seconds(questions_of(["naturalness"]), [3]) == 3 + 4
    assert seconds(questions_of(["transcription"]), [3]) == 2 * 3 + 20
    assert seconds(questions_of(["linkability"]), [2] * 6) == 6 * (3 * 2 + 6)
    study = make_told()
    assert seconds_of_trial(study, 3.0) == seconds(study.asked, [3.0, 3.0])
