"""Simulated evaluators for Locust: each opens the link, consents, fetches its clips and answers, as a browser does.

Run by `benchmarks.evaluators` in a process of its own, because Locust replaces the sockets of its process. Writes one
JSON line to LOG for every answer that it sent, with the status that came back, and prints one JSON object at the end.
A share of the evaluators quits midway without a word; some are hostile: they answer before they can have heard, send
another value for a locked trial, answer trials out of order, ask for clips of others and open their link many times.
"""

import argparse
import itertools
import json
import random
import re
from typing import Any

import gevent
from gevent.lock import Semaphore
from locust import FastHttpUser, constant, task
from locust.env import Environment

TASKS = ("verifiability", "naturalness", "intelligibility")
TOO_EARLY = 425
GONE = 410  # the lease was over: the person is told so
NO_REPLY = 0  # the connection broke: the answer is sent again
FOR_EVER_S = 1e6
_numbers = itertools.count(1)


def read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--host", required=True)
    parser.add_argument("--key", required=True, help="of the study's link")
    parser.add_argument("--users", type=int, required=True)
    parser.add_argument("--first", type=int, default=1, help="number of the first person")
    parser.add_argument("--quitting", type=float, default=0.0, help="share that quits midway")
    parser.add_argument("--hostile", type=float, default=0.0, help="share that misbehaves")
    parser.add_argument("--thinking-s", type=float, default=4.0, help="on average, about a trial")
    parser.add_argument("--log", required=True)
    return parser.parse_args()


