"""Twenty hostile archives and a good one after them, on a portal with two workers: how long does the good one wait?

Run from the root of the repository: ``python -m benchmarks.hostile_archives``. Starts a portal of its own in a folder
that is removed again; with ``evaluated`` behind it, its workers first make and evaluate the baselines of the demo, and
hold what that needs. The good archive must be accepted within two minutes and every hostile one refused; the page that
tells whether the portal is ready is asked all the while, and the memory of the processes that read archives is summed
up: what they share with others in proportion, and for comparison without that.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

BUDGET_S = 120
BUDGET_MB = 500
PATIENCE_S = 900
ADDRESS = "127.0.0.1:8931"
ROOT = Path(__file__).parents[1]
STAMP = "exp/results-2022-07-01-10-00-00"
DETECTION = f"{STAMP}/ASV-libri_dev_enrolls_anon-libri_dev_trials_f_anon"
MEGABYTE = 10**6
FROM_TESTS = (
    *("bomb_gzip", "zip_quoted_overlap", "gzip_of_empty_streams"),
    *("xz_with_huge_dictionary", "bomb_zip_of_many", "bzip2_of_empty_streams", "bomb_zip_lzma"),
)


def main() -> int:
    """Print the figures; the exit status is 1 where one misses its budget."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"PORTAL_DATA_DIR": folder, "DJANGO_SETTINGS_MODULE": "portal.config.settings"}
        import django

        django.setup()
        from django.core.management import call_command

        call_command("migrate", verbosity=0)
        with _portal() as portal:
            if "evaluated" in sys.argv[1:]:
                _evaluate_baselines()
            return _measure(portal)


def _evaluate_baselines() -> None:
    """Two baselines of the demo, which the portal makes, attacks and recognises, until one of them is evaluated."""
    from django.core.management import call_command

    from portal.challenges.models import Corpus
    from portal.demo.challenge import make_demo_edition, select_demo_submissions, start_demo_baselines
    from portal.demo.terminal import Screen
    from portal.removal.services import DEMO_CORPUS
    from portal.submissions.models import Submission

    screen = Screen(lambda text: print(text, end="", flush=True), moves=False)
    organizer = import_module("tests.portal.factories").make_organizer()
    call_command("import_corpus", DEMO_CORPUS, name="demo", synthetic=True, shared=True)
    edition = make_demo_edition(corpus=Corpus.objects.get(), organizer=organizer, with_models=True, say=screen)
    start_demo_baselines(edition=edition, organizer=organizer, say=screen)
    ended = (Submission.State.EVALUATED, Submission.State.FAILED, Submission.State.REFUSED)
    begun = time.monotonic()
    while (
        not select_demo_submissions(edition).filter(state__in=ended).exists() and time.monotonic() - begun < PATIENCE_S
    ):
        time.sleep(2)
    found = list(select_demo_submissions(edition).values_list("state", flat=True))
    print(f"baselines after {time.monotonic() - begun:.0f} s: {', '.join(found)}", flush=True)


def _measure(portal: subprocess.Popen[bytes]) -> int:
    from portal.submissions.models import Submission

    archives, factories = (import_module(f"tests.portal.{name}") for name in ("archives", "factories"))
    edition = factories.make_edition(factories.make_corpus(speakers=4, utterances=8), scores_required=False)
    team = factories.make_team(edition)
    begun = time.monotonic()
    sent = {name: archives.submit(team, data, file_name=f"{name}.zip") for name, data in _hostile_archives()}
    good = archives.submit(factories.make_team(edition), archives.anonymised(edition.corpus), file_name="good.zip")
    print(f"{len(sent)} hostile archives, then the good one, sent within {time.monotonic() - begun:.1f} s", flush=True)
    begun, taken = time.monotonic(), dict[str, float]()
    ready, most_mb, most_own_mb = [], 0.0, 0.0
    open_states = (Submission.State.RECEIVED, Submission.State.CHECKING)
    while time.monotonic() - begun < PATIENCE_S:
        ready.append(_is_ready())
        readers = _readers(portal.pid)
        most_mb = max(most_mb, _sum_mb(readers, "Pss:"))
        most_own_mb = max(most_own_mb, _sum_mb(readers, "Private_Clean:", "Private_Dirty:"))
        for name, submission in [*sent.items(), ("good", good)]:
            submission.refresh_from_db(fields=["state", "report_summary"])
            if submission.state not in open_states:
                taken.setdefault(name, time.monotonic() - begun)
        if len(taken) == len(sent) + 1:
            break
        time.sleep(0.5)
    refused = [name for name, one in sent.items() if one.state == Submission.State.REFUSED]
    for name, submission in sent.items():
        said = next((row for row in submission.report_summary if row["severity"] == "error"), {"examples": ["nothing"]})
        print(f"{taken.get(name, PATIENCE_S):6.1f} s {submission.state:9} {name:26} {said['examples'][0][:130]}")
    good_s = taken.get("good", PATIENCE_S)
    print(f"{good_s:6.1f} s {good.state:9} the good one; ready {sum(ready)} of {len(ready)} times")
    is_sound = good.state not in (*open_states, Submission.State.REFUSED) and len(refused) == len(sent) and all(ready)
    print(f"good after {good_s:.0f} s (budget {BUDGET_S} s), {most_mb:.0f} MB (budget {BUDGET_MB} MB)", end="")
    print(f", {most_own_mb:.0f} MB without what is shared")
    return int(not is_sound or good_s > BUDGET_S or most_mb > BUDGET_MB)


