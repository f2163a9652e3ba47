"""The command line of the portal: the program `voiceprivacy`, `python -m portal.config` and `manage.py` are this."""

import os
import sys


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.config.settings")
    from django.core.management import execute_from_command_line

    # A command is a module, whose name has no hyphens; a shell's command has no underscores.
    name = sys.argv[1].replace("-", "_") if len(sys.argv) > 1 and not sys.argv[1].startswith("-") else None
    execute_from_command_line(sys.argv if name is None else [sys.argv[0], name, *sys.argv[2:]])


if __name__ == "__main__":
    main()
