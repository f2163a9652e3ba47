"""Every address × role, in one table. An address that is missing from the table fails the test."""

from __future__ import annotations

import re

import pytest
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, reverse

from evaluation.services import start_evaluation
from portal.accounts.models import User
from portal.challenges.models import Corpus, DataSet, Speaker, Utterance
from portal.core.storage import store_bytes
from portal.jobs.models import Job, State
from portal.submissions.models import SubmittedFile
from portal.submissions.services import create_baseline

pytestmark = pytest.mark.django_db

ROLES = ("visitor", "member", "organizer", "operator")
LOGIN = "log-in"  # a redirect to the log-in page
# What each role gets at each address: visitor, member of no role, organizer, operator.
OPEN = (200, 200, 200, 200)
FOR_STAFF = (LOGIN, 404, 200, 200)
FOR_ORGANIZERS = (LOGIN, 404, 200, 404)
FOR_OPERATORS = (LOGIN, 404, 404, 200)
UNKNOWN_TO_ALL = (404, 404, 404, 404)
MATRIX = {
    "home": OPEN,
    "login": (200, 302, 302, 302),
    "logout": (405, 405, 405, 405),
    "live": OPEN,
    "ready": (503, 503, 503, 503),  # no scheduler runs in this test
    "media": UNKNOWN_TO_ALL,  # an address that was signed for nobody
    "operations": FOR_OPERATORS,
    "corpora:list": FOR_ORGANIZERS,
    "corpora:import": FOR_ORGANIZERS,
    "corpora:detail": FOR_ORGANIZERS,
    "corpora:speakers": FOR_ORGANIZERS,
    "corpora:utterances": FOR_ORGANIZERS,
    "corpora:utterance": FOR_ORGANIZERS,
    "corpora:data-set": FOR_ORGANIZERS,
    "systems:list": FOR_ORGANIZERS,
    "systems:new": FOR_ORGANIZERS,
    "systems:detail": FOR_ORGANIZERS,
    "systems:progress": FOR_ORGANIZERS,
    "systems:values-csv": FOR_ORGANIZERS,
    "systems:data-set": FOR_ORGANIZERS,
    "systems:measures-csv": FOR_ORGANIZERS,
    "systems:compare": FOR_ORGANIZERS,
    "systems:f0": FOR_ORGANIZERS,
    "jobs:list": FOR_STAFF,
    "jobs:table": FOR_STAFF,
    "jobs:detail": FOR_STAFF,
    "jobs:status": FOR_STAFF,
    "jobs:problems-csv": FOR_STAFF,
    "jobs:cancel": (LOGIN, 404, 405, 405),
    "jobs:again": (LOGIN, 404, 405, 405),
}
POSTS = {
    "jobs:cancel": (LOGIN, 404, 302, 302),
    "jobs:again": (LOGIN, 404, 302, 302),
    "corpora:import": (LOGIN, 404, 422, 404),
    "systems:new": (LOGIN, 404, 422, 404),
}
# A live part tells htmx by this status that it need not ask again.
ENDED = 286


def names(resolver: URLResolver, namespace: str = "") -> set[str]:
    found = set()
    for pattern in resolver.url_patterns:
        if isinstance(pattern, URLResolver):
            if pattern.namespace != "admin":
                found |= names(pattern, f"{pattern.namespace}:" if pattern.namespace else namespace)
        elif isinstance(pattern, URLPattern):
            found.add(f"{namespace}{pattern.name}")
    return found


@pytest.fixture
def clients() -> dict[str, Client]:
    people = {
        "member": User.objects.create_user("member@example.org", "pw", name="Mia"),
        "organizer": User.objects.create_user("organizer@example.org", "pw", name="Olga", is_organizer=True),
        "operator": User.objects.create_user("operator@example.org", "pw", name="Otto", is_staff=True),
    }
    clients = {"visitor": Client()}
    for role, person in people.items():
        clients[role] = Client()
        clients[role].force_login(person)
    return clients


