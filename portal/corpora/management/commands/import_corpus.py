"""Import a corpus from a folder: a LibriSpeech tree, Kaldi data directories or a CSV manifest.

The import runs in this process and shows its progress. Interrupted, it continues where it was when started again.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db.models import Q

from common.terminal import ProgressBar
from portal.accounts.models import User
from portal.challenges.models import Corpus
from portal.core.fields import describe_errors
from portal.corpora.forms import UploadForm, find_misplaced_option
from portal.corpora.services import GAINED, start_import
from portal.intake.corpora.draft import Layout
from portal.jobs.models import Job, JobState
from portal.jobs.runner import execute
from portal.jobs.services import NotPossible
from portal.jobs.terminal import failure_report, report_lines, show_job, write_report

UNSEEN = (
    "No organizer sees it yet. The operator can name its owner or share it at /admin/challenges/corpus/; the options "
    "--owner and --shared do so when a corpus is new."
)


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("folder", type=Path, help="folder of the corpus")
        parser.add_argument("--name", help="name of the corpus; default: the folder's name")
        parser.add_argument("--layout", choices=[layout.value for layout in Layout], help="default: detected")
        parser.add_argument("--audio-root", type=Path, help="folder of the audio of Kaldi directories")
        parser.add_argument("--without-audio", action="store_true", help="import the lists only; audio can follow")
        parser.add_argument("--resample", action="store_true", help="convert audio that is not 16 kHz")
        parser.add_argument("--report", type=Path, metavar="FILE", help="write every problem found to this CSV file")
        parser.add_argument("--synthetic", action="store_true", help="mark as synthetic speech: no real person speaks")
        parser.add_argument("--licence", default="", help="licence of a corpus that states none yet")
        parser.add_argument("--owner", metavar="E-MAIL", help="organizer who owns the corpus, if it is new")
        parser.add_argument("--shared", action="store_true", help="share it with all organizers, if it is new")

    def handle(self, **options: Any) -> None:
        folder: Path = options["folder"].absolute()
        name = options["name"] or folder.name
        report: Path | None = options["report"]
        if report is not None and (report.is_dir() or not report.absolute().parent.is_dir()):
            raise CommandError(f"Expected a file in an existing folder after --report, found “{report}”.")
        job = self._run(folder, name, options)
        if report is not None:
            _write_report(job, report)
        for line in report_lines(job, report):
            self.stdout.write(line)
        if job.state != JobState.SUCCEEDED:
            raise CommandError(failure_report(job).splitlines()[0])
        counts = job.result["gained"]
        gained = ", ".join(f"{counts[what]} {what.replace('_', ' ')}" for what in GAINED)
        self.stdout.write(f"The corpus {name} gained {gained}.")
        if kept := job.result.get("kept_licence"):
            self.stdout.write(f"It keeps its licence {kept}; its owner can change it on its page, under “Edit”.")
        if not Corpus.objects.filter(
            Q(is_shared=True) | Q(created_by__isnull=False) | Q(editions__isnull=False), name=name
        ):
            self.stdout.write(UNSEEN)

    def _run(self, folder: Path, name: str, options: dict[str, Any]) -> Job:
        form = UploadForm(
            {"name": name, "layout": options["layout"], "resample": options["resample"], "licence": options["licence"]}
            | {"is_synthetic": options["synthetic"], "is_shared": options["shared"]}
        )
        if not form.is_valid():
            raise CommandError(describe_errors(form))
        wanted = form.cleaned_data | {"without_audio": options["without_audio"], "by": _find_owner(options["owner"])}
        if options["audio_root"]:
            wanted["audio_root"] = str(options["audio_root"].absolute())
        for option, sentence in find_misplaced_option(folder, wanted).items():
            raise CommandError(f"--{option.replace('_', '-')}: {sentence}")
        try:
            job = start_import(folder=str(folder), run_here=True, **wanted)
        except NotPossible as error:
            raise CommandError(str(error)) from None
        with ProgressBar(lines="stages") as bar:
            finished = execute(job.pk, partial(show_job, bar))
        return finished or Job.objects.get(pk=job.pk)


def _find_owner(address: str | None) -> User | None:
    owner = User.objects.filter(email__iexact=address, is_organizer=True).first() if address else None
    if address and owner is None:
        raise CommandError(f"No organizer's account has the address {address}, given after --owner.")
    return owner


def _write_report(job: Job, file: Path) -> None:
    try:
        write_report(job, file)
    except OSError as error:
        raise CommandError(
            f"The report could not be written to {file}: {error.strerror}. It is whole on the portal at "
            f"{job.get_absolute_url()}."
        ) from None
