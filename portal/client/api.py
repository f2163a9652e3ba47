"""A portal as the commands of ``vp`` reach it: which one, by which token, and a sentence for whatever goes wrong.

Server and token come from the options, the environment (`VP_SERVER`, `VP_TOKEN`) or what ``vp login`` has kept, in this
order. A kept token goes to the server that it was kept for and to no other.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar
from urllib.parse import urljoin, urlsplit

from typer import Option

from common.errors import CommandError, Refused, Unreachable
from common.terminal import print_message
from portal.client import PORTAL_VERSION, RELEASE

if TYPE_CHECKING:
    import httpx

T = TypeVar("T")
SERVER, TOKEN = "VP_SERVER", "VP_TOKEN"
FOLDER = "voiceprivacy"
MAX_PAUSE_S = 60
PARTIAL = 206
LONGEST_PAUSE_S = 15.0
PIECE_BYTES = 1 << 20
Server = Annotated[
    str | None, Option(metavar="URL", help=f"Address of the portal; else {SERVER}, else that of vp login.")
]
Patience = Annotated[float, Option(metavar="SECONDS", help="Time to keep trying without progress.")]
HOW_TO_LOG_IN = f"Make a token on your account page of the portal, then run vp login or set {TOKEN}."


def keep_trying(
    action: Callable[[], T],
    *,
    patience_s: float,
    pause: Callable[[float], None] = time.sleep,
    only_busy: bool = False,
) -> T:
    """Do it, again and again while the portal does not answer; each reason is said once.

    Args:
        only_busy: wait while the portal says that it is busy; where it does not answer at all, raise at once.

    Raises:
        Unreachable: it did not for longer than `patience_s`.
    """
    start, pause_s, said = time.monotonic(), 0.5, ""
    while True:
        try:
            return action()
        except Unreachable as error:
            if (only_busy and error.code != "busy") or time.monotonic() - start > patience_s:
                raise
            if pause_s > 2 and str(error) != said:
                said = str(error)
                print_message(f"\n{said} Trying again, for {patience_s:.0f} s at most.")
            pause(pause_s)
            pause_s = lengthen_pause(pause_s)


def lengthen_pause(pause_s: float) -> float:
    """Return how long to wait after one more failure."""
    return min(LONGEST_PAUSE_S, 2 * pause_s)


@contextmanager
def open_portal(server: str | None = None, token: str | None = None) -> Iterator[Portal]:
    """Yield the portal that a command works with.

    Raises:
        CommandError: none is known, or its address is none.
    """
    import httpx

    kept = read_kept()
    address = _address(server or os.environ.get(SERVER, "") or kept.get("server", ""))
    secret = token or os.environ.get(TOKEN, "").strip() or (kept["token"] if kept.get("server") == address else "")
    if not secret.isascii() or any(sign.isspace() for sign in secret):
        raise CommandError(f"The token holds an invalid character. {HOW_TO_LOG_IN}")
    headers = {"Accept": "application/json"} | ({"Authorization": f"Bearer {secret}"} if secret else {})
    timeout = httpx.Timeout(60, connect=10)
    try:
        client = httpx.Client(base_url=address, headers=headers, timeout=timeout, follow_redirects=False)
    except (httpx.InvalidURL, ValueError, ImportError) as error:  # of the address, or of a proxy in the environment
        raise CommandError(
            f"{address} cannot be reached with this address and these proxy settings: {error}."
        ) from error
    with client:
        yield Portal(address, client)


def _address(text: str) -> str:
    """Return the address of a portal in the form in which it is kept.

    Raises:
        CommandError: it is none.
    """
    if not text:
        raise CommandError(f"Which portal? Give its address by --server or {SERVER}, or run vp login.")
    try:
        url = urlsplit(text.strip())
        sound = (
            url.scheme in {"http", "https"}
            and bool(url.hostname)
            and url.port != 0
            and not re.search(r"\s", url.netloc)
        )
    except ValueError:
        sound = False
    if not sound or url.query or url.fragment or url.username:
        raise CommandError(f"{text}: expected the address of a portal, such as https://portal.example.org.")
    return f"{url.scheme}://{url.netloc}{url.path.rstrip('/')}"


class Portal:
    """Requests to a portal; every problem becomes an error with a sentence."""

    def __init__(self, address: str, client: httpx.Client) -> None:
        self.address, self._client = address, client
        self._is_compared = False

    def get(self, path: str, **parameters: Any) -> Any:
        """Return the JSON at an address below /api/."""
        return self._json(self.ask("GET", f"/api/{path}", params=parameters))

    def text(self, path: str, accept: str, **parameters: Any) -> str:
        """Return what stands at an address below /api/, in this format."""
        return self.ask("GET", f"/api/{path}", params=parameters, headers={"Accept": accept}).text

    def every(self, path: str, **parameters: Any) -> Iterator[dict[str, Any]]:
        """Yield every object of a list, page by page."""
        page = 1
        while True:
            content = self.get(path, page=page, page_size=200, **parameters)
            yield from content["results"]
            if not content["next"]:
                return
            page += 1

    def ask(self, method: str, path: str, **given: Any) -> httpx.Response:
        """Return one request; where the portal asks to wait, it waits.

        Raises:
            Unreachable: no answer, or one of a portal that is out of order.
            Refused: the portal says no.
        """
        for _ in range(5):
            response = self._send(method, path, **given)
            if response.status_code != 429:
                break
            pause = min(MAX_PAUSE_S, _seconds(response.headers))
            print_message(f"The portal asks for a pause of {pause} s.")
            time.sleep(pause)
        self._compare_versions(response.headers)
        if response.is_success:
            return response
        raise self._no(response)

    def _no(self, response: httpx.Response) -> Unreachable | Refused:
        sentence = self._sentence(response)
        if _is_unavailable(response.status_code):
            return Unreachable(sentence, code="busy")
        return Refused(response.status_code, sentence)

    def download(self, address: str, place: Path, tell: Callable[[int], object]) -> None:
        """Add to a file what it lacks of what stands at an address of this portal.

        Args:
            tell: is told how many bytes the file has.

        Raises:
            Unreachable: the line broke; what has arrived stays.
            Refused: the portal says no.
        """
        import httpx

        whole = urljoin(f"{self.address}/", address)
        if urlsplit(whole)[:2] != urlsplit(self.address)[:2]:
            raise CommandError(f"{self.address} offers its data at another address ({whole}); nothing was fetched.")
        done = place.stat().st_size if place.is_file() else 0
        headers = {"Accept": "*/*", "Accept-Encoding": "identity", "Range": f"bytes={done}-"}
        try:
            with self._client.stream("GET", whole, headers=headers) as response:
                if not response.is_success:
                    response.read()
                    raise self._no(response)
                done = done if response.status_code == PARTIAL else 0
                with place.open("r+b" if done else "wb") as file:
                    file.seek(done)
                    for piece in response.iter_raw(PIECE_BYTES):
                        file.write(piece)
                        done += len(piece)
                        tell(done)
        except httpx.RequestError as error:
            raise self._unreachable(error) from error

    def _compare_versions(self, headers: Mapping[str, str]) -> None:
        """Say once where the portal has another version than this program, and how to update."""
        found = headers.get(PORTAL_VERSION, RELEASE)
        if not self._is_compared and found != RELEASE:
            print_message(
                f"This is vp {RELEASE}, the portal has version {found}. Update: see {self.address}/downloads/."
            )
        self._is_compared = self._is_compared or PORTAL_VERSION in headers

    def _send(self, method: str, path: str, **given: Any) -> httpx.Response:
        import httpx

        try:
            return self._client.request(method, path, **given)
        except httpx.RequestError as error:
            raise self._unreachable(error) from error

    def _unreachable(self, error: httpx.RequestError) -> Unreachable:
        import httpx

        if isinstance(error, httpx.TimeoutException):
            return Unreachable(f"The portal at {self.address} does not answer in time.")
        reason = " ".join(str(error).split()) or type(error).__name__
        remedy = f"Check its address (--server or {SERVER}) and your connection."
        return Unreachable(f"The portal at {self.address} does not answer ({reason}). {remedy}")

    def _sentence(self, response: httpx.Response) -> str:
        status = response.status_code
        if _is_unavailable(status) and response.request.method == "HEAD":  # whose answers have no reason
            response = self._send("GET", str(response.request.url))
        detail = _detail(response)
        if status == 401:
            is_sent = "Authorization" in response.request.headers
            said = detail or "The portal does not accept this log-in."
            return f"{said if is_sent else 'You are not logged in.'} {HOW_TO_LOG_IN}"
        if detail:
            return detail
        if response.is_redirect:
            place = response.headers.get("Location", "").partition("/api/")[0]
            return f"{self.address} redirects to {place or 'another address'}. Give that address of the portal instead."
        if status in {404, 410} and response.request.method == "HEAD":
            return "The portal no longer has this upload."
        if _is_unavailable(status):
            return f"{self.address} answers with status {status} and no reason. It may be busy or just restarting."
        return f"{self.address} answers with status {status} and no reason. Is it the address of a VoicePrivacy Portal?"

    def _json(self, response: httpx.Response) -> Any:
        try:
            return response.json()
        except ValueError as error:
            raise CommandError(f"{self.address} gives no JSON. Is it the address of a VoicePrivacy Portal?") from error


def _is_unavailable(status: int) -> bool:
    """Return whether another try may help: an error of the server other than a full disk (507)."""
    return status >= 500 and status != 507


def _detail(response: httpx.Response) -> str:
    if not response.headers.get("Content-Type", "").startswith("application/problem+json"):
        return ""
    try:
        return str(response.json().get("detail", ""))
    except (ValueError, AttributeError):
        return ""


def _seconds(headers: Mapping[str, str]) -> int:
    text = headers.get("Retry-After", "")
    return int(text) if text.isdecimal() else 5


# What vp keeps -------------------------------------------------------------------------------------


def find_folder() -> Path:
    """Return where this user keeps the configuration of ``vp``."""
    given = os.environ.get("XDG_CONFIG_HOME", "")
    try:
        return (Path(given) if given.startswith("/") else Path.home() / ".config") / FOLDER
    except RuntimeError as error:
        raise CommandError("You have no home folder on this machine. Set XDG_CONFIG_HOME.") from error


def read_kept() -> dict[str, str]:
    """Server and token of ``vp login``; empty where there was none."""
    try:
        found = json.loads((find_folder() / "login.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    known = {name: found.get(name) for name in ("server", "token")} if isinstance(found, dict) else {}
    return {name: text for name, text in known.items() if isinstance(text, str)} if all(known.values()) else {}


def keep_login(server: str, token: str) -> Path:
    """Keep server and token for the next commands, readable by this user only."""
    return write_private(find_folder() / "login.json", {"server": server, "token": token})


def write_private(path: Path, content: Mapping[str, Any]) -> Path:
    """Return a JSON file that only this user can read; it is there as a whole or not at all."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        half = path.with_name(f".{path.name}.{os.getpid()}")
        half.unlink(missing_ok=True)
        descriptor = os.open(half, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            json.dump(content, stream)
        half.replace(path)
    except OSError as error:
        raise CommandError(f"{path}: it cannot be written, “{error.strerror}”.") from error
    return path
