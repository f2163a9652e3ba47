"""What a journey through the portal needs: a small corpus, its recipe, archives to hand in, and the portal's mails.

The speech is a part of the demo corpus, three women and three men, so that a whole evaluation takes seconds.
"""

import csv
import re
import shutil
import time
from collections import Counter
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path

import requests
import soundfile
from django.conf import settings

from portal.challenges.rules import read_recipe_text
from portal.demo import archives
from tests.portal.browser import reporting
from tests.portal.processes.programs import Portal, free_port, wait_until

DEMO = settings.BASE_DIR / "demo"
SPEAKERS_OF_A_GENDER = 3
CLICKED = "clicked by a hand"
COUNT_CLICKS = f"addEventListener('click', (event) => event.isTrusted && console.debug('{CLICKED}'), true)"
STAMP = "2026-11-01-12-00-00"
# Nothing here may be taken for lost because the machine is busy.
PATIENT = {"PORTAL_JOB_HEARTBEAT_S": "5", "PORTAL_JOB_LOST_AFTER_S": "60", "PORTAL_SWEEP_EVERY_S": "5"}


def fill(page, button, **fields):
    """Fill in the fields of these names, and press the button, which leads to another page."""
    for name, value in fields.items():
        page.locator(f"[name={name}]").fill(value)
    with page.expect_navigation():
        page.get_by_role("button", name=button, exact=True).click()


def copy_speech(folder, speakers_of_a_gender=SPEAKERS_OF_A_GENDER, enrolled=5, tried=7, seconds=None):
    """Part of the demo corpus in a folder of its own, with a manifest: so many utterances of each speaker at most.

    `seconds`: of the middle of each recording; None: all of it.
    """
    with (DEMO / "corpus" / "utterances.csv").open(encoding="utf-8", newline="") as file:
        table = csv.DictReader(file)
        rows, columns = list(table), list(table.fieldnames or ())
    genders = {row["speaker"]: row["gender"] for row in rows}
    met: Counter[str] = Counter()
    chosen = {name for name, gender in genders.items() if met.update(gender) or met[gender] <= speakers_of_a_gender}
    most = {"enrolment": enrolled, "trial": tried}
    taken: Counter[tuple[str, str]] = Counter()
    rows = [row for row in rows if row["speaker"] in chosen]
    rows = [row for row in rows if taken.update([who := (row["speaker"], row["role"])]) or taken[who] <= most[who[1]]]
    if seconds is not None:
        columns.remove("duration_s")
        rows = [{name: row[name] for name in columns} for row in rows]
    folder.mkdir(parents=True)
    with (folder / "utterances.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    for row in rows:
        (folder / row["path"]).parent.mkdir(exist_ok=True)
        if seconds is None:
            shutil.copy(DEMO / "corpus" / row["path"], folder / row["path"])
        else:
            samples, rate_hz = soundfile.read(DEMO / "corpus" / row["path"], dtype="int16")
            middle, half = samples.size // 2, round(seconds * rate_hz / 2)
            soundfile.write(folder / row["path"], samples[middle - half : middle + half], rate_hz)
    return folder


class Notes:
    """How many clicks and minutes each part of a journey takes its people; printed at the end of the test."""

    def __init__(self) -> None:
        self.parts: list[tuple[str, int, float]] = []

    def take(self, part, page, act, *more):
        """Let somebody do a part on their page, `act(page, *more)`, and note what it takes."""
        clicks: list[object] = []
        began = time.monotonic()

        def count(message):
            if message.text == CLICKED:
                clicks.append(message)

        page.on("console", count)
        try:
            return act(page, *more)
        finally:
            page.remove_listener("console", count)
            self.parts.append((part, len(clicks), (time.monotonic() - began) / 60))

    def __str__(self):
        together = "together", sum(one[1] for one in self.parts), sum(one[2] for one in self.parts)
        rows = [*self.parts, together]
        return "\n".join(["clicks  minutes  part", *(f"{one[1]:6d}  {one[2]:7.1f}  {one[0]}" for one in rows)])


def recipe_text():
    """The recipe of a challenge on it, for any number of speakers, whose teams report."""
    return (Path(__file__).parent / "journey.toml").read_text(encoding="utf-8")


@dataclass(frozen=True)
class Archives:
    """A faulty archive, and one with the corrected recordings only; `corrected`: how many they are."""

    faulty: Path
    correction: Path
    corrected: int


def make_archives(folder, speech):
    """What a hasty team sends: problems of several kinds and one overstated number; then the correction."""
    recipe = read_recipe_text(recipe_text(), file="journey.toml")
    utterances = reporting.read_manifest(speech)
    whole = reporting.anonymise(utterances, (0.4, 0.95), 1)
    reporting.add_results(whole, recipe, STAMP)
    reporting.overstate(whole, "ASV-demo_enrolls_anon-demo_trials_f_anon", "EER: 47.5%")
    whole.files["system_description.pdf"] = archives.describe("Wide range", "McAdams coefficients from 0.4 to 0.95.")
    spoiled = deepcopy(whole)
    archives.spoil(spoiled, recipe.anonymised_suffix)
    names = [name for name in whole.speech if not _same(whole.speech[name], spoiled.speech.get(name))]
    correction = archives.DemoSubmission(utterances, {name: whole.speech[name] for name in names})
    made = Archives(folder / "hasty.zip", folder / "corrected.zip", len(names))
    archives.pack(spoiled, made.faulty, recipe.anonymised_suffix)
    archives.pack(correction, made.correction, recipe.anonymised_suffix)
    return made


def _same(one, other):
    return other is not None and one.size == other.size and bool((one == other).all())


class ServedPortal:
    """`manage.py serve` whose organizers may import from a folder, and whose mails are read on its console."""

    def __init__(self, folder, imports):
        self.portal, address = Portal(folder), f"127.0.0.1:{free_port()}"
        self.url = f"http://{address}"
        environment = PATIENT | {"PORTAL_ADDRESS": address, "PORTAL_IMPORT_ROOTS": str(imports)}
        self.program = self.portal.start("serve", "manage.py", "serve", **environment)
        wait_until(self._is_ready, "the portal is ready")

    def _is_ready(self):
        try:
            return requests.get(f"{self.url}/health/ready", timeout=5).ok
        except requests.RequestException:
            return False

    def end(self):
        self.portal.kill_all()

    def mail_to(self, address, words):
        """Text of the newest mail to this address with these words in its subject or text."""
        return wait_until(lambda: next((one for one in self._mails(address) if words in one), ""), f"“{words}”")

    def _mails(self, address):
        lines = [line.partition(" | ")[2] for line in self.program.output().splitlines()]
        starts = [number for number, line in enumerate(lines) if line.startswith(f"Mail to {address}: ")]
        for start in reversed(starts):
            end = next((n for n in range(start + 1, len(lines)) if not lines[n].startswith("  | ")), len(lines))
            yield "\n".join(lines[start:end])

    def link_to(self, address, words, path):
        """Address in such a mail, without the host."""
        return re.findall(rf"{re.escape(self.url)}({path}\S*)", self.mail_to(address, words))[0]