@pytest.fixture
def addresses() -> dict[str, str]:
    """One address of each name, to objects that exist."""
    corpus = Corpus.objects.create(name="little", layout="manifest", source="somewhere")
    speaker = Speaker.objects.create(corpus=corpus, name="a", gender="f")
    audio = store_bytes(b"not to be heard", ".flac")
    utterance = Utterance.objects.create(
        corpus=corpus, speaker=speaker, name="a-1", audio=audio, samples=1, rate_hz=16000
    )
    data_set = DataSet.objects.create(corpus=corpus, name="x_trials_f", role="trial")
    data_set.utterances.add(utterance)
    submission = create_baseline(name="b2", title="B2", corpus=corpus)
    file = SubmittedFile.objects.create(
        submission=submission, data_set=data_set, utterance=utterance, audio=audio, samples=1, rate_hz=16000
    )
    run = start_evaluation(submission=submission, data_set=data_set)
    Job.objects.filter(pk=run.job_id).update(state=State.SUCCEEDED)
    f0 = _f0(file)
    run.measures.create(file=file, pitch_correlation=0.5, duration_difference_ms=0.0, f0_original=f0, f0_anonymised=f0)
    for theme in ("light.svg", "dark.svg", "light.png", "light.pdf"):
        store_named(f"derived/figures/{run.pk}/pitch-{theme}")
    arguments = {
        "media": ["nonsense"],
        "corpora:detail": ["little"],
        "corpora:speakers": ["little"],
        "corpora:utterances": ["little"],
        "corpora:utterance": ["little", "a-1"],
        "corpora:data-set": ["little", "x_trials_f"],
        "systems:new": ["little"],
        "systems:detail": ["b2"],
        "systems:progress": ["b2"],
        "systems:values-csv": ["b2"],
        "systems:data-set": ["b2", "x_trials_f"],
        "systems:measures-csv": ["b2", "x_trials_f"],
        "systems:compare": ["b2", file.pk],
        "systems:f0": ["b2", file.pk],
    }
    jobs = {
        name: [run.job_id] for name in MATRIX if name.startswith("jobs:") and name not in {"jobs:list", "jobs:table"}
    }
    return {name: reverse(name, args=(arguments | jobs).get(name, [])) for name in MATRIX}


def _f0(file: SubmittedFile) -> str:
    import io

    import numpy as np

    packed = io.BytesIO()
    np.savez(packed, hz=np.full(10, 100.0), start_s=0.0, step_s=0.01, estimator="test")
    return store_bytes(packed.getvalue(), ".npz")


def store_named(name: str) -> None:
    from portal.core.storage import replace_named

    replace_named(name, b"figure")


def outcome(response) -> int | str:
    if response.status_code == 302 and response.url.startswith(reverse("login")):
        return LOGIN
    return 200 if response.status_code == ENDED else response.status_code


def without_token(response) -> str:
    """The page without the token of its log-out form, which differs at each request."""
    return re.sub(r'name="csrfmiddlewaretoken" value="\w+"', "", response.content.decode())


def test_matrix_holds_every_address():
    assert names(get_resolver()) == set(MATRIX)


def test_each_role_gets_what_the_matrix_says(clients, addresses):
    found = {name: tuple(outcome(clients[role].get(addresses[name])) for role in ROLES) for name in MATRIX}
    assert found == MATRIX


def test_each_role_may_do_what_the_matrix_says(clients, addresses):
    found = {name: tuple(outcome(clients[role].post(addresses[name])) for role in ROLES) for name in POSTS}
    assert found == POSTS


def test_what_does_not_exist_looks_like_what_is_forbidden(clients, addresses):
    forbidden = clients["member"].get(addresses["systems:detail"])
    unknown = clients["member"].get(reverse("systems:detail", args=["no-such-system"]))
    assert (forbidden.status_code, unknown.status_code) == (404, 404)
    assert without_token(forbidden) == without_token(unknown)


def test_only_posts_with_a_token_change_anything(addresses):
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(User.objects.create_user("o@example.org", "pw", is_organizer=True))
    assert strict.post(addresses["jobs:cancel"]).status_code == 403


def test_pages_send_a_strict_content_security_policy(clients, addresses):
    policy = clients["organizer"].get(addresses["systems:detail"])["Content-Security-Policy"]
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert (rules["default-src"], rules["script-src"], rules["style-src"]) == ("'none'", "'self'", "'self'")
    assert "unsafe" not in policy
