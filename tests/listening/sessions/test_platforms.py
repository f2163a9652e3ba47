"""What platforms may do with our pages, where a finished assignment may be posted, and what Prolific's API says."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from django.test import Client

from common.errors import InputError, ProblemsError
from listening.app.models import Session
from listening.app.sessions import platforms
from listening.app.sessions.platforms import mturk_submit_address
from listening.app.studies.settings import parse_platform
from tests.listening.factories import make_study
from tests.listening.visits import PERSON, PLAIN, WORKER, Visit, link_of, prolific_id, text_of, to_trials

TOKEN = "a-secret-token"

CONFIRMING = {"codes": {"complete": "C0MPLETE"}, "confirm_by_api": True}


class Prolific(BaseHTTPRequestHandler):
    """A fake of Prolific's API on this machine; `submissions`: by id, status and body of the answer."""

    submissions: dict[str, tuple[int, bytes]] = {}
    asked: list[tuple[str, str]] = []

    def do_GET(self):
        submission = self.path.removeprefix("/api/v1/submissions/").rstrip("/")
        self.asked.append((self.path, self.headers["Authorization"]))
        status, body = self.submissions.get(submission, (404, b"{}"))
        if self.headers["Authorization"] != f"Token {TOKEN}":
            status, body = 401, b"{}"
        self.send_response(status)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def body_of(participant="pid-1", study="study-1", status="ACTIVE"):
    found = {"participant": prolific_id(participant), "study_id": prolific_id(study), "status": status}
    return json.dumps({"id": "x"} | found).encode()


@pytest.fixture
def fake(settings):
    Prolific.asked = []
    submissions = {
        "submission-1": (200, body_of()),
        "of-another": (200, body_of(participant="pid-2")),
        "of-another-study": (200, body_of(study="study-2")),
        "approved": (200, body_of(status="APPROVED")),
        "broken": (200, b"<html>"),
        "half": (200, b'{"id": "x"}'),
        "down": (503, b""),
    }
    Prolific.submissions = {prolific_id(name): answer for name, answer in submissions.items()}
    server = ThreadingHTTPServer(("127.0.0.1", 0), Prolific)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    settings.PROLIFIC_URL = f"http://127.0.0.1:{server.server_port}"
    settings.PROLIFIC_TOKEN = TOKEN
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize(
    ("submission", "says"),
    [
        ("submission-1", "confirmed"),
        ("of-another", "contradicted"),
        ("of-another-study", "contradicted"),
        ("approved", "contradicted"),
        ("unknown", "contradicted"),
        ("", "contradicted"),
        ("broken", "unproven"),
        ("half", "unproven"),
        ("down", "unproven"),
    ],
)
def test_prolific_is_asked_about_a_submission(fake, submission, says):
    asked = prolific_id(submission) if submission else ""
    person, study = PERSON["PROLIFIC_PID"], PERSON["STUDY_ID"]
    assert platforms.confirm_submission(platforms.configured_api(), asked, person, study) == says
    if submission:
        assert Prolific.asked == [(f"/api/v1/submissions/{asked}/", f"Token {TOKEN}")]


def test_prolific_that_does_not_answer_proves_nothing_and_its_token_stays_secret(fake, settings, caplog):
    settings.PROLIFIC_TOKEN = "wrong"
    assert platforms.confirm_submission(platforms.configured_api(), "submission-1", "pid-1", "study-1") == "unproven"
    slow = platforms.HttpApi("http://127.0.0.1:9", TOKEN, timeout_s=0.2)
    assert platforms.confirm_submission(slow, "submission-1", "pid-1", "study-1") == "unproven"
    settings.PROLIFIC_TOKEN = ""
    assert platforms.confirm_submission(platforms.configured_api(), "submission-1", "pid-1", "study-1") == "unproven"
    assert [record.message.rpartition(": ")[2] for record in caplog.records] == ["status 401", "ConnectError"]
    assert TOKEN not in caplog.text


@pytest.mark.django_db
def test_study_that_confirms_lets_in_who_prolific_knows_and_nobody_else(fake):
    study = make_study(platform="prolific", platform_settings=CONFIRMING, screening=PLAIN)
    refused = Client().get(link_of(study), PERSON | {"SESSION_ID": prolific_id("of-another")})
    assert (refused.status_code, Session.objects.count()) == (400, 0)
    assert "Prolific has no such submission" in text_of(refused)
    assert Visit(study, PERSON).session.platform_data["proof"] == "confirmed"
    unproven = Visit(study, PERSON | {"PROLIFIC_PID": prolific_id("pid-3"), "SESSION_ID": prolific_id("down")})
    assert unproven.session.platform_data["proof"] == "unproven"
    asked = len(Prolific.asked)
    Visit(study, PERSON)
    assert len(Prolific.asked) == asked  # what is proven is not asked again


