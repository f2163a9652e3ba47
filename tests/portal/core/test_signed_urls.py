"""Signed addresses: only for the session they were made for, only for a while, in byte ranges."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from django.contrib.sessions.models import Session
from django.core.files.storage import default_storage
from django.test import Client, RequestFactory
from django.urls import reverse

from portal.core.sessions import SessionStore
from portal.core.signed_urls import signed_address
from portal.core.storage import store_bytes
from tests.portal.factories import make_user

pytestmark = pytest.mark.django_db
CONTENT = bytes(range(256)) * 40


@pytest.fixture
def visitor():
    """A client with a session and the address of a stored file signed for it."""
    client = Client()
    client.session.save()
    session = client.session
    session["seen"] = True
    session.save()
    client.cookies["sessionid"] = session.session_key
    request = RequestFactory().get("/")
    request.session = session
    client.address = signed_address(request, store_bytes(CONTENT, ".flac"))
    return client


def body(response):
    return b"".join(response.streaming_content)


def test_whole_file_is_sent_with_its_type(visitor):
    response = visitor.get(visitor.address)
    assert (response.status_code, response["Content-Type"], body(response)) == (200, "audio/flac", CONTENT)
    assert response["Accept-Ranges"] == "bytes"
    assert response["Cache-Control"].startswith("private")


@pytest.mark.parametrize(
    ("header", "start", "stop"), [("bytes=0-0", 0, 1), ("bytes=10000-99999", 10000, 10240), ("bytes=-40", 10200, 10240)]
)
def test_byte_range_is_sent_exactly(visitor, header, start, stop):
    response = visitor.get(visitor.address, headers={"range": header})
    assert (response.status_code, body(response)) == (206, CONTENT[start:stop])
    assert response["Content-Range"] == f"bytes {start}-{stop - 1}/10240"
    assert response["Content-Length"] == str(stop - start)


@pytest.mark.parametrize("header", ["bytes=10240-", "bytes=5-2", "bytes=-0"])
def test_range_outside_of_the_file_is_refused(visitor, header):
    response = visitor.get(visitor.address, headers={"range": header})
    assert (response.status_code, response["Content-Range"]) == (416, "bytes */10240")


@pytest.mark.parametrize("header", ["bytes=0-1,5-6", "nonsense"])
def test_range_of_another_kind_gives_the_whole_file(visitor, header):
    response = visitor.get(visitor.address, headers={"range": header})
    assert (response.status_code, body(response)) == (200, CONTENT)


def test_address_is_worthless_in_another_session(visitor):
    assert Client().get(visitor.address).status_code == 404


def test_address_for_a_visitor_is_of_one_browser_and_makes_no_session():
    client, other = Client(), Client()
    request = RequestFactory().get("/")
    request.session = SessionStore()
    address = signed_address(request, store_bytes(CONTENT, ".flac"))
    client.cookies["csrftoken"] = request.META["CSRF_COOKIE"]
    assert client.get(address).status_code == 200
    other.get("/log-in/")
    assert other.cookies["csrftoken"].value != request.META["CSRF_COOKIE"]
    assert (other.get(address).status_code, Client().get(address).status_code) == (404, 404)
    assert Session.objects.count() == 0


def test_address_ends_with_the_session(visitor):
    visitor.session.flush()
    visitor.cookies.clear()
    assert visitor.get(visitor.address).status_code == 404


def test_address_ends_with_the_account():
    client, user = Client(), make_user()
    client.force_login(user)
    request = RequestFactory().get("/")
    request.session = client.session
    address = signed_address(request, store_bytes(CONTENT, ".flac"))
    assert client.get(address).status_code == 200
    user.is_active = False
    user.save()
    assert client.get(address).status_code == 404


def test_address_ends_after_its_time(visitor, settings):
    settings.AUDIO_LINK_S = -1
    assert visitor.get(visitor.address).status_code == 404


def test_changed_address_is_not_found(visitor):
    assert visitor.get(visitor.address[:-2] + "xx").status_code == 404
    assert visitor.get(reverse("media", args=["nonsense"])).status_code == 404


def test_same_content_is_stored_once_and_under_its_hash():
    expected = "content/05/05fb617ad543807c0c3fe7ae9d1f33aa8928236e85adb7c0e3b186f5084e2e19.flac"
    assert [store_bytes(b"speech", ".flac"), store_bytes(b"speech", ".flac")] == [expected, expected]
    with default_storage.open(expected) as stored:
        assert stored.read() == b"speech"


def test_write_that_is_cut_leaves_no_file(monkeypatch):
    def fail(_):
        raise OSError("No space left on device")

    monkeypatch.setattr("portal.core.storage.os.fsync", fail)
    with pytest.raises(OSError, match="No space left"):
        store_bytes(b"half a file", ".flac")
    digest = hashlib.sha256(b"half a file").hexdigest()
    left = Path(default_storage.path(f"content/{digest[:2]}")).iterdir()
    assert [file.name for file in left if digest in file.name or file.suffix == ".part"] == []
