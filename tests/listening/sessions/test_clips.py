"""Addresses of clips: whose they are, when they open, what is sent, and what counts as sent."""

import logging
import re
from datetime import timedelta

import pytest
from django.core.files.storage import default_storage
from django.db import connection
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from listening.app.models import Serve, Session, Stimulus
from listening.app.sessions import media
from listening.app.sessions.clip_urls import clip_address
from listening.app.sessions.media import Clip, note_sent
from tests.listening.factories import make_session, make_study

pytestmark = pytest.mark.django_db
NEUTRAL = {
    403: b"This sound is not for this session now.",
    404: b"There is no sound here.",
    410: b"This session is over.",
}


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch):
    monkeypatch.setattr(media, "CHUNK_BYTES", 1000)


def make_listening():
    return make_session(make_study(evaluators=3, trials=6))


@pytest.fixture
def session(once):
    return once(make_listening)


@pytest.fixture
def study(session):
    return session.study


def trials(session):
    return list(session.block.trials.order_by("position"))


def address(session, position=1, slot="a"):
    return clip_address(session, trials(session)[position - 1], slot)


def content_of(session, position=1, slot="a"):
    stimulus = trials(session)[position - 1].presentation.samples.get(slot=slot).stimulus
    with default_storage.open(stimulus.file) as file:
        return file.read()


def body(response):
    return b"".join(response.streaming_content)


def break_off(response):
    """What the server does when the browser is gone, through the test client, which keeps the database's connection."""
    response._iterator.close()


def get(session, position=1, slot="a", **headers):
    return Client().get(address(session, position, slot), headers=headers)


def test_clip_is_sent_whole_and_noted_once_it_is(session):
    before = timezone.now()
    response = get(session)
    assert not Serve.objects.exists()
    assert (response.status_code, body(response)) == (200, content_of(session))
    serve = Serve.objects.get()
    assert (serve.session, serve.trial, serve.slot, serve.requests) == (session, trials(session)[0], "a", 1)
    assert before <= serve.first_at <= serve.complete_at <= timezone.now()
    assert serve.ranges == []


def test_clip_tells_nothing_but_sound(session):
    response = get(session)
    assert response["Content-Type"] == "audio/wav"
    assert response["Cache-Control"] == "private, max-age=3600"
    assert {"ETag", "Last-Modified", "Content-Disposition", "Set-Cookie"}.isdisjoint(response.headers)
    assert not response.cookies
    assert response["X-Content-Type-Options"] == "nosniff"


def test_criterion_12_addresses_of_one_clip_in_two_sessions_cannot_be_linked(study):
    """The bytes are the same, as they must be for everybody to hear the same; the addresses have nothing in common."""
    one, other = make_session(study), make_session(study)
    first_trial = trials(one)[0]
    position = next(trial.position for trial in trials(other) if trial.presentation == first_trial.presentation)
    names = [address(one).split("/")[-1], address(other, position).split("/")[-1]]
    assert names[0] != names[1]
    assert all(re.fullmatch(r"[\w-]{24}", name) for name in names)
    everything = [address(s, p, slot).split("/")[-1] for s in (one, other) for p in range(1, 7) for slot in "ab"]
    assert len(set(everything)) == 24
    assert content_of(one) == content_of(other, position)
    assert address(one) == address(one)


def test_criterion_12_address_of_another_session_is_refused(study):
    one, other = make_session(study), make_session(study)
    foreign = reverse("listen:clip", args=[other.token, address(one).split("/")[-1]])
    response = Client().get(foreign)
    assert (response.status_code, response.content) == (403, NEUTRAL[403])
    assert not Serve.objects.exists()


def test_criterion_12_nothing_that_is_sent_names_a_system_or_source(study, session, caplog):
    caplog.set_level(logging.INFO)
    sent = []
    for position in range(1, 7):
        for slot in "ab":
            response = get(session, position, slot)
            content = body(response) if response.streaming else response.content
            sent.append(repr(response.headers).encode() + content)
    for name in ("nonsense", "x" * 24):
        response = Client().get(reverse("listen:clip", args=[session.token, name]))
        sent.append(repr(response.headers).encode() + response.content)
    sent.append(repr(get(session, range="bytes=99999999-").headers).encode())
    told = b"".join(sent)
    secret = [*study.systems.values_list("code", flat=True), study.name, study.title, study.edition.name]
    secret += Stimulus.objects.values_list("item__name", flat=True)
    secret += Stimulus.objects.values_list("item__speaker", flat=True)
    secret += [file.split("/")[-1] for file in Stimulus.objects.values_list("file", flat=True)]
    assert len(secret) > 10
    assert [name for name in secret if name.encode() in told] == []
    lines = caplog.text
    assert "sent to session" in lines
    assert session.token not in lines
    assert [name for name in secret if name in lines] == []


