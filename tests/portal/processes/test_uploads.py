"""Uploads over a bad line to a server that dies: by the independent client tuspy, and many at a time.

UPLOAD_TEST_MB=2048 sends 2 GB in place of 48 MB.
"""

import socket
import threading
import time
from base64 import b64encode
from concurrent.futures import ThreadPoolExecutor

import pytest
import requests
from tusclient.client import TusClient

from portal.accounts.models import AccessToken
from portal.accounts.tokens import create_token
from portal.core.transfers import Places
from portal.submissions import receiving
from portal.submissions.models import Submission, Upload
from portal.submissions.resumable_uploads import hash_upload, upload_path
from tests.portal.factories import make_edition, make_submission, make_team, make_team_system, make_user
from tests.portal.processes.programs import wait_until
from tests.portal.processes.uploading import MEBIBYTE, SIZE_MB, BadLine, disturb, make_archive, standing_server

UPLOADS_OF_ONE = Places(24).uploads_of_one
MOST_MEMORY_GROWTH = 40 * MEBIBYTE
PART = {"Tus-Resumable": "1.0.0", "Content-Type": "application/offset+octet-stream"}


@pytest.fixture
def owner(transactional_db):
    return make_user()


@pytest.fixture
def team(owner):
    return make_team(make_edition(name="vpc"), owner=owner, number=11)


@pytest.fixture
def bearer(owner):
    return bearer_for(owner)


@pytest.fixture
def server(unattended):
    return standing_server(unattended)


