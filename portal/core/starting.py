"""What has to be in order before the processes of the portal start, told in one sentence where it is not."""

from __future__ import annotations

import fcntl
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.core.management import CommandError, call_command
from django.db import Error


def prepare() -> None:
    """Bring the database and the static files up to date.

    Raises:
        CommandError: the database does not answer or is damaged, or the data folder cannot be written.
    """
    try:
        call_command("migrate", verbosity=0)
        call_command("collectstatic", interactive=False, verbosity=0)
    except Error as error:
        raise CommandError(
            f"The database cannot be used ({_first_line(error)}). Start or mend it, or set PORTAL_DATABASE_URL; "
            "the SQLite file is portal.sqlite3 in the data folder."
        ) from error
    except OSError as error:
        raise CommandError(
            f"The data folder cannot be written ({error.strerror or error}). Make room or mend its rights."
        ) from error


@contextmanager
def hold(folder: Path, address: str) -> Iterator[None]:
    """Hold the data folder for this portal, whose processes share one queue and one database in it.

    The lock ends with this process, however that ends; those that it starts do not inherit it. Ctrl-C ends it quietly.

    Raises:
        CommandError: another portal holds the folder, or it cannot be locked.
    """
    with (folder / "lock").open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            raise CommandError(
                f"Another portal runs on the data folder {folder}: {file.read().strip() or 'it is just starting'}. "
                "Use that one, end it, or set PORTAL_DATA_DIR to another folder."
            ) from None
        except OSError as error:
            raise CommandError(
                f"The data folder {folder} cannot be locked ({error.strerror}). Set PORTAL_DATA_DIR to a local one."
            ) from None
        file.truncate(0)
        file.write(f"process {os.getpid()}, http://{address}/\n")
        file.flush()
        try:
            yield
        except KeyboardInterrupt:  # Ctrl-C before the processes run
            raise SystemExit(130) from None


def require_free(address: str) -> None:
    """Refuse an address at which the web server could not listen.

    Raises:
        CommandError: it is taken or not an address of this machine.
    """
    host, _, port = address.rpartition(":")
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(place)
    except OSError as error:
        raise CommandError(
            f"The address {address} cannot be used ({error.strerror}). Choose another, such as 127.0.0.1:8001, with "
            "make demo ADDRESS=… or make run ADDRESS=…"
        ) from None


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
