"""Delete stored files that nothing needs any more; with --dry-run only list them."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from common.wording import counted
from portal.core.health import require_database
from portal.operations import sweep


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--dry-run", action="store_true", help="list the files and their bytes, delete nothing")

    def handle(self, *, dry_run: bool, **_: Any) -> None:
        require_database()
        before = sweep.time_of_sweep()
        if not dry_run:
            count, freed = sweep.sweep(before)
            self.stdout.write(f"Deleted {counted(count, 'unneeded file')}: {freed / 1e6:,.1f} MB are free.")
            return
        found = sweep.find_unneeded(before)
        for one in found:
            self.stdout.write(f"{one.bytes:>14,} bytes  {one.key}")
        total = sum(one.bytes for one in found)
        self.stdout.write(f"Nothing needs {counted(len(found), 'file')} of {total / 1e6:,.1f} MB ({total:,} bytes).")
        self.stdout.write("Nothing was deleted. Repeat it without --dry-run to delete them.")
