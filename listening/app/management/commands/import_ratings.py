"""Import ratings that were collected elsewhere as a closed study of an edition, and analyse them.

The analysis runs in this process and shows its progress; with --queue a worker runs it.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.urls import reverse

from common.errors import ProblemsError
from common.terminal import ProgressBar
from listening.app.results.forms import RatingsForm
from listening.app.results.importing import Imported, import_study
from portal.challenges.models import Edition
from portal.core.fields import describe_errors
from portal.jobs.models import Job, JobState
from portal.jobs.runner import execute
from portal.jobs.terminal import failure_report, show_job


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, help="a CSV file, plain or gzipped")
        parser.add_argument("--edition", required=True, help="short name of the edition")
        parser.add_argument("--name", required=True, help="short name of the study, part of its addresses")
        parser.add_argument("--title", help="title of the study (default: its short name)")
        parser.add_argument("--original", default="", help="name of unprotected speech in the file")
        parser.add_argument("--attribution", default="", help="whose ratings these are and under which licence")
        parser.add_argument("--simulated", action="store_true", help="mark as simulated: a program made these ratings")
        parser.add_argument("--queue", action="store_true", help="let a worker compute the analysis")

    def handle(self, **options: Any) -> None:
        made = self._import(options)
        address = reverse("studies:results", args=[made.study.name])
        self.stdout.write(f"{made.ratings:,} ratings are imported as the study {made.study.name}.")
        for code in made.matched:
            self.stdout.write(f"The system {code} is taken for that of {made.study.edition}.")
        if made.analysis.job is not None and not options["queue"]:
            with ProgressBar(lines="stages") as bar:
                job = execute(made.analysis.job.pk, partial(show_job, bar))
            job = job or Job.objects.get(pk=made.analysis.job.pk)
            if job.state != JobState.SUCCEEDED:
                raise CommandError(failure_report(job))
        self.stdout.write(f"Its results are at {address}")

    def _import(self, options: dict[str, Any]) -> Imported:
        editions = Edition.objects.filter(archived_at=None)
        edition = editions.filter(name=options["edition"]).first()
        if edition is None:
            known = ", ".join(editions.order_by("name").values_list("name", flat=True)) or "none yet"
            raise CommandError(f"There is no edition named “{options['edition']}”; there are: {known}.")
        given = {name: options[name] for name in ("name", "original", "attribution")}
        given |= {"title": options["title"] or options["name"], "is_simulated": options["simulated"]}
        form = RatingsForm(given)
        if not form.is_valid():
            raise CommandError(describe_errors(form))
        told = form.cleaned_data | {"run_here": not options["queue"], "file_name": options["file"].name}
        try:
            with options["file"].open("rb") as file:
                return import_study(edition=edition, by=None, file=file, **told)
        except OSError as error:
            raise CommandError(f"{options['file']} cannot be read: {error.strerror}.") from None
        except ValidationError as error:
            raise CommandError("\n".join(error.messages)) from None
        except ProblemsError as error:
            raise CommandError("\n".join(error.problems)) from None
