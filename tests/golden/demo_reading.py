"""Read a running portal as its people do, over HTTP: pages by their links, files by their addresses, and the API."""

from __future__ import annotations

import csv
import io
import re
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urljoin, urlsplit

import httpx

from tests.golden.demo_rules import NOT_KEPT, plain, plain_address, plain_answer

PATIENCE_S = 120.0
AGAIN_AFTER_S = 10.0
# What crawling leaves alone: Django's own pages, and the API, which is read by its description.
NOT_READ = ("/media/", "/static/", "/admin/", "/api/")
# Files that are noted and not loaded: pictures are drawn from numbers that are read, archives hold times.
NOT_LOADED = (".svg", ".pdf", ".png", ".zip", ".whl", ".flac", ".wav")
STEPS_OF_A_SESSION = 5


class Page(HTMLParser):
    """The title of a page, its links, and the fields of its last form."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.title, self.action = "", ""
        self.links: list[str] = []
        self.fields: dict[str, str] = {}
        self._in_title, self._choice = False, ""
        self.feed(text)
        self.title = " ".join(self.title.split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self._in_title = tag == "title" and not self.title  # drawings have titles, too
        if tag == "a" and found.get("href"):
            self.links.append(found["href"])
        if tag == "form":
            self.fields, self.action = {}, found.get("action") or ""
        if tag == "input" and found.get("name"):
            self.fields.setdefault(found["name"], found.get("value") or "")
        if tag == "select":
            self._choice = found.get("name") or ""
        if tag == "option" and found.get("value"):
            self.fields.setdefault(self._choice, found["value"])

    def handle_data(self, data: str) -> None:
        if self._in_title:
            self.title += data

    def handle_endtag(self, _: str) -> None:
        self._in_title = False


class Reader:
    """Somebody who reads the portal: a visitor, or whose account it is."""

    def __init__(self, base: str, email: str = "", password: str = "") -> None:
        self.client = httpx.Client(base_url=base, timeout=PATIENCE_S)
        if email:
            answer = self.post("/log-in/", login=email, password=password)
            assert answer.status_code == 302, f"{email} cannot log in: {answer.status_code}"

    def get(self, address: str) -> httpx.Response:
        """Return the answer; one that says "too often" is asked for again."""
        while (answer := self.client.get(address)).status_code == httpx.codes.TOO_MANY_REQUESTS:
            time.sleep(AGAIN_AFTER_S)
        return answer

    def post(self, address: str, **fields: str) -> httpx.Response:
        """Send the form of a page with its hidden fields and these."""
        hidden = Page(self.get(address).text).fields
        headers = {"Referer": str(self.client.base_url.join(address))}
        return self.client.post(address, data=hidden | fields, headers=headers)


def crawl(reader: Reader, starts: Sequence[str] = ("/",)) -> Iterator[tuple[str, str, httpx.Response | None]]:
    """Follow every link from the home page.

    Pages that differ only in a number or a name of a recording are one: the first of them is read.

    Yields:
        Address, plain address and answer; None for a file that is not loaded.
    """
    known: set[str] = set()
    waiting = deque(starts)
    while waiting:
        address = waiting.popleft()
        known_as = plain_address(address)
        if known_as in known:
            continue
        known.add(known_as)
        answer = None if address.endswith(NOT_LOADED) else reader.get(address)
        yield address, known_as, answer
        if answer is not None and answer.is_redirect:
            waiting.append(urlsplit(answer.headers["location"]).path)
        elif answer is not None and answer.is_success and _kind_of(answer) == "text/html":
            waiting.extend(_follow(address, Page(answer.text).links))


def read_pages(reader: Reader) -> tuple[dict[str, str], dict[str, Any]]:
    """Follow every link from the home page, as `crawl` does.

    Returns:
        By plain address, what is there: the title of a page, the kind of a file, or where it leads; and the content of
        the files with numbers.
    """
    pages: dict[str, str] = {}
    files: dict[str, Any] = {}
    for address, known_as, answer in crawl(reader):
        if answer is None:
            pages[known_as] = "a file"
        elif answer.is_redirect:
            pages[known_as] = f"leads to {plain_address(urlsplit(answer.headers['location']).path)}"
        elif not answer.is_success:
            pages[known_as] = f"answers {answer.status_code}"
        elif (kind := _kind_of(answer)) == "text/html":
            pages[known_as] = plain(Page(answer.text).title).removesuffix(" · VoicePrivacy Portal")
        else:
            pages[known_as] = kind
            if kind in READ_AS and not address.startswith(NOT_KEPT):
                files[known_as] = plain_answer(known_as, READ_AS[kind](answer))
    return pages, files


def _kind_of(answer: httpx.Response) -> str:
    return answer.headers.get("content-type", "").partition(";")[0]


def read_session(base: str, link: str) -> Iterator[tuple[str, str]]:
    """Begin as an evaluator and go on as far as forms alone lead: the plain address and the title of each page."""
    reader = Reader(base)
    answer = reader.get(link)
    action, fields = link, {}
    for _ in range(STEPS_OF_A_SESSION):
        yield plain_address(urlsplit(str(answer.url)).path), plain(Page(answer.text).title)
        answer = reader.client.post(action, data=fields, follow_redirects=True)
        page = Page(answer.text)
        action, fields = page.action, {name: value or "on" for name, value in page.fields.items()}


def _follow(address: str, links: list[str]) -> Iterator[str]:
    """Yield the addresses on this portal that links lead to, without what they ask for."""
    for link in links:
        target = urlsplit(urljoin(f"http://portal{address}", link))
        if target.netloc == "portal" and not target.path.startswith(NOT_READ):
            yield target.path


def _read_csv(answer: httpx.Response) -> list[dict[str, Any]]:
    rows = csv.DictReader(io.StringIO(answer.text.removeprefix("\ufeff")))
    return [{column: _read_cell(cell) for column, cell in row.items()} for row in rows]


def _read_cell(text: str) -> Any:
    """Return the number that a cell holds, where it is one and is written as numbers are."""
    for kind in (int, float):
        try:
            number = kind(text)
        except ValueError:
            continue
        if kind is float or str(number) == text:
            return number
    return text


READ_AS: Mapping[str, Callable[[httpx.Response], Any]] = {
    "text/csv": _read_csv,
    "application/json": httpx.Response.json,
    "application/problem+json": httpx.Response.json,
    "application/toml": lambda answer: answer.text.splitlines(),
    "application/x-tex": lambda answer: answer.text.splitlines(),
}


class Api:
    """What one reader is answered by every address of the API that reads."""

    LEFT_OUT = (
        "/api/schema/",  # words on the shapes of what is answered here
        "/api/editions/{edition}/data/{file}",  # speech, and lists that stand in other answers
        "/api/submissions/{id}/documents/{document}",
    )

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self.answers: dict[str, dict[str, Any]] = {}

    def read(self) -> dict[str, Any]:
        """Return the answers by plain address; what an address needs is taken from the answers of others.

        Raises:
            AssertionError: the API has an address with a gap that nobody here knows how to fill.
        """
        for route, operations in sorted(self.reader.get("/api/schema/").json()["paths"].items()):
            if "get" in operations and route not in self.LEFT_OUT:
                asked = [one["name"] for one in operations["get"].get("parameters", ()) if _is_needed(one)]
                for address in self._addresses("?".join([route, *(f"{name}={{{name}}}" for name in asked)])):
                    self._ask(address)
        return {plain_address(address): plain_answer(address, answer) for address, answer in self.answers.items()}

    def _addresses(self, route: str) -> list[str]:
        """Return the addresses of a route, each of its gaps filled with all that is known for it."""
        addresses = [""]
        for part in re.split(r"(\{\w+\})", route):
            if part.startswith("{"):
                addresses = [f"{start}{value}" for start in addresses for value in self._fillings(start)]
            else:
                addresses = [start + part for start in addresses]
        return addresses

    def _fillings(self, start: str) -> list[Any]:
        """Return what can stand behind this beginning of an address."""
        for pattern, find in FILLINGS.items():
            if found := re.fullmatch(pattern, start):
                return list(dict.fromkeys(find(self, *found.groups())))
        raise AssertionError(f"What can stand behind {start}? Add it to FILLINGS.")

    def names(self, address: str, field: str = "name") -> list[Any]:
        """Return this field of all that a list holds."""
        answer = self._ask(address)
        return [one[field] for one in answer.get("results", ())]

    def of_editions(self, rest: str, field: str = "name") -> list[Any]:
        """Return this field of all that a list of each edition holds."""
        lists = [f"/api/editions/{edition}/{rest}" for edition in self.names("/api/editions/")]
        return [found for address in lists for found in self.names(address, field)]

    def data_sets(self) -> list[str]:
        """Return the names of the data sets that are to be anonymised."""
        answers = [self._ask(f"/api/editions/{edition}/requirements/") for edition in self.names("/api/editions/")]
        return [one["name"] for answer in answers for one in answer.get("data_sets", ())]

    def other_versions(self, submission: str) -> list[int]:
        """Return the other submissions of the same system."""
        system_of = dict(zip(*(self.names("/api/submissions/", field) for field in ("id", "system")), strict=True))
        number = int(submission)
        return [one for one, system in system_of.items() if system == system_of[number] and one != number]

    def first_tables(self, study: str) -> list[str]:
        """Return one table of a study as addresses have it; all of them stand in its results."""
        return list(self._ask(f"/api/studies/{study}/results").get("tables", ()))[:1]

    def _ask(self, address: str) -> Any:
        """Return the answer, which is asked for once; a list as a whole."""
        if address not in self.answers:
            answer = self.reader.get(address)
            kind = _kind_of(answer)
            content = READ_AS.get(kind, lambda _: kind)(answer)
            rest = content.get("next") if isinstance(content, dict) else None
            while rest:
                page = self.reader.get(rest).json()
                content["results"] += page["results"]
                rest = page["next"]
            self.answers[address] = {"status": answer.status_code, "answer": content}
        return self.answers[address]["answer"]


def _is_needed(parameter: Mapping[str, Any]) -> bool:
    return parameter["in"] == "query" and bool(parameter.get("required"))


# What can stand behind the beginning of an address.
FILLINGS: Mapping[str, Callable[..., list[Any]]] = {
    "/api/editions/": lambda api: api.names("/api/editions/"),
    "/api/corpora/": lambda api: api.names("/api/editions/"),  # the demo names its edition after its corpus
    ".*/expected/": Api.data_sets,
    "/api/studies/": lambda api: api.of_editions("studies/"),
    r"/api/studies/([\w-]+)/results/": lambda api, study: [one.split("/")[0] for one in api.first_tables(study)],
    r"/api/studies/([\w-]+)/results/\w+/": lambda api, study: [one.split("/")[1] for one in api.first_tables(study)],
    "/api/submissions/": lambda api: api.names("/api/submissions/", "id"),
    r"/api/submissions/(\d+)/diff/": Api.other_versions,
    "/api/systems/": lambda api: api.names("/api/systems/"),
    r"/api/systems/.*\?data_set=": Api.data_sets,
    "/api/teams/": lambda api: api.names("/api/teams/", "id"),
    "/api/uploads/": lambda api: api.of_editions("uploads/", "id"),
}
