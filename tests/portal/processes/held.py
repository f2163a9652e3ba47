"""Settings for the programs of a test in which something works as often as it is let, and then waits.

So a kill meets a job at work, however quick the machine and however slow this process is.
"""

import os

from django.conf import settings

CODE = """
import time, uuid
from pathlib import Path

from tests.settings import *

HERE = Path(__file__).parent

def wait(more=1):
    while len(list((HERE / "done").iterdir())) + more > int((HERE / "limit").read_text()):
        time.sleep(0.02)

def note(name=""):
    (HERE / "done" / f"{name}.{uuid.uuid4().hex}").touch()
"""


class Held:
    """`code` replaces what is held by what calls `wait` before it and `note` after it."""

    def __init__(self, folder, code):
        self.folder = folder
        (folder / "done").mkdir(parents=True)
        (folder / "held_settings.py").write_text(CODE + code)
        known = [str(folder), str(settings.BASE_DIR), os.environ.get("PYTHONPATH", "")]
        self.environment = {
            "DJANGO_SETTINGS_MODULE": "held_settings",
            "PYTHONPATH": os.pathsep.join(filter(None, known)),
            "PORTAL_ANONYMIZER_THREADS": "1",  # so that batches end in their order
        }
        self.let(10**6)

    def let(self, calls):
        """So many calls from now on, then none."""
        fresh = self.folder / "fresh"
        fresh.write_text(str(len(self.done()) + calls))
        fresh.replace(self.folder / "limit")

    def done(self):
        """What was noted, each time it was."""
        return [path.name.partition(".")[0] for path in (self.folder / "done").iterdir()]
