"""The page that leads through the demo."""

import pytest
from django.urls import reverse

from portal.demo.tour import DOMAIN
from tests.portal.factories import make_edition, make_organizer

pytestmark = pytest.mark.django_db


def test_tour_leads_a_visitor_of_the_demo_and_there_is_none_elsewhere(client):
    make_edition()
    assert client.get(reverse("tour")).status_code == 302  # as where a page is for others
    assert reverse("tour") not in client.get("/").content.decode()
    edition = make_edition(organizers=[make_organizer(email=f"organizer@{DOMAIN}")])
    assert reverse("tour") in client.get("/").content.decode()
    page = client.get(reverse("tour")).content.decode()
    assert "Still being computed: 0 of 0 jobs are done" in page
    for address in (edition.get_absolute_url(), reverse("editions:data", args=[edition.name]), reverse("operations")):
        assert f'href="{address}"' in page
