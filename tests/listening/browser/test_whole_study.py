"""A whole study as in 2022, with real speech and real processes, and three people who listen to all of it at once.

The portal is that of `manage.py serve`: recordings are imported, anonymised and made into stimuli by its worker. One
person listens by mouse, one by keyboard alone on a screen as small as a phone's, and one meets every kind of trouble.
What they rated, as they sent it, is compared with what is stored, shown and exported. `whole_study` tells which speech.
"""

import csv
import io
import re
import time
import zipfile
from collections import Counter
from dataclasses import dataclass, field

import pytest
import requests
from django.conf import settings
from django.core.management import call_command
from django.test import Client

from listening.app.models import Session, Study
from listening.app.studies.stored_design import build_certificate, read_rows
from tests.listening.browser.evaluators import Evaluator, KeyboardEvaluator, TroubledEvaluator
from tests.listening.browser.whole_study import make_whole_study
from tests.listening.rated import RATED
from tests.listening.visits import link_of
from tests.portal.browser.journey import ServedPortal
from tests.portal.factories import make_organizer

pytestmark = [
    pytest.mark.processes,
    pytest.mark.slow,  # a whole study by browsers
    pytest.mark.django_db,
]
TIME_LIMIT_S = 3600
LOOK_EVERY_S = 2


@dataclass
class Held:
    """A study that was held: who listened, and what the portal says of it."""

    study: Study
    size: object
    people: dict
    sessions: dict = field(default_factory=dict)
    stored: dict = field(default_factory=dict)  # by person the answers in the order in which they came
    late: dict = field(default_factory=dict)  # by person the trials whose answer waited for a connection
    events: dict = field(default_factory=dict)
    design: dict = field(default_factory=dict)  # by block and position the item and its system
    blocks: dict = field(default_factory=dict)
    recomputed: dict = field(default_factory=dict)
    seen: list = field(default_factory=list)  # (finished, under way) on the monitor
    monitor: str = ""
    certificate: dict = field(default_factory=dict)
    tables: dict = field(default_factory=dict)


class Organizer:
    """Somebody who runs studies, without a browser."""

    def __init__(self, url, user):
        self.url, self.user, self.http = url, user, requests.Session()
        client = Client()
        client.force_login(user)
        self.http.cookies.set(settings.SESSION_COOKIE_NAME, client.cookies[settings.SESSION_COOKIE_NAME].value)

    def get(self, path):
        answer = self.http.get(self.url + path, timeout=60)
        answer.raise_for_status()
        return answer

    def post(self, path, page):
        token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', self.get(page).text).group(1)
        self.http.post(self.url + path, data={"csrfmiddlewaretoken": token}, timeout=60).raise_for_status()


@pytest.fixture(scope="module")
def held(browser, django_db_setup, django_db_blocker, tmp_path_factory):
    """The study after its three sessions; its tests read it."""
    folder = tmp_path_factory.mktemp("whole")
    with django_db_blocker.unblock():
        portal = ServedPortal(folder, folder)
        try:
            organizer = Organizer(portal.url, make_organizer())
            study, size = make_whole_study(folder, organizer.user)
            found = hold(study, size, portal.url, organizer)
            portal.end()
            yield found
        finally:
            portal.end()
            call_command("flush", interactive=False, verbosity=0)


def hold(study, size, url, organizer):
    link = link_of(study)
    people = {
        "mouse": Evaluator(url, link, 1),
        "keyboard": KeyboardEvaluator(url, link, 2),
        "trouble": TroubledEvaluator(url, link, 3, size.trials_of_session),
    }
    held = Held(study, size, people)
    for person in people.values():
        person.start()
    end = time.monotonic() + TIME_LIMIT_S
    while any(person.is_alive() for person in people.values()) and time.monotonic() < end:
        held.seen.append(look(study, organizer))
        time.sleep(LOOK_EVERY_S)
    held.seen.append(look(study, organizer))
    held.monitor = organizer.get(f"/studies/{study.name}/monitor/").text
    held.certificate = organizer.get(f"/studies/{study.name}/certificate.json").json()
    organizer.post(f"/studies/{study.name}/close/", f"/studies/{study.name}/")
    held.tables = read_archive(organizer.get(f"/studies/{study.name}/export.zip").content)
    study.refresh_from_db()
    note(held)
    return held


def look(study, organizer):
    """How many sessions are finished and under way."""
    shown = organizer.get(f"/studies/{study.name}/monitor/live").text
    return tuple(map(int, re.search(r'data-announce="(\d+) finished, (\d+) under way"', shown).groups()))


