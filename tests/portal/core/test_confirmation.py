"""The question that a form asks on a page where no script asks it."""

from urllib.parse import urlencode

import pytest
from django.urls import reverse

from portal.core.confirmation import FORM
from tests.pages import read_page
from tests.portal.factories import make_operator, make_user

pytestmark = pytest.mark.django_db


def test_question_comes_before_the_action_and_keeps_what_was_sent(client):
    person = make_user()
    client.force_login(make_operator())
    address = reverse("people:deactivate", args=[person.pk])

    def send(sent, **headers):
        response = client.post(address, urlencode(sent), FORM, **headers)
        person.refresh_from_db()
        return response

    asked = [("ask", "Deactivate Mia <b>?"), ("ask", "Deactivate"), ("kept", "this")]
    page = read_page(send(asked, headers={"referer": "http://testserver/people/"}))
    assert "Deactivate Mia &lt;b&gt;?" in page
    assert '<input type="hidden" name="kept" value="this">' in page
    assert 'name="ask"' not in page
    assert 'href="http://testserver/people/">Go back' in page
    assert 'href="/">Go back' in read_page(send(asked, headers={"referer": "http://other.example/"}))
    assert person.is_active
    send([("kept", "this")])
    assert not person.is_active