def _hostile_archives() -> Iterator[tuple[str, bytes]]:
    """Small archives that take long to read, or once did."""
    hostile = import_module("tests.portal.hostile.corpus").ARCHIVES
    scores = "".join(f"{number % 40} u{number:07d} {number % 97}.5\n" for number in range(100_000))
    documents: dict[str, dict[str, str | bytes]] = {
        "digits": {f"{STAMP}/results.txt": f"EER: {'1' * 3 * MEGABYTE}%\n"},
        "numbers": {f"{STAMP}/results.txt": f"ASV-a\n  EER: {'1' * 90_000}x\n" * 40},
        "headers": {f"{STAMP}/results.txt": "ASV-a_trials_b\n  EER: 1%\n" * 150_000},
        "blanks": {f"{STAMP}/results.txt": (" " * 90_000 + "\n") * 42},
        "words": {f"{STAMP}/results.txt": ("_trials_" * 10_000 + " \n") * 47},
        "scores": {f"{DETECTION}/scores": scores * 14},
        "ragged": {f"{DETECTION}/scores": scores.replace(" ", "\t") * 14},
        "ranks": {"result_for_rank_anon": "---- ASR results ----\n" * 170_000},
        "targets": {"targets.csv": "utterance,target\n" + '"a\nb",""""\n' * 700_000},
        "systems": {f"exp/{n}/results-2022-07-01-10-00-{n:02d}/results.txt": "x y\n" * 200_000 for n in range(20)},
        "members": {f"a/{number}.txt": "" for number in range(99_000)},
        "hypotheses": {f"hypotheses/{n}.txt": "u " + "[" * 90_000 + "\n" for n in range(300)},
        "flac": {"wav/tones-s0-000.flac": b"fLaC\0\0\0\x22" + b"\x10\0\x10\0" + b"\0" * 6 + b"\x03\xe8\0\xff" * 5000},
    }
    for name, members in documents.items():
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            for path, text in members.items():
                archive.writestr(path, text)
        yield name, packed.getvalue()
    with tempfile.TemporaryDirectory() as folder:
        for name in FROM_TESTS:
            hostile[name].write(Path(folder, name))
            yield name, Path(folder, name).read_bytes()


@contextmanager
def _portal() -> Iterator[subprocess.Popen[bytes]]:
    """Web server, scheduler and a worker with two processes."""
    command = [sys.executable, "manage.py", "serve"]
    environment = os.environ | {"PORTAL_ADDRESS": ADDRESS, "PORTAL_WORKER_PROCESSES": "2"}
    portal = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT)
    try:
        ends = time.monotonic() + PATIENCE_S
        while not _is_ready() and time.monotonic() < ends:
            time.sleep(1)
        yield portal
    finally:
        portal.terminate()
        portal.wait()


def _is_ready() -> bool:
    with suppress(URLError, OSError), urlopen(f"http://{ADDRESS}/health/ready", timeout=10) as answer:
        return bool(json.load(answer)["ready"])
    return False


def _readers(portal: int) -> list[int]:
    """The processes that those of the worker of short jobs have started."""
    workers = [pid for pid in _children(portal) if "--queues mail,intake,light" in _command(pid)]
    processes = [pid for worker in workers for pid in _children(worker)]
    return [pid for process in processes for pid in _children(process)]


def _sum_mb(processes: list[int], *fields: str) -> float:
    """Of the memory of these processes what the kernel calls so."""
    return sum(_memory_kb(pid, fields) for pid in processes) / 1e3


def _children(pid: int) -> list[int]:
    with suppress(OSError):
        tasks = Path(f"/proc/{pid}/task").iterdir()
        return [int(child) for task in tasks for child in (task / "children").read_text().split()]
    return []


def _command(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    return ""


def _memory_kb(pid: int, fields: tuple[str, ...]) -> int:
    with suppress(OSError):
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        return sum(int(line.split()[1]) for line in lines if line.startswith(fields))
    return 0


if __name__ == "__main__":
    sys.exit(main())