@pytest.mark.parametrize("fields", [{"consented_at": None}, {"step": "headphones"}, {"step": "role-play"}])
def test_criterion_23_no_sound_before_consent_and_screening(session, fields):
    Session.objects.filter(pk=session.pk).update(**fields)
    response = get(session)
    assert (response.status_code, response.content) == (403, NEUTRAL[403])


def test_unknown_session_and_what_is_no_address_are_not_found(session):
    for token, name in (("nobody", "x" * 24), (session.token, "short"), (session.token, "x" * 25)):
        response = Client().get(reverse("listen:clip", args=[token, name]))
        assert (response.status_code, response.content) == (404, NEUTRAL[404])


def test_file_that_is_missing_is_not_found_and_told_to_the_operator(session, caplog):
    Stimulus.objects.update(file="")
    assert get(session).status_code == 404
    Stimulus.objects.update(file="content/00/none.flac")
    assert get(session).status_code == 404
    assert caplog.text.count("is missing") == 2


def test_store_that_cannot_be_reached_is_no_missing_file(session, monkeypatch, caplog):
    def fail(_):
        raise ConnectionError

    monkeypatch.setattr(default_storage, "size", fail)
    answer = get(session)
    assert (answer.status_code, answer.content) == (503, b"The recordings cannot be read just now.")
    assert "cannot be reached" in caplog.text
    monkeypatch.undo()
    assert get(session).status_code == 200


@pytest.mark.parametrize(
    ("header", "status", "part"),
    [
        ("bytes=0-", 206, slice(0, None)),
        ("bytes=10-19", 206, slice(10, 20)),
        ("bytes=-7", 206, slice(-7, None)),
        ("bytes=0-1,4-5", 200, slice(0, None)),
    ],
)
def test_byte_range_is_sent_exactly(session, header, status, part):
    response, content = get(session, range=header), content_of(session)
    assert (response.status_code, body(response)) == (status, content[part])


def test_criterion_09_head_and_a_single_byte_do_not_count_as_sent(session):
    response = Client().head(address(session))
    assert (response.status_code, int(response["Content-Length"])) == (200, len(content_of(session)))
    assert not Serve.objects.exists()
    assert len(body(get(session, range="bytes=0-0"))) == 1
    assert len(body(get(session, range="bytes=-1"))) == 1
    serve, size = Serve.objects.get(), len(content_of(session))
    assert (serve.complete_at, serve.ranges) == (None, [[0, 1], [size - 1, size]])


def test_criterion_09_transfer_that_the_browser_breaks_off_is_not_complete(session):
    response = get(session)
    stream = iter(response.streaming_content)
    assert [len(next(stream)) for _ in range(3)] == [1000] * 3
    break_off(response)
    serve = Serve.objects.get()
    assert (serve.complete_at, serve.ranges) == (None, [[0, 2000]])  # the third chunk may have been lost on its way
    body(get(session, range="bytes=2000-"))
    serve.refresh_from_db()
    assert (serve.complete_at is not None, serve.ranges, serve.requests) == (True, [], 2)


def test_note_that_fails_cuts_the_file_so_that_the_browser_asks_again(session, monkeypatch, caplog):
    def fail(*_):
        raise OSError("no database")

    monkeypatch.setattr(media, "note_sent", fail)
    got = []
    with pytest.raises(OSError, match="no database"):
        got.extend(get(session).streaming_content)
    assert b"".join(got) == content_of(session)[:-1]


@pytest.fixture
def clip(session):
    return Clip(session.pk, trials(session)[0].pk, "a", "", 1000, 10.0)


def test_criterion_09_asking_for_a_byte_early_gains_nothing(clip):
    start = timezone.now()
    note_sent(clip, 0, 1, start)
    note_sent(clip, 0, 1000, start + timedelta(seconds=60))
    serve = Serve.objects.get()
    assert serve.complete_at is not None
    assert (serve.first_at - start).total_seconds() == pytest.approx(60 - 0.01)


def test_criterion_09_the_last_part_tells_when_the_end_can_have_been_heard(clip):
    start = timezone.now()
    note_sent(clip, 500, 1000, start)
    note_sent(clip, 0, 500, start + timedelta(seconds=30))
    assert (Serve.objects.get().first_at - start).total_seconds() == pytest.approx(30)
    Serve.objects.all().delete()
    note_sent(clip, 0, 500, start)
    note_sent(clip, 500, 1000, start + timedelta(seconds=3))  # in time for somebody who listens while it loads
    assert Serve.objects.get().first_at == start
    Serve.objects.all().delete()
    note_sent(clip, 0, 500, start)
    note_sent(clip, 400, 1000, start + timedelta(seconds=9))  # 4 s too late for that
    assert (Serve.objects.get().first_at - start).total_seconds() == pytest.approx(4)


def test_clip_costs_few_queries(session, django_assert_num_queries):
    body(get(session))
    at = address(session)
    with django_assert_num_queries(3):  # session, answers, file
        response = Client().get(at)
    clock = int(connection.vendor == "postgresql")  # its time is read
    with django_assert_num_queries(clock + 5):  # find, lock and write the row, between two marks of the transaction
        body(response)
