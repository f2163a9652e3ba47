"""What a journey through the portal needs: a small corpus, its recipe, archives to hand in, and the portal's mails.

The speech is a part of the demo corpus, three women and three men, so that a whole evaluation takes seconds.
"""

import csv
import re
import shutil
from collections import Counter
from pathlib import Path

import requests
import soundfile
from django.conf import settings

from tests.portal.processes.programs import Portal, free_port, wait_until

DEMO = settings.BASE_DIR / "demo"
SPEAKERS_OF_A_GENDER = 3
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


def recipe_text():
    """The recipe of a challenge on it, for any number of speakers, whose teams report."""
    return (Path(__file__).parent / "journey.toml").read_text(encoding="utf-8")


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