@pytest.fixture
def line(server):
    # Slow enough that there is time to break it.
    line = BadLine(server.port, bytes_per_s=max(10, SIZE_MB // 8) * MEBIBYTE)
    yield line
    line.close()


def received():
    upload = Upload.objects.first()
    return upload.offset if upload else 0


def test_tuspy_brings_a_file_through_cuts_and_kills(server, line, team, bearer, tmp_path):
    path = tmp_path / "archive.tar.gz"
    sha256 = make_archive(path)
    size = path.stat().st_size
    assert server.is_live()
    memory = server.memory_bytes()
    client = TusClient(f"{line.address}/api/uploads/", headers=bearer)
    uploader = client.uploader(
        str(path),
        chunk_size=2 * MEBIBYTE,
        metadata={"filename": path.name, "edition": "vpc", "sha256": sha256},
        retries=50,
        retry_delay=0.5,
        upload_checksum=True,
    )
    began = time.monotonic()
    thread = threading.Thread(target=uploader.upload, daemon=True)
    thread.start()
    disturb(server, line, received, size)
    thread.join(600)
    seconds = time.monotonic() - began
    assert not thread.is_alive()
    upload = Upload.objects.get()
    assert (upload.state, upload.offset, line.cuts) == ("complete", size, 3)
    assert hash_upload(upload)
    assert upload.sha256 == sha256
    assert Submission.objects.get().upload == upload
    growth = server.most_memory_bytes - memory
    print(f"\n{SIZE_MB} MB by tuspy in {seconds:.1f} s; memory {memory >> 20} MB, then {growth >> 20} MB more")
    assert growth < MOST_MEMORY_GROWTH


def test_silent_connection_gives_its_upload_free(server, team, bearer):
    """A client whose network is gone says nothing any more, not even that it leaves."""
    content = b"x" * 10 * receiving.PIECE_BYTES
    address = begin(server, bearer, len(content))
    arrived = 3 * receiving.PIECE_BYTES
    silent = open_part(server, address, bearer, announced=len(content), sent=content[: arrived + 100])
    wait_until(lambda: send(address, bearer, 0, b"").status_code == 423, "the lock")
    wait_until(lambda: offset_at(address, bearer) == arrived, "the end of the silent connection")
    assert send(address, bearer, arrived, content[arrived:]).status_code == 204
    silent.close()
    assert upload_path(Upload.objects.get()).read_bytes() == content


def test_one_team_leaves_room_for_uploads_of_others(server, team, bearer):
    """However many archives it sends at a time, and however slowly."""
    other = bearer_of(make_team(team.edition))
    last, *addresses = [begin(server, bearer, 1000) for _ in range(16)]
    connections = [open_part(server, one, bearer, announced=1000, sent=b"x") for one in addresses]
    wait_until(lambda: send(last, bearer, 0, b"").status_code == 503, "the team's last place")
    assert send(begin(server, other, 1), other, 0, b"x").status_code == 204
    for connection in connections:
        connection.close()
    wait_until(lambda: send(last, bearer, 0, b"x").status_code == 204, "a free place")


def test_one_place_of_a_quota_makes_one_submission(server, team, bearer):
    """As many uploads as the server takes of a team at once; their last bytes arrive together."""
    edition = team.edition
    edition.submissions_per_team = 3
    edition.save()
    system = make_team_system(team)
    for state in ("evaluated", "checking", "refused", "withdrawn"):
        make_submission(system, state)
    addresses = [begin(server, bearer, 1000) for _ in range(UPLOADS_OF_ONE)]
    assert {send(address, bearer, 0, b"x" * 999).status_code for address in addresses} == {204}
    together = threading.Barrier(UPLOADS_OF_ONE)

    def finish(address):
        together.wait()
        return send(address, bearer, 999, b"x")

    with ThreadPoolExecutor(UPLOADS_OF_ONE) as threads:
        answers = list(threads.map(finish, addresses))
    assert sorted(answer.status_code for answer in answers) == [204] + [403] * (UPLOADS_OF_ONE - 1)
    assert {answer.json()["detail"] for answer in answers if answer.status_code == 403} == {
        f"The team “{team}” has used all 3 submissions of this edition. What was refused or withdrawn does not count; "
        "ask the organizer for more."
    }
    assert Submission.objects.filter(upload__isnull=False).count() == 1
    assert Upload.objects.filter(state="refused", offset=1000).count() == UPLOADS_OF_ONE - 1
    team.refresh_from_db()
    assert team.members_frozen_at is None


# A client of few words ------------------------------------------------------------------------------


def bearer_of(team):
    return bearer_for(team.memberships.get().user)


def bearer_for(person):
    _, secret = create_token(user=person, name="tuspy", scopes=[AccessToken.Scope.SUBMIT], expires_at=None)
    return {"Authorization": f"Bearer {secret}"}


def begin(server, bearer, size):
    metadata = ",".join(
        f"{key} {b64encode(value).decode()}" for key, value in (("filename", b"a.zip"), ("edition", b"vpc"))
    )
    headers = bearer | {"Tus-Resumable": "1.0.0", "Upload-Length": str(size), "Upload-Metadata": metadata}
    answer = requests.post(f"{server.address}/api/uploads/", headers=headers, timeout=60)
    assert answer.status_code == 201, answer.text
    return server.address + answer.headers["Location"]


def send(address, bearer, offset, body):
    headers = {
        "Tus-Resumable": "1.0.0",
        "Upload-Offset": str(offset),
        "Content-Type": "application/offset+octet-stream",
    }
    return requests.patch(address, data=body, headers=bearer | headers, timeout=60)


def offset_at(address, bearer):
    answer = requests.head(address, headers=bearer | {"Tus-Resumable": "1.0.0"}, timeout=60)
    return int(answer.headers["Upload-Offset"])


def open_part(server, address, bearer, *, announced, sent):
    """A connection that has sent the beginning of a part and stays open."""
    connection = socket.create_connection(("127.0.0.1", server.port))
    path = address.removeprefix(server.address)
    head = [f"PATCH {path} HTTP/1.1", f"Host: 127.0.0.1:{server.port}", f"Authorization: {bearer['Authorization']}"]
    head += ["Tus-Resumable: 1.0.0", "Upload-Offset: 0", "Content-Type: application/offset+octet-stream"]
    head += [f"Content-Length: {announced}", "", ""]
    connection.sendall("\r\n".join(head).encode() + sent)
    return connection
