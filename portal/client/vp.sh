#!/bin/sh
# vp of this checkout: `make` puts this file into the folder of programs of its virtual environment.
here=$(dirname "$(dirname "$(dirname "$(realpath "$0")")")")
PYTHONPATH="$here" exec "$here/.venv/bin/python" -P -m portal.client "$@"
