"""Which pages a portal has: its address patterns × the objects of its database × who may see them.

Each address is asked for as each role. A role whose page has the same content as that of an earlier role is left out.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

import requests
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.backends.base import SessionBase
from django.urls import URLPattern, URLResolver, get_resolver, reverse
from django.utils.module_loading import import_string

from anonymization.app.models import NetworkTraining
from evaluation.app.models import EvaluationRun
from listening.app.models import Condition, Session, Study
from listening.app.studies.interface_words import ships_words
from portal.accounts.models import User
from portal.challenges.models import Corpus, DataSet, Edition, Utterance
from portal.core.removal import list_kinds
from portal.documentation.manual import PAGES
from portal.jobs.models import Job
from portal.submissions.models import Submission, SubmittedFile, System
from portal.teams.models import Membership, Team

VISITOR, MEMBER, ORGANIZER, OPERATOR, EVALUATOR = "visitor", "member", "organizer", "operator", "evaluator"
NO_SECRET = "nonsense"  # stands for a secret that only a mail tells
# Patterns, or all of a name space, that are no pages, each with its reason.
NOT_PAGES = {
    "admin": "pages of Django itself",
    "api": "for programs",
    "uploads": "for programs",
    "live": "for programs",
    "ready": "for programs",
    "metrics": "for programs",
    "media": "a recording",
    "downloads:file": "a file",
    "editions:data-file": "a file",
    "submissions:document": "a file",
    "systems:attack-scores": "a file",
    "listen:sound": "a recording",
    "listen:clip": "a recording",
    "listen:state": "for the script of the trials",
    "listen:language": "leads to the session",
    "listen:step": "leads to the session",
    "teams:remove": "asks before it is done, as teams:leave",
    "teams:transfer": "asks before it is done, as teams:leave",
    "accounts:revoke-token": "asks before it is done, as teams:leave",
    "systems:progress": "a part of a page",
    "systems:attack-progress": "a part of a page",
    "systems:recognition-progress": "a part of a page",
    "systems:retraining-progress": "a part of a page",
    "systems:retrain": "a deed",
    "systems:training-live": "a part of a page",
    "network-trainings:live": "a part of a page",
    "network-trainings:cancel": "takes forms only",
    "network-trainings:continue": "takes forms only",
    "submissions:progress": "a part of a page",
    "jobs:table": "a part of a page",
    "jobs:status": "a part of a page",
    "studies:live": "a part of a page",
    "studies:planner": "a part of a page",
    "submissions:submit-upload": "takes forms only",
    "submissions:discard-upload": "takes forms only",
}
PAGES_FOR_PROGRAMMERS = ("api:docs",)
FILE = re.compile(r"\.\w+$|<\w+:extension>$")  # at the end of a route: a download, a figure
CHANGING = re.compile(r'name="csrfmiddlewaretoken" value="\w+"|/media/[^"]+|\s+')
MAIN = re.compile(r"<main.*</main>", re.DOTALL)

Values = dict[str, Any]


@dataclass(frozen=True)
class Pattern:
    """An address pattern by its name with its name space, and the names of what it holds."""

    name: str
    route: str
    parameters: tuple[str, ...]

    @property
    def space(self) -> str:
        return self.name.rpartition(":")[0]

    @property
    def reason(self) -> str:
        """Why it is no page; empty for a page."""
        if self.name in PAGES_FOR_PROGRAMMERS:
            return ""
        if FILE.search(self.route):
            return "a file"
        return NOT_PAGES.get(self.name) or NOT_PAGES.get(self.space, "")

    @property
    def is_visited(self) -> bool:
        """Whether it is asked for, where the portal has such an object; else it takes forms only."""
        return not self.reason and (not self.parameters or (self.space, self.parameters) in OBJECTS)


@dataclass(frozen=True)
class Found:
    """A page, as one role sees it. `role` has a number where several people have it (member-2)."""

    pattern: str
    address: str
    role: str
    status: int


def list_patterns() -> list[Pattern]:
    def walk(resolver: URLResolver, route: str, space: str) -> Iterator[Pattern]:
        for one in resolver.url_patterns:
            whole = route + str(one.pattern)
            if isinstance(one, URLResolver):
                yield from walk(one, whole, f"{space}{one.namespace}:" if one.namespace else space)
            elif isinstance(one, URLPattern) and (one.name or space == "admin:"):
                names = tuple(re.findall(r"<(?:\w+:)?(\w+)>", whole))
                yield Pattern(f"{space}{one.name}", whole, names)

    return list(walk(get_resolver(), "", ""))


# Objects ------------------------------------------------------------------------------------------


def pick_different(rows: Iterable[Any], kind: Callable[[Any], Any], most: int) -> list[Any]:
    """At most so many: the first of each kind, then further ones."""
    met: set[Any] = set()
    first: list[Any] = []
    further: list[Any] = []
    for row in rows:
        (further if kind(row) in met else first).append(row)
        met.add(kind(row))
    return [*first, *further][:most]


def _studies(most: int) -> list[Study]:
    by_state = pick_different(Study.objects.order_by("pk"), lambda study: study.state, sys.maxsize)
    return pick_different(by_state, lambda study: (study.form, study.state), most)


def _sessions(most: int) -> list[Session]:
    found = Session.objects.select_related("study").order_by("pk")
    return pick_different(found, lambda session: (session.state, session.step, session.study.form), most)


def _submissions(most: int) -> list[Submission]:
    return pick_different(Submission.objects.order_by("pk"), lambda one: (one.state, one.system_id), most)


def _diffs(most: int) -> list[Values]:
    pairs = (
        {"pk": one.pk, "other": other.pk}
        for one in Submission.objects.order_by("pk")
        for other in one.system.submissions.exclude(pk=one.pk)[:1]
    )
    return list(islice(pairs, most))


def _of_sets(most: int) -> list[Values]:
    rows = SubmittedFile.objects.values_list("submission__system__name", "data_set__name").distinct().order_by("pk")
    return [{"name": name, "data_set": data_set} for name, data_set in pick_different(rows, lambda row: row[0], most)]


def _of_files(most: int) -> list[Values]:
    systems = System.objects.filter(submissions__files__isnull=False).distinct().order_by("pk")
    found = (SubmittedFile.objects.filter(submission__system=system).order_by("pk").first() for system in systems)
    return [{"name": one.submission.system.name, "pk": one.pk} for one in islice(filter(None, found), most)]


def _trainings(most: int) -> list[Values]:
    runs = EvaluationRun.objects.filter(kind=EvaluationRun.Kind.TRAINING).select_related("submission__system")
    return [{"name": run.submission.system.name, "training": run.pk} for run in runs[:most]]


def _managed(_: int) -> list[Values]:
    """One of each kind, since each kind has sentences of its own."""
    found = ((kind, kind.model._default_manager.order_by("pk").first()) for kind in list_kinds())
    return [{"kind": kind.name, "key": str(getattr(thing, kind.lookup))} for kind, thing in found if thing]


def _systems(most: int) -> list[System]:
    return pick_different(System.objects.order_by("pk"), lambda one: (one.team_id, one.is_baseline, one.kind), most)


def _rows(rows: Callable[[int], Iterable[Any]], **names: str) -> Callable[[int], list[Values]]:
    """By parameter the field of these objects that it holds; `__` leads to that of another object."""

    def value(row: Any, path: str) -> Any:
        for step in path.split("__"):
            row = getattr(row, step)
        return row

    return lambda most: [{name: value(row, path) for name, path in names.items()} for row in rows(most)]


def _fixed(*values: Values) -> Callable[[int], list[Values]]:
    return lambda _: list(values)


# By name space and parameters: at most so many values of them.
def _own_words(most: int) -> list[Values]:
    """Languages of studies whose words of buttons and hints come from the organizer."""
    pairs = [(study.name, language) for study in Study.objects.order_by("pk") for language in study.languages]
    return [{"study": name, "language": language} for name, language in pairs if not ships_words(language)][:most]


OBJECTS: dict[tuple[str, tuple[str, ...]], Callable[[int], list[Values]]] = {
    ("docs", ("name",)): _fixed(*({"name": name} for name in PAGES)),
    ("systems", ("corpus",)): _rows(lambda most: Corpus.objects.all()[:most], corpus="name"),
    ("systems", ("name",)): _rows(_systems, name="name"),
    ("systems", ("name", "data_set")): _of_sets,
    ("systems", ("name", "pk")): _of_files,
    ("systems", ("name", "training")): _trainings,
    ("network-trainings", ("corpus",)): _rows(lambda most: Corpus.objects.all()[:most], corpus="name"),
    ("network-trainings", ("training",)): _rows(lambda most: NetworkTraining.objects.all()[:most], training="pk"),
    ("editions", ("edition",)): _rows(lambda most: Edition.objects.all()[:most], edition="name"),
    ("leaderboard", ("edition",)): _rows(lambda most: Edition.objects.all()[:most], edition="name"),
    ("submissions", ("edition",)): _rows(lambda most: Edition.objects.all()[:most], edition="name"),
    ("submissions", ("pk",)): _rows(_submissions, pk="pk"),
    ("submissions", ("pk", "other")): _diffs,
    ("teams", ("pk",)): _rows(
        lambda most: pick_different(Team.objects.order_by("pk"), lambda team: team.state, most), pk="pk"
    ),
    ("teams", ("secret",)): _fixed({"secret": NO_SECRET}),
    ("", ("secret",)): _fixed({"secret": NO_SECRET}),
    ("", ("key",)): _fixed({"key": NO_SECRET}),
    ("", ("uidb36", "key")): _fixed({"uidb36": "abc", "key": NO_SECRET}),
    ("people", ("pk",)): _rows(
        lambda most: pick_different(User.objects.order_by("pk"), lambda one: (one.is_organizer, one.is_staff), most),
        pk="pk",
    ),
    ("corpora", ("name",)): _rows(lambda most: Corpus.objects.all()[:most], name="name"),
    ("corpora", ("name", "utterance")): _rows(
        lambda most: Utterance.objects.select_related("corpus").order_by("pk")[:most],
        name="corpus__name",
        utterance="name",
    ),
    ("corpora", ("name", "data_set")): _rows(
        lambda most: pick_different(DataSet.objects.select_related("corpus"), lambda one: one.role, most),
        name="corpus__name",
        data_set="name",
    ),
    ("jobs", ("pk",)): _rows(
        lambda most: pick_different(
            Job.objects.order_by("created_at"), lambda job: (job.state, bool(job.problems), bool(job.failure)), most
        ),
        pk="pk",
    ),
    ("removal", ("kind", "key")): _managed,
    ("removal", ("pk",)): _fixed(),  # receipts: nothing of a demo was deleted
    ("studies", ("study",)): _rows(_studies, study="name"),
    ("studies", ("study", "language")): _own_words,
    ("studies", ("study", "session")): _rows(_sessions, study="study__name", session="pk"),
    ("studies", ("study", "system")): _rows(
        lambda most: pick_different(
            Condition.objects.filter(study__published_analysis__isnull=False).select_related("study"),
            lambda one: one.study_id,
            most,
        ),
        study="study__name",
        system="code",
    ),
    ("listen", ("key",)): _rows(_studies, key="link_key"),
    ("listen", ("token",)): _rows(_sessions, token="token"),
}


def list_addresses(most: int) -> list[tuple[str, str]]:
    """The names and addresses of all pages, of at most so many objects of each pattern."""
    found = []
    for pattern in list_patterns():
        if pattern.is_visited:
            values = OBJECTS[pattern.space, pattern.parameters](most) if pattern.parameters else [{}]
            found += [(pattern.name, reverse(pattern.name, kwargs=one)) for one in values]
    return found


# Roles --------------------------------------------------------------------------------------------


def list_people(most: int) -> dict[str, User | None]:
    """Who looks: a visitor, somebody of each of so many teams, an organizer and an operator."""
    of_teams = Membership.objects.select_related("user").filter(user__is_active=True).order_by("pk")
    members = [one.user for one in pick_different(of_teams, lambda one: one.team_id, most)]
    people = User.objects.filter(is_active=True).order_by("pk")
    found = {ORGANIZER: people.filter(is_organizer=True).first(), OPERATOR: people.filter(is_staff=True).first()}
    people_by_role = {f"{MEMBER}-{place}": one for place, one in enumerate(members, 1)}
    return {VISITOR: None} | people_by_role | {role: one for role, one in found.items() if one}


def log_in(user: User) -> SessionBase:
    """A session of this person, who confirmed the password: `delete()` ends it."""
    from django.conf import settings

    session: SessionBase = import_string(f"{settings.SESSION_ENGINE}.SessionStore")()
    session[SESSION_KEY] = str(user.pk)
    session[BACKEND_SESSION_KEY] = settings.AUTHENTICATION_BACKENDS[0]
    session[HASH_SESSION_KEY] = user.get_session_auth_hash()
    session["account_authentication_methods"] = [{"method": "password", "at": time.time() + 86_400}]
    session.create()
    return session


# Pages --------------------------------------------------------------------------------------------


def _ask(portal: str, cookies: dict[str, str], task: tuple[str, str]) -> tuple[list[Found], list[Found]]:
    """The different pages at an address, of several members that of the one who sees most; and every answer."""
    pattern, address = task
    roles = {EVALUATOR: ""} if pattern.startswith("listen:") else cookies
    longest: dict[str, tuple[str, Found]] = {}
    answers = []
    for role, cookie in roles.items():
        jar = {"sessionid": cookie} if cookie else {}
        answer = requests.get(portal + address, cookies=jar, allow_redirects=False, timeout=120)
        found = Found(pattern, address, role, answer.status_code)
        answers.append(found)
        is_page = answer.headers.get("Content-Type", "").startswith("text/html") and "<html" in answer.text
        # An end of a listening test has the status 410.
        if answer.status_code not in (200, 410) or not is_page:
            continue
        content = CHANGING.sub(" ", (MAIN.search(answer.text) or [answer.text])[0])
        group = role.partition("-")[0]
        if group not in longest or len(content) > len(longest[group][0]):
            longest[group] = (content, found)
    different = dict(reversed(longest.values()))
    return list(reversed(different.values())), answers


def find_pages(
    portal: str, cookies: dict[str, str], addresses: Sequence[tuple[str, str]]
) -> tuple[list[Found], list[Found]]:
    """The different pages at these addresses, as `list_addresses` tells them; and every answer, pages or not.

    Args:
        cookies: of each role, the first of those who see the same page is kept; empty for a visitor.
    """
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(partial(_ask, portal, cookies), addresses))
    return [page for pages, _ in found for page in pages], [one for _, answers in found for one in answers]
