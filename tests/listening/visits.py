"""An evaluator without cookies or scripts, who opens a study's link and fills in its pages."""

import html
import re
from hashlib import sha256

from django.test import Client
from django.urls import reverse

from listening.app.models import Session

PLAIN = {"sound": False, "headphones": "none"}


def prolific_id(name):
    """An id as Prolific makes them, the same for the same name."""
    return sha256(name.encode()).hexdigest()[:24]


def mturk_id(name, first="3", length=30):
    """An id as Mechanical Turk makes them, the same for the same name."""
    return (first + sha256(name.encode()).hexdigest().upper())[:length]


PERSON = {
    "PROLIFIC_PID": prolific_id("pid-1"),
    "STUDY_ID": prolific_id("study-1"),
    "SESSION_ID": prolific_id("submission-1"),
}
WORKER = {
    "workerId": mturk_id("W1", first="A", length=14),
    "hitId": mturk_id("H1"),
    "assignmentId": mturk_id("A1"),
    "turkSubmitTo": "https://workersandbox.mturk.com",
}


def link_of(study):
    return reverse("listen:join", args=[study.link_key])


class Visit:
    """One browser that refuses cookies. `session` is the row as it is now."""

    def __init__(self, study, query=None, **headers):
        self.study = study
        self.client = Client(headers=headers)
        self.joined = self.ask("post" if study.platform == "own" else "get", link_of(study), query)
        self.address = self.joined.headers.get("Location", "")

    def ask(self, method, address, data=None):
        if method == "post" and address == link_of(self.study) and data:
            found = self.client.post(address, query_params=data)
        else:
            found = getattr(self.client, method)(address, data)
        self.client.cookies.clear()
        return found

    @property
    def token(self):
        return self.address.strip("/").rpartition("/")[2]

    @property
    def session(self):
        return Session.objects.get(token=self.token)

    def page(self):
        return self.ask("get", self.address)

    def text(self):
        return text_of(self.page())

    def post(self, step, **data):
        return self.ask("post", reverse("listen:step", args=[self.token, step]), data)

    def consent(self):
        return self.post("consent", agrees="on")

    def sounds(self):
        return re.findall(r'data-sound="([^"]+)"', self.page().content.decode())

    def answer_test(self, step, right=True):
        """Answer the open attempt of the sound test or the headphone check, all right or all wrong."""
        self.page()
        row = self.session.screening_results.get(is_passed=None)
        row.secret["sent"] = list(range(len(self.sounds())))  # as if each had been fetched
        row.save()
        answers = row.secret["right"] if right else [2 if one == 1 else 1 for one in row.secret["right"]]
        given = {f"answer{place}": answer for place, answer in enumerate(answers, 1)}
        return self.post(step, attempt=row.attempt, kind=row.kind, **given)


def text_of(response):
    """The words of a page, without its marks."""
    body = response.content.decode().partition("<body>")[2] or response.content.decode()
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", body)))


def to_trials(study, query=None):
    """A visit that stands before its first trial; the study asks for nothing else."""
    visit = Visit(study, query)
    visit.consent()
    visit.post("role-play")
    return visit