def read_archive(content):
    """The tables of an exported study by their names."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        names = [name for name in archive.namelist() if name.startswith("tables/")]
        return {name[7:-4]: list(csv.DictReader(io.StringIO(archive.read(name).decode()))) for name in names}


def note(held):
    """Read from the database what the tests need."""
    for name, person in held.people.items():
        session = Session.objects.filter(token=person.address.strip("/").rpartition("/")[2]).first()
        if session is None:
            continue
        held.sessions[name] = session
        held.stored[name] = list(session.answers.order_by("pk").values_list("trial__position", "task", "rating"))
        late = session.answers.filter(is_late=True)
        held.late[name] = sorted(set(late.values_list("trial__position", flat=True)))
        held.events[name] = Counter(session.events.values_list("kind", flat=True))
    trials = held.study.blocks.values_list(
        "number", "trials__position", "trials__presentation__key", "trials__presentation__condition__code"
    )
    held.design = {(block, position): (key, system or "original") for block, position, key, system in trials}
    held.blocks = {block.number: block for block in held.study.blocks.all()}
    held.recomputed = build_certificate(read_rows(held.study))


def require_whole_session(held, name):
    """Every answer that was sent is stored once, in its order, and nothing else."""
    person = held.people[name]
    person.finish(0)
    assert person.total == held.size.trials_of_session
    sent = [(place, task, given[task]) for place, given in enumerate(person.given, 1) for task in RATED]
    assert held.stored[name] == sent
    session = held.sessions[name]
    assert (session.state, session.completion_code) == (Session.State.FINISHED, person.code)
    assert session.block.is_finished
    assert session.block.holder_id == session.pk


def test_criterion_17_certificate_of_the_study_passes_and_can_be_downloaded(held):
    assert held.certificate["passes"]
    assert held.certificate == held.recomputed
    numbers = Counter(block for block, _ in held.design)
    assert numbers == dict.fromkeys(range(1, held.size.evaluators + 1), held.size.trials_of_session)


def test_criterion_05_to_07_session_by_mouse_is_stored_once(held):
    require_whole_session(held, "mouse")
    assert held.people["mouse"].problems == []


def test_criterion_21_session_by_keyboard_on_a_small_screen_is_stored_once(held):
    require_whole_session(held, "keyboard")
    assert held.people["keyboard"].problems == []


def test_criterion_05_and_06_session_with_every_trouble_is_stored_once(held):
    require_whole_session(held, "trouble")
    person = held.people["trouble"]
    assert person.met == [action.__name__ for action in person.troubles.values()]
    offline = next(number for number, action in person.troubles.items() if action == person.answer_offline)
    assert set(range(offline, offline + 3)) <= set(held.late["trouble"])
    assert held.events["trouble"]["offline"] >= 1
    assert held.events["trouble"]["taken-over"] >= len(person.troubles) - 1  # each page that came took over


def test_each_person_had_a_block_of_their_own(held):
    assert len({session.block_id for session in held.sessions.values()}) == len(held.people)
    assert len({person.code for person in held.people.values()}) == len(held.people)
    given = [block.number for block in held.blocks.values() if block.offers]
    assert sorted(given) == sorted(session.block.number for session in held.sessions.values())
    assert {held.blocks[number].offers for number in given} == {1}


def test_criterion_25_monitor_showed_them(held):
    everybody = len(held.people)
    assert (0, everybody) in held.seen
    assert held.seen[-1] == (everybody, 0)
    finished = [count for count, _ in held.seen]
    assert finished == sorted(finished)
    assert f"{everybody} of {held.size.evaluators} blocks are finished" in held.monitor


def test_export_holds_exactly_the_answers_given(held):
    columns = ("session", "block", "position", "item", "system", "task", "rating")
    exported = Counter(tuple(row[column] for column in columns) for row in held.tables["answers"])
    given = Counter()
    for name, person in held.people.items():
        session = held.sessions[name]
        block = session.block.number
        for place, ratings in enumerate(person.given, 1):
            for task, rating in ratings.items():
                where = (str(session.pk), str(block), str(place), *held.design[block, place])
                given[*where, task, str(rating)] += 1
    assert exported == given
    assert set(exported.values()) == {1}
    assert len(held.tables["trials"]) == held.size.evaluators * held.size.trials_of_session
    assert {row["state"] for row in held.tables["sessions"]} == {"finished"}


def test_export_tells_what_was_heard(held):
    """Both samples of every trial were sent completely, and somebody listened to each to its end."""
    for name, session in held.sessions.items():
        expected = {(place, slot) for place in range(1, held.people[name].total + 1) for slot in "ab"}
        for table, column in (("serves", "complete_at"), ("plays", "is_whole")):
            rows = [row for row in held.tables[table] if row["session"] == str(session.pk)]
            whole = {(int(row["position"]), row["slot"]) for row in rows if row[column] not in ("", "false")}
            assert whole == expected
