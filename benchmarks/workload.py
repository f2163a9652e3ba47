"""What one submission takes of a portal that evaluates it: processor time by kind of job, bytes of files and database.

Run from the root of the repository: ``python -m benchmarks.workload`` ; ``--recognizer whisper-base`` takes another
recogniser than the default, ``--speech FOLDER`` another corpus than that of the demo. Two submissions to
the challenge that the demo makes go through the portal's own services and jobs, in one process, on a database of its
own. What is printed is of the second one: models are loaded by then, and originals have their vectors and words.

Processor time is that of this process and of those that its jobs started and ended. Its unit is seconds of work for a
second of submitted speech; jobs that do not grow with the speech are printed in seconds. Files are those of the data
folder, which SHA-256 names once; the database counts its pages, of which those with jobs and audit log are a part.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
import tempfile
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.evaluators import measure_database

CORPUS = Path("demo/corpus")
METHOD = "mcadams-2022"
BY_SPEECH = ("intake", "measure", "vectors", "hypotheses")  # the work of all others does not grow with the speech


@dataclass
class Taken:
    """What a submission took; times in seconds by kind of job."""

    speech_s: float = 0.0
    archive_bytes: int = 0
    files_bytes: int = 0
    database_bytes: int = 0
    recordings: int = 0
    work_s: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))


def main(arguments: list[str]) -> int:
    """Print what a submission takes."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.workload")
    parser.add_argument("--speech", type=Path, default=CORPUS, help=f"a folder with a manifest (default {CORPUS})")
    parser.add_argument("--recognizer", default="", help="an engine (default: that of the portal)")
    wanted = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"PORTAL_DATA_DIR": folder, "DJANGO_SETTINGS_MODULE": "tests.settings"}
        import django

        django.setup()
        from django.test.utils import get_runner, setup_test_environment

        setup_test_environment()
        from django.conf import settings

        runner = get_runner(settings)(verbosity=0)
        databases = runner.setup_databases()
        try:
            edition = _make_edition(wanted.speech.absolute(), wanted.recognizer)
            evaluation = edition.recipe.evaluation
            _submit(edition, 1)
            _describe(_submit(edition, 2), (*evaluation.attackers, evaluation.recognizer))
        finally:
            runner.teardown_databases(databases)
    return 0


def _make_edition(speech: Path, recognizer: str) -> Any:
    """The challenge of the demo on this corpus, which is imported as an organizer does."""
    from django.conf import settings

    from portal.challenges.models import Corpus
    from portal.corpora.services import start_import
    from portal.demo.challenge import make_demo_edition
    from portal.jobs.runner import execute
    from tests.portal.factories import make_organizer

    settings.IMPORT_ROOTS = [*settings.IMPORT_ROOTS, speech]
    organizer = make_organizer()
    job = start_import(folder=str(speech), name="speech", is_synthetic=True, by=organizer)
    execute(job.pk)
    edition = make_demo_edition(
        corpus=Corpus.objects.get(),
        organizer=organizer,
        with_models=True,
        say=_Silent(),  # type: ignore[arg-type]
    )
    if recognizer:
        known = edition.recipe.evaluation.recognizer
        edition.recipe_text = edition.recipe_text.replace(f'"{known}"', f'"{recognizer}"')
        edition.save()
    return edition


class _Silent:
    """A screen that nobody looks at."""

    def __call__(self, *_: Any) -> None:
        pass

    show = settle = __call__


def _submit(edition: Any, number: int) -> Taken:
    """Let a new team send the corpus by B2 in voices of its own, and do every job that follows."""
    from portal.demo import archives
    from portal.jobs.models import Job, JobState
    from portal.jobs.runner import execute
    from tests.portal.archives import submit
    from tests.portal.factories import make_team, make_user

    utterances = archives.read_utterances(edition.corpus.data_sets.filter(role__in=("enrolment", "trial")))
    made = archives.anonymise(utterances, METHOD, number)
    made.files["system_description.pdf"] = archives.describe("B2", "The McAdams transformation.")
    packed = io.BytesIO()
    with tempfile.TemporaryDirectory() as folder:
        archives.pack(made, Path(folder) / "a.zip", edition.recipe.anonymised_suffix)
        packed.write((Path(folder) / "a.zip").read_bytes())
    taken = Taken(archive_bytes=packed.tell(), recordings=len(made.speech))
    taken.speech_s = sum(samples.size for samples in made.speech.values()) / archives.RATE_HZ
    team = make_team(edition, owner=make_user(), name=f"Team {number}")
    before = _measure_files(), measure_database()
    submission = submit(team, packed.getvalue())
    while job := _find_ready():
        began = _work_s()
        execute(job.pk)
        taken.work_s[job.kind].append(_work_s() - began)
        job.refresh_from_db()
        if job.state != JobState.SUCCEEDED:
            sys.exit(f"{job} {job.state}: {job.failure} {submission.report_summary}")
    assert not Job.objects.filter(state=JobState.WAITING).exclude(kind="mail").exists(), "a job waits for ever"
    submission.refresh_from_db()
    assert submission.state == "evaluated", f"{submission.state}: {submission.report_summary}"
    taken.files_bytes, taken.database_bytes = _measure_files() - before[0], measure_database() - before[1]
    return taken


def _find_ready() -> Any:
    from django.db.models import Q

    from portal.jobs.models import Job, JobState

    ready = Q(after=None) | Q(after__state=JobState.SUCCEEDED)
    return Job.objects.filter(ready, state=JobState.WAITING).exclude(kind="mail").order_by("created_at").first()


def _work_s() -> float:
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


def _measure_files() -> int:
    from django.core.files.storage import default_storage

    return sum(path.stat().st_size for path in Path(default_storage.path("")).rglob("*") if path.is_file())


def _describe(taken: Taken, engines: tuple[str, ...]) -> None:
    print(
        f"A submission of {taken.recordings} recordings, {taken.speech_s:.0f} s of speech, "
        f"{taken.archive_bytes / 1e6:.1f} MB as an archive, evaluated by {', '.join(engines)}"
    )
    print(f"{'kind of job':22} {'jobs':>5} {'work, s':>9} {'work for a second of speech, s':>32}")
    for kind, seconds in taken.work_s.items():
        of_speech = f"{sum(seconds) / taken.speech_s:32.4f}" if kind in BY_SPEECH else ""
        print(f"{kind:22} {len(seconds):5} {sum(seconds):9.2f} {of_speech}")
    speech_s = sum(sum(taken.work_s[kind]) for kind in BY_SPEECH)
    print(f"{'all that grows':22} {'':5} {speech_s:9.2f} {speech_s / taken.speech_s:32.4f}")
    files, rows = taken.files_bytes, taken.database_bytes
    print(f"files {files / 1e6:.1f} MB, {files / taken.speech_s:,.0f} bytes for a second of speech")
    print(f"database {rows / 1e6:.2f} MB, {rows / taken.recordings:,.0f} bytes for a recording")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