@pytest.mark.django_db
def test_criterion_32_whom_prolific_confirms_under_another_submission_begins_anew(fake):
    study = make_study(platform="prolific", platform_settings=CONFIRMING, screening=PLAIN)
    first = to_trials(study, PERSON)
    Prolific.submissions[prolific_id("submission-2")] = (200, body_of())
    second = Visit(study, PERSON | {"SESSION_ID": prolific_id("submission-2")})
    assert (second.session.step, second.session.platform_data["proof"]) == ("consent", "confirmed")
    assert (first.session.state, second.session.participant) == ("expired", first.session.participant)


@pytest.mark.django_db
def test_who_came_while_prolific_was_silent_sees_the_end_after_the_submission_is_over(fake):
    study = make_study(platform="prolific", platform_settings=CONFIRMING, screening=PLAIN)
    Prolific.submissions[PERSON["SESSION_ID"]] = (503, b"")
    session = Visit(study, PERSON).session
    Session.objects.filter(pk=session.pk).update(state="finished", step="end", completion_code="C0MPLETE")
    Prolific.submissions[PERSON["SESSION_ID"]] = (200, body_of(status="AWAITING REVIEW"))
    assert "C0MPLETE" in Visit(study, PERSON).text()


@pytest.mark.parametrize(
    "address",
    [
        "",
        "https://example.org",
        "https://www.mturk.com.example.org",
        "https://www.mturk.com@example.org",
        "https://example.org#www.mturk.com",
        "https://www.mturk.com:8443",
        "https://www.mturk.com/elsewhere",
        "javascript:alert(1)",
        "https://[www.mturk.com",
        "https://www.mturk.com\n",
    ],
)
def test_assignment_is_posted_to_mechanical_turk_alone(address):
    with pytest.raises(InputError):
        mturk_submit_address(address)


@pytest.mark.parametrize("host", ["www.mturk.com", "workersandbox.mturk.com"])
def test_assignment_is_posted_to_the_external_submission(host):
    assert mturk_submit_address(f"https://{host}") == f"https://{host}/mturk/externalSubmit"
    assert mturk_submit_address(f"https://{host}/") == f"https://{host}/mturk/externalSubmit"


def policy_of(response):
    return dict(rule.strip().partition(" ")[::2] for rule in response["Content-Security-Policy"].split(";"))


@pytest.mark.django_db
def test_only_mturk_studies_may_be_framed_and_only_their_end_posts_elsewhere():
    study = make_study(platform="mturk", screening=PLAIN)
    visit = Visit(study, WORKER)
    preview = Client().get(link_of(study))
    for response in (preview, visit.joined, visit.page(), visit.ask("get", f"{visit.address}withdraw/")):
        policy = policy_of(response)
        assert "https://workersandbox.mturk.com" in policy["frame-ancestors"].split()
        assert (policy["form-action"], response.get("X-Frame-Options")) == ("'self'", None)
    Session.objects.update(state="finished", step="end", completion_code="DONE")
    end = policy_of(visit.page())
    assert end["form-action"].split()[:2] == ["'self'", "https://www.mturk.com"]
    assert "unsafe" not in str(end) + str(policy)


@pytest.mark.django_db
def test_pages_of_other_studies_are_never_framed():
    study = make_study(platform="prolific", platform_settings={"codes": {"complete": "C"}}, screening=PLAIN)
    visit = Visit(study, PERSON)
    for response in (Client().get(link_of(study)), visit.page()):
        assert policy_of(response)["frame-ancestors"] == "'none'"
        assert response["X-Frame-Options"] == "DENY"


@pytest.mark.django_db
def test_criterion_20_mturk_hands_in_from_the_browser_with_cookies_blocked():
    visit = to_trials(make_study(platform="mturk", screening=PLAIN), WORKER)
    assert "externalSubmit" not in visit.page().content.decode()
    from django.utils import timezone

    from listening.app.sessions.block_leases import end_session

    end_session(visit.session, "finished", timezone.now())
    page = visit.page().content.decode()
    code = visit.session.completion_code
    assert '<form method="post" action="https://workersandbox.mturk.com/mturk/externalSubmit">' in page
    assert f'<input type="hidden" name="assignmentId" value="{WORKER["assignmentId"]}">' in page
    assert f'<input type="hidden" name="code" value="{code}">' in page


@pytest.mark.parametrize(
    ("platform", "settings", "problems"),
    [
        ("prolific", {}, ["The code for complete: expected the completion code that Prolific shows for the study."]),
        (
            "mturk",
            {"parameters": {"person": "who"}},
            ["The parameters of the address: Mechanical Turk names them itself; leave them as they are."],
        ),
        (
            "prolific",
            {"codes": {"complete": "AB", "technical": "AB", "screened-out": "A B"}},
            [
                "The code for screened-out: expected letters, digits, - and _, at most 64, found 'A B'.",
                "The completion codes: expected a different code for each outcome.",
            ],
        ),
    ],
)
def test_settings_of_a_platform_are_read_strictly(platform, settings, problems):
    class Given:
        pass

    study = Given()
    study.platform, study.platform_settings = platform, settings
    with pytest.raises(ProblemsError) as raised:
        parse_platform(study)
    assert raised.value.problems == problems
