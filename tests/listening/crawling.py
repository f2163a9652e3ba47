"""Goes through a study over HTTP as an evaluator does, and keeps every byte that comes back."""

import json
import re
from dataclasses import dataclass, field
from urllib.parse import urljoin

import httpx

from listening.app.models import Session
from listening.app.sessions.selectors import list_questions
from tests.listening.answering import hear

SOURCE_OF_SCRIPT = re.compile(r"""(?:src|href|data-module|from|import\()\s*[=(]?\s*["']([^"']+\.(?:js|css|svg))["']""")

PURPOSES = re.compile(
    rb"\b(gold|bridge|scored|non-?targets?|targets?|control[ _-]trials?|attention[ _-]checks?)\b", re.I
)
PURPOSES_IN_CODE = re.compile(rb"\b(gold|bridge|non-?targets?|is_target|nontarget)\b", re.I)


@dataclass(frozen=True)
class Received:
    """One reply: all of it that a browser gets."""

    address: str
    status: int
    headers: bytes
    body: bytes
    kind: str

    @property
    def is_code(self):
        return self.kind.startswith(("text/javascript", "application/javascript", "text/css", "image/svg"))

    @property
    def is_words(self):
        return not self.is_code and self.kind.startswith(("text/", "application/json"))


@dataclass
class Crawler:
    """One evaluator's browser; `received` grows with every request."""

    base: str
    received: list[Received] = field(default_factory=list)

    def __post_init__(self):
        self.client = httpx.Client(base_url=self.base, follow_redirects=False, timeout=60)
        self.seen = set()
        self.address = ""

    @property
    def session(self):
        return Session.objects.get(token=self.token)

    @property
    def token(self):
        return self.address.strip("/").rpartition("/")[2]

    def ask(self, method, address, **how):
        reply = self.client.request(method, address, **how)
        headers = b"\n".join(name + b": " + value for name, value in reply.headers.raw)
        kind = reply.headers.get("Content-Type", "")
        # An address that this evaluator asked for is no news; what a reply says of further ones stands in the reply.
        self.received.append(Received(address, reply.status_code, headers, reply.content, kind))
        if kind.startswith("text/html"):
            self.follow(reply.text, address)
        return reply

    def follow(self, text, address):
        """Styles and scripts of a page, and what these load in turn."""
        for name in SOURCE_OF_SCRIPT.findall(text):
            found = urljoin(address, name)
            if found not in self.seen:
                self.seen.add(found)
                self.follow(self.ask("GET", found).text, found)

    # The way of a session -----------------------------------------------------------------------------

    def join(self, study):
        link = f"/listen/join/{study.link_key}/"
        self.ask("GET", link)
        self.ask("GET", f"{link}?lang=fr")
        self.address = self.ask("POST", link).headers["Location"]

    def page(self):
        return self.ask("GET", self.address)

    def post(self, step, **data):
        return self.ask("POST", f"{self.address}step/{step}/", data=data)

    def test(self, step, right=True):
        """Take a test of the screening: its page, its sounds, and an answer."""
        for sound in re.findall(r'data-sound="([^"]+)"', self.page().text):
            self.ask("GET", sound)
        row = self.session.screening_results.get(is_passed=None)
        given = [one if right else one % 3 + 1 for one in row.secret["right"]]
        answers = {f"answer{place}": answer for place, answer in enumerate(given, 1)}
        return self.post(step, attempt=row.attempt, kind=row.kind, **answers)

    def walk_to_trials(self):
        """All steps before the trials, each with something left out first."""
        self.walk_to_tests()
        while self.session.step in {"sound", "headphones"}:
            self.test(self.session.step)
        self.page()
        self.post("role-play")
        assert self.session.step == Session.Step.TRIALS
        return self.page()

    def walk_to_tests(self):
        for step in ("consent", "questions", "sound", "headphones"):
            self.page()
            self.post(step)
        self.post("consent", agrees="on")
        self.page()
        self.post("questions")
        self.post(
            "questions", **{question.name: _answer_to(question) for question in list_questions(self.session.study)}
        )

    def state(self):
        return self.ask("GET", f"{self.address}state").json()

    def tell(self, what, body):
        content = body if isinstance(body, str) else json.dumps(body)
        return self.ask("POST", f"{self.address}{what}", content=content, headers={"Content-Type": "application/json"})

    def fetch_clips(self, trial):
        for sample in trial["samples"]:
            self.ask("GET", sample["address"])
            self.ask("GET", sample["address"], headers={"Range": "bytes=0-9"})
            self.ask("GET", sample["address"], headers={"Range": "bytes=99999999-"})
            self.ask("HEAD", sample["address"])

    def answer(self, position, tasks, **more):
        body = {"tab": "one", "position": position, "answers": dict.fromkeys(tasks, 7), "client_ms": 9000}
        return self.tell("answers", body | more)

    def answer_all(self):
        """Every trial in order: too early at first, then heard and answered, then once more, then otherwise."""
        state = self.tell("take-over", {"tab": "one"}).json()
        trials = {trial["position"]: trial for trial in state["trials"]}
        position = state["next"]
        told = [state]
        while position is not None:
            trial = trials[position]
            self.fetch_clips(trial)
            self.answer(position, trial["tasks"])
            hear(self.session, position)
            reply = self.answer(position, trial["tasks"])
            assert reply.status_code == 200, reply.text
            told.append(reply.json())
            self.answer(position, trial["tasks"])
            self.answer(position, trial["tasks"], answers=dict.fromkeys(trial["tasks"], 3))
            self.tell("alive", {"tab": "one", "events": [{"kind": "pause", "ms": 5, "data": {}}]})
            trials |= {one["position"]: one for one in reply.json()["ahead"]}
            position = reply.json()["next"]
        return told


