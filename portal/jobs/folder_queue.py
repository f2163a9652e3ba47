"""The embedded queue: messages are files in a folder, for a portal on one machine.

It stands in for kombu's own folder transport, whose worker stops permanently when an idle child of it is killed, dies
when the folder is missing, and may read half a message. Here a message appears whole, the process that removes its file
has taken it, and the folder is made where it is needed; Celery's event loop polls it, which gives each child a pipe of
its own.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from queue import Empty
from typing import Any

from kombu.transport import TRANSPORT_ALIASES, virtual


class Channel(virtual.Channel):
    """Oldest message first, and those of the queues `first` before all others, in this order.

    The transport options name the folder (`data_folder_in`) and these queues.
    """

    def _folder(self) -> Path:
        folder = Path(self.connection.client.transport_options["data_folder_in"])
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def _messages(self, queue: str) -> list[Path]:
        return sorted(self._folder().glob(f"*.{queue}.msg"))

    def _put(self, queue: str, message: dict[str, Any], **_: Any) -> None:
        name = f"{time.time_ns()}-{uuid.uuid4().hex}.{queue}"
        draft = self._folder() / f"{name}.part"
        draft.write_text(json.dumps(message))
        draft.rename(draft.with_suffix(".msg"))

    def _get(self, queue: str, timeout: float | None = None) -> dict[str, Any]:  # noqa: ARG002
        for file in self._messages(queue):
            with suppress(FileNotFoundError):  # another worker was faster
                text = file.read_text()
                file.unlink()
                with suppress(ValueError):  # nothing that we wrote
                    return json.loads(text)
        raise Empty

    def _poll(self, cycle: Any, callback: Callable[..., None], timeout: float | None = None) -> None:
        for first in self.connection.client.transport_options.get("first", ()):
            if first in self._active_queues:
                with suppress(Empty):
                    self._get_and_deliver(first, callback)
                    return
        super()._poll(cycle, callback, timeout=timeout)

    def _size(self, queue: str) -> int:
        return len(self._messages(queue))

    def _purge(self, queue: str) -> int:
        messages = self._messages(queue)
        for file in messages:
            file.unlink(missing_ok=True)
        return len(messages)


class Transport(virtual.Transport):
    """Polled by Celery's event loop. A folder that cannot be read is a lost connection: the worker tries again."""

    Channel = Channel
    driver_type = driver_name = "filesystem"
    implements = virtual.Transport.implements.extend(asynchronous=True)
    connection_errors: tuple[type[Exception], ...] = (*virtual.Transport.connection_errors, OSError)  # type: ignore[assignment]

    def register_with_event_loop(self, connection: Any, loop: Any) -> None:  # noqa: ARG002
        loop.call_repeatedly(self.polling_interval, _take_all, self.cycle.get, self._deliver)  # type: ignore[union-attr]

    def driver_version(self) -> str:
        return "1"


def _take_all(get: Callable[..., None], deliver: Callable[..., None]) -> None:
    with suppress(Empty):
        while True:
            get(deliver)


def install() -> None:
    """Let addresses that begin with ``filesystem:`` mean this queue."""
    TRANSPORT_ALIASES["filesystem"] = f"{__name__}:Transport"
