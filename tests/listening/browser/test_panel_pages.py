"""What listeners said, in a browser: on the leaderboard, on the page of a system and on that of the edition."""

import pytest
from django.utils import timezone
from playwright.sync_api import expect

from portal.submissions.models import Submission
from tests.browsing import too_long
from tests.listening.results.published import make_heard_study
from tests.portal.factories import make_organizer
from tests.portal.leaderboards import make_leaderboard, put_on_leaderboard

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def edition(once):
    return once(heard_edition)


@pytest.fixture
def organizer(edition):
    return edition.organizers.get()


def heard_edition():
    """A board with a study of each form, one of which is not published yet, and a system that was heard earlier."""
    edition = make_leaderboard(organizers=[make_organizer()], published_at=timezone.now(), is_listed=True, name="vpc")
    submissions = list(Submission.objects.filter(system__edition=edition).select_related("system"))
    make_heard_study(edition, submissions, title="Ratings of simulated listeners", is_simulated=True)
    make_heard_study(edition, submissions, title="A voice map", form="linkability")
    make_heard_study(edition, submissions, title="Words written down", form="transcription", is_published=False)
    put_on_leaderboard(edition.systems.get(label="T01-p1"), eer=23.0, wer=8.0)
    return edition


def test_panels_are_readable_by_everybody_on_every_screen(edition, new_page, check_page, organizer):
    page = new_page()
    addresses = {
        "leaderboard": "/editions/vpc/leaderboard/",
        "system": f"/systems/{edition.systems.get(label='T01-p1').name}/",
        "edition": "/editions/vpc/",
    }
    for name, address in addresses.items():
        page.goto(address)
        expect(page.locator("#listeners")).to_be_visible()
        check_page(page, f"listeners-{name}")
        assert name != "system" or too_long(page) == {}
    page = new_page(organizer)  # with the preview of what is not published
    page.goto(addresses["leaderboard"])
    expect(page.locator("#listeners")).to_be_visible()
    check_page(page, "listeners-leaderboard-organizer", with_axe=False)
