"""Proof that all processes of a portal have the same files and the same secret key.

Every minute the web server writes a file with a number that nobody can guess, and the number and a fingerprint of its
secret key to the database. A worker reads that file: it has the same files exactly if it finds that number. Two
machines without a common folder, or with two keys, would otherwise fail at each file and each signed address.
"""

from __future__ import annotations

import hashlib
import logging
import secrets
import socket
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.core.files.storage import default_storage
from django.core.management import CommandError
from django.db import connection

from portal.core.clock import read_clock
from portal.core.health import write_heartbeat
from portal.core.keys import keyed_hashes
from portal.core.models import Heartbeat
from portal.core.storage import StorageAway, delete_old, read_stored, replace_named

KIND = "probe"
FOLDER = "health"  # of the stored files
LEFT_AFTER_S = 86_400.0
EVERY_S = 60.0
CURRENT = timedelta(seconds=3 * EVERY_S)  # a web server that wrote within this time is running
FORGOTTEN_AFTER = timedelta(days=30)
OTHER_FILES = (
    "This worker does not find what {writer} stored {when}: the two have different files. Set PORTAL_FILES_URL to the "
    "same place on every machine, or PORTAL_DATA_DIR to one folder that all of them mount. It takes no job until then."
)
OTHER_KEY = (
    "PORTAL_SECRET_KEY is not that of {writer}. Set the same one on every machine; while it changes, name the "
    "former one in PORTAL_SECRET_KEY_FALLBACKS."
)
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Probe:
    """What a web server wrote: the file `key` holds `number`; `secret` is the fingerprint of its secret key."""

    writer: str
    at: datetime
    key: str
    number: str
    secret: str


def secret_fingerprints() -> list[str]:
    """The same for the same secret key, and nothing that tells the key; then those of former keys still accepted."""
    return [mark.hex() for mark in keyed_hashes("portal.core.storage_probes", "fingerprint")]


def write_probe() -> None:
    """Write a new number as this web server; first the file, so that the row never tells of one that is not there.

    Raises:
        StorageAway, OSError: the file cannot be written.
    """
    writer = _own_name()
    key, number = f"{FOLDER}/probe-{hashlib.sha256(writer.encode()).hexdigest()[:16]}", secrets.token_hex(16)
    replace_named(key, number.encode())
    write_heartbeat(writer, kind=KIND, key=key, number=number, secret=secret_fingerprints()[0])


def _own_name() -> str:
    return f"the web server {settings.ADDRESS} on {socket.gethostname()}"


def keep_writing() -> threading.Thread:
    """Write a probe now and every minute, for as long as this process lives."""

    def write() -> None:
        while True:
            try:
                write_probe()
            except Exception as error:
                log.warning("No probe for the workers could be written: %s", error)
            finally:
                connection.close()
            pause.wait(EVERY_S)

    pause = threading.Event()
    thread = threading.Thread(target=write, name="probes", daemon=True)
    thread.start()
    return thread


def forget_probes(now: datetime) -> int:
    """Delete what web servers wrote that are gone for a month, and what killed checks of health left; how many files.

    The row goes last, so that a process that dies in between leaves nothing that nobody finds again.
    """
    old = Heartbeat.objects.filter(kind=KIND, at__lte=now - FORGOTTEN_AFTER)
    known = set(Heartbeat.objects.filter(kind=KIND).exclude(pk__in=old).values_list("details__key", flat=True))
    with suppress(FileNotFoundError):
        stored = [f"{FOLDER}/{name}" for name in default_storage.listdir(FOLDER)[1]]
        left = [key for key in stored if key not in known and delete_old(key, time.time() - LEFT_AFTER_S)]
        old.delete()
        return len(left)
    return 0


def find_probes() -> list[Probe]:
    """The probes of the web servers that run; where none does, the newest."""
    now = read_clock()
    rows = Heartbeat.objects.filter(kind=KIND, at__gt=now - FORGOTTEN_AFTER).order_by("-at")
    found = [Probe(row.name, row.at, **row.details) for row in rows]
    return [one for one in found if one.at > now - CURRENT] or found[:1]


def find_problem(probes: list[Probe], now: datetime) -> str:
    """Why this process cannot work for these web servers; "" where it reads what they wrote."""
    for probe in probes:
        if probe.secret not in secret_fingerprints():
            return OTHER_KEY.format(writer=probe.writer)
        try:
            found = read_stored(probe.key)
        except (StorageAway, OSError) as error:
            return f"This worker does not read what {probe.writer} stored: {error} It takes no job until then."
        if found is None or found.decode(errors="replace") != probe.number:
            when = f"{max(0, round((now - probe.at).total_seconds()))} s ago"
            return OTHER_FILES.format(writer=probe.writer, when=when)
    return ""


def require_same_secret(*, is_web: bool = False) -> None:
    """Refuse to start with another secret key than the web server has.

    Args:
        is_web: this is a web server itself, which may bring a new key unless another one runs.

    Raises:
        CommandError: the keys differ.
    """
    now = read_clock()
    for probe in find_probes():
        is_other = probe.writer != _own_name() and probe.at > now - CURRENT
        if probe.secret not in secret_fingerprints() and (is_other or not is_web):
            raise CommandError(OTHER_KEY.format(writer=probe.writer))