def _answer_to(question):
    if question.kind == "choice":
        return question.choices[0].value
    return {"language": "en", "number": 40}.get(question.kind, "word")


def names_of(study):
    """Everything that names a system, a team, the edition, the corpus, a speaker, an utterance, a file or an item."""
    names = {study.name, study.title, *study.conditions.values_list("code", flat=True)}
    if study.edition is not None:
        names |= _names_of_edition(study)
    names |= set(study.items.values_list("name", flat=True))
    for source, file in study.stimulus_files.values_list("source", "file"):
        names |= {source, file, file.rpartition("/")[2].partition(".")[0]}
    names |= set(study.presentations.values_list("key", flat=True))
    return {name.lower().encode() for name in names if len(name) > 2}


def _names_of_edition(study):
    edition, corpus = study.edition, study.edition.corpus
    names = {edition.name, edition.title, corpus.name, corpus.source}
    names |= {
        "quokka",
        "wombat",
        "narwhal",
        "axolotl",
        "pangolin",
        "okapi",
        "tapir",
        "capybara",
        "mongoose",
        "platypus",
    }
    for team in edition.teams.all():
        names |= {team.name, team.label, team.contact, team.contact_email, team.affiliation}
    for system in study.systems.all():
        of = system.submission.system
        names |= {system.code, of.name, of.label, of.title}
    names |= set(corpus.data_sets.values_list("name", flat=True))
    names |= set(corpus.speakers.values_list("name", flat=True))
    for name, transcript, audio in corpus.utterances.values_list("name", "transcript", "audio"):
        names |= {name, transcript, audio}
    return names


def _stands_in(name, whole):
    """Whether a name is said; a short one only by itself, for chance writes T01 into a random address now and then."""
    if len(name) > 5 or name not in whole:
        return name in whole
    return re.search(rb"(?<![0-9a-z])" + re.escape(name) + rb"(?![0-9a-z])", whole) is not None


def found_in(received, names):
    """By address the names and the words of purpose that stand in a reply."""
    found = []
    for one in received:
        whole = (one.headers + b"\n" + one.body).lower()
        where = f"{one.status} {one.address}"
        found += [f"{name.decode()} in {where}" for name in names if _stands_in(name, whole)]
        words = PURPOSES if one.is_words else PURPOSES_IN_CODE if one.is_code else None
        found += [f"{word.group().decode()} in {where}" for word in (words.finditer(whole) if words else ())]
    return found
