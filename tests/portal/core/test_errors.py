"""What went wrong is said on one kind of page; programs get a problem document or a sentence."""

import pytest
from django.core.exceptions import PermissionDenied, RequestDataTooBig
from django.http import HttpResponse
from django.test import Client, RequestFactory

from portal.api.problems import bad_request, server_error
from portal.core import errors
from portal.core.texts import render_lines
from tests.portal.factories import make_edition, make_organizer

pytestmark = pytest.mark.django_db
BROWSER = {"accept": "text/html,application/xhtml+xml"}


def request_of(path="/editions/"):
    return RequestFactory().get(path, headers=BROWSER)


@pytest.mark.parametrize(
    ("status", "answer"),
    [
        (403, lambda: errors.not_allowed(request_of(), PermissionDenied())),
        (404, lambda: errors.not_found(request_of(), Exception())),
        (413, lambda: bad_request(request_of(), RequestDataTooBig())),
        (500, lambda: server_error(request_of())),
        (503, lambda: errors.show_error_pages(lambda _: HttpResponse(status=503))(request_of())),
    ],
)
def test_each_status_has_a_page_that_says_what_happened_and_what_to_do(status, answer):
    response = answer()
    page = response.content.decode()
    assert response.status_code == status
    for sentence in render_lines("error.txt", {"status": status}):
        assert sentence in page
    assert '<a href="/">Go to the home page</a>' in page


def test_address_that_only_takes_a_form_leads_to_the_page_that_has_it():
    edition = make_edition(organizers=[organizer := make_organizer()])
    client = Client(headers=BROWSER)
    client.force_login(organizer)
    response = client.get(f"/editions/{edition.name}/leaderboard/unpublish/")
    assert (response.status_code, response["Allow"]) == (405, "POST")
    assert (
        f'<a href="/editions/{edition.name}/leaderboard/">Go to the page that it belongs to</a>'
        in response.content.decode()
    )


def test_what_is_busy_says_its_own_sentence_and_when_to_ask_again():
    def busy(_):
        return HttpResponse(
            "Two files are being downloaded.", status=503, content_type="text/plain", headers={"Retry-After": "9"}
        )

    page = errors.show_error_pages(busy)(request_of())
    assert page["Retry-After"] == "9"
    assert "Two files are being downloaded." in page.content.decode()
    picture = RequestFactory().get("/editions/", headers={"accept": "image/avif,image/*"})
    assert errors.show_error_pages(busy)(picture).content == b"Two files are being downloaded."


def test_programs_get_a_problem_document_and_no_page():
    response = Client(headers=BROWSER).get("/api/uploads/")
    assert (response.status_code, response["Content-Type"]) == (405, "application/problem+json")


def test_body_that_is_too_large_is_called_so(settings):
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 10
    client = Client(headers=BROWSER)
    response = client.post("/log-in/", "login=" + "a" * 100, content_type="application/x-www-form-urlencoded")
    assert response.status_code == 413
    assert "This is too large" in response.content.decode()