class Evaluator(FastHttpUser):
    """One person in one session."""

    abstract = True
    wait_time = constant(0)
    network_timeout = connection_timeout = 120.0

    def on_start(self) -> None:
        self.number = self.arguments.first + next(_numbers) - 1
        self.chance = random.Random(self.number)
        self.quits = self.chance.random() < self.arguments.quitting
        self.is_hostile = self.chance.random() < self.arguments.hostile

    @task
    def take_part(self) -> None:
        try:
            if (token := self.join()) is not None:
                self.rate(token)
        finally:
            self.gone.release()
        gevent.sleep(FOR_EVER_S)  # who stops would be replaced while others still come

    def join(self) -> str | None:
        """The token of the session, before its first trial."""
        person, session, study = (f"{kind}{self.number:023x}" for kind in "abc")  # as Prolific makes them
        link = f"/listen/join/{self.arguments.key}/?PROLIFIC_PID={person}&SESSION_ID={session}&STUDY_ID={study}"
        opened = [self.client.get(link, name="open the link") for _ in range(5 if self.is_hostile else 1)]
        tokens = {match[1] for one in opened if (match := re.search(r"/listen/([\w-]{30,})/", one.url))}
        if len(tokens) != 1:
            self.note(kind="join", found=len(tokens), status=opened[0].status_code)
            return None
        token = tokens.pop()
        for step, fields in (("consent", {"agrees": "on"}), ("role-play", {})):
            self.client.post(f"/listen/{token}/step/{step}/", data=fields, name=f"step {step}")
        return token

    def rate(self, token: str) -> None:
        tab = f"tab-of-{self.number}"
        taken = self.client.post(f"/listen/{token}/take-over", json={"tab": tab}, name="take over")
        state = taken.json() if taken.status_code == 200 else {}
        trials = {trial["position"]: trial for trial in state.get("trials", [])}
        position, total = state.get("next"), state.get("total", 0)
        if position is None:
            self.note(kind="no-place", token=token)
        stops_after = self.chance.randint(1, max(1, total - 1)) if self.quits else total + 1
        done = 0
        while position is not None:
            if done >= stops_after:
                return
            trial = trials[position]
            if self.is_hostile:
                self.misbehave(token, tab, position, total)
            self.fetch(trial)
            told = self.answer(token, tab, trial)
            if told is None:
                return
            trials |= {one["position"]: one for one in told["ahead"]}
            position, done = told["next"], done + 1

    def fetch(self, trial: dict) -> None:
        for sample in trial["samples"]:
            with self.client.get(sample["address"], name="clip", catch_response=True) as reply:
                reply.success() if reply.status_code in {200, GONE} else reply.failure(str(reply.status_code))

    def answer(self, token: str, tab: str, trial: dict) -> dict | None:
        """Listen, think, answer, and send it again until it is acknowledged; None when the session is over."""
        seconds = sum(sample["seconds"] for sample in trial["samples"])
        gevent.sleep(seconds + self.chance.expovariate(1 / self.arguments.thinking_s))
        answers = {task: self.chance.randint(1, 10) for task in trial["tasks"]}
        heard = [(sample["slot"], round(1000 * sample["seconds"])) for sample in trial["samples"]]
        plays = [{"slot": slot, "started_ms": 0, "heard_ms": ms, "is_whole": True} for slot, ms in heard]
        body = {"tab": tab, "position": trial["position"], "answers": answers, "client_ms": 1000, "plays": plays}
        while True:
            with self.client.post(f"/listen/{token}/answers", json=body, name="answer", catch_response=True) as reply:
                status, told = reply.status_code, _json(reply)
                self.note(kind="answer", token=token, position=trial["position"], answers=answers, status=status)
                reply.success() if status in {200, TOO_EARLY, GONE} else reply.failure(
                    f"{status} {told.get('problem')}"
                )
            self.client.post("/bare", json=body, name="bare")
            if status == TOO_EARLY:
                gevent.sleep(told["retry_after_s"])
            elif status == NO_REPLY:  # the same again does no harm
                gevent.sleep(1)
            else:
                return told if status == 200 else None

    def misbehave(self, token: str, tab: str, position: int, total: int) -> None:
        """Whatever somebody might try who wants to be paid for nothing; none of it may be taken."""
        tries = (
            ("too early", position, dict.fromkeys(TASKS, 1), {TOO_EARLY}),
            ("out of order", total, dict.fromkeys(TASKS, 1), {409, TOO_EARLY} if position == total else {409}),
            ("locked", position - 1, {task: self.chance.randint(1, 10) for task in TASKS}, {409, 422, 200}),
            ("no rating", position, {}, {422}),
        )
        for name, where, answers, refusals in tries:
            body = {"tab": tab, "position": where, "answers": answers, "client_ms": 1, "plays": []}
            with self.client.post(
                f"/listen/{token}/answers", json=body, name=f"hostile: {name}", catch_response=True
            ) as reply:
                self.note(
                    kind="hostile", name=name, token=token, position=where, answers=answers, status=reply.status_code
                )
                fits = reply.status_code in {*refusals, GONE}  # GONE: the place has ended meanwhile
                reply.success() if fits else reply.failure(f"{name}: {reply.status_code}")

    def note(self, **line: object) -> None:
        self.lines.write(json.dumps(line) + "\n")
        self.lines.flush()


def _json(reply: Any) -> dict:
    try:
        return reply.json()
    except (TypeError, ValueError):  # nothing at all, or a page
        return {}


def main() -> None:
    arguments = read_arguments()
    with open(arguments.log, "a", encoding="utf-8") as lines:  # noqa: PTH123
        gone = Semaphore(0)
        own = {"arguments": arguments, "lines": lines, "gone": gone, "host": arguments.host}
        person = type("Person", (Evaluator,), own)
        environment = Environment(user_classes=[person])
        runner = environment.create_local_runner()
        runner.start(arguments.users, spawn_rate=arguments.users / 10)
        for _ in range(arguments.users):
            gone.acquire()
        runner.quit()
    print(json.dumps(told(environment)))


def told(environment: Environment) -> dict:
    """By name of the request: how many, failures, per second, p50 and p95 in ms; the problems by their text."""
    stats = {
        name: {
            "requests": entry.num_requests,
            "failures": entry.num_failures,
            "per_s": entry.total_rps,
            "p50_ms": entry.get_response_time_percentile(0.5),
            "p95_ms": entry.get_response_time_percentile(0.95),
        }
        for (name, _), entry in environment.stats.entries.items()
    }
    problems = {f"{error.name}: {error.error}": error.occurrences for error in environment.stats.errors.values()}
    return {"stats": stats, "problems": problems}


if __name__ == "__main__":
    main()
