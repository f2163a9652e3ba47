"""The manual: the Markdown files of `docs/`, built by Zensical into a site that the portal serves under ``/docs/``."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from functools import cache
from itertools import chain
from pathlib import Path

from django.conf import settings

from anonymization.methods.contract import Anonymizer, keeps_duration
from anonymization.methods.measured import SHORTFALLS, find_measured, read_measurements
from anonymization.methods.registry import methods
from evaluation.metrics.catalogue import FAMILIES, Direction, Metric
from evaluation.protocols.recipes import FOLDER, shipped_editions
from evaluation.protocols.schema import TableText, describe_recipe
from portal.jobs.kinds import list_kinds

FAMILIES_IN_WORDS = {
    "detection": "Privacy: verification of speakers",
    "disclosure": "Privacy: categories",
    "exposure": "Privacy beyond the EER",
    "content": "Utility: words and emotions",
    "pitch": "Utility: pitch",
    "voices": "Voices of speakers",
    "training": "Training of attackers",
    "naturalness": "Naturalness",
    "extras": "Gender and inversion",
    "audio": "Audio",
}
BETTER = {Direction.NEAR_ZERO: "Best near zero.", Direction.NEITHER: "Neither direction is better."}
SLOTS = ("content", "voice", "prosody", "synthesis")  # as table III of the results paper of 2022
EXAMPLE_ADDRESS = "https://portal.example.org"  # in the files; the pages show the address of this portal
_building = threading.Lock()  # visitors of a new version ask for it together
FILE_OF_DEPLOY = re.compile(r"(?m)^(```\w*\n)(deploy/\S+)\n")  # named in a block of code, which shows it


@cache
def build_manual() -> Path:
    """Return the folder of the built manual; it is built again where a page or the address of the portal changed.

    Raises:
        CalledProcessError: Zensical found an error or a link that leads nowhere.
    """
    pages, pictures = _read_pages(), sorted(_pictures().iterdir())
    content = [sorted(pages.items()), [(path.name, path.read_bytes()) for path in pictures]]
    state = hashlib.sha256(repr(content).encode()).hexdigest()[:16]
    site: Path = settings.DATA_DIR / "manual" / state
    with _building:
        if not site.is_dir():
            _build(pages, site)
    return site


def _build(pages: dict[str, str], site: Path) -> None:
    site.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=site.parent) as folder:
        for name, text in pages.items():
            path = Path(folder, name) if name == "zensical.toml" else Path(folder, "docs", name)
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        shutil.copytree(_pictures(), Path(folder, "docs", "pictures"))
        command = [sys.executable, "-m", "zensical", "build", "--strict"]
        subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)  # noqa: S603 - our own command
        with suppress(OSError):  # another process was first
            Path(folder, "site").rename(site)


def _pictures() -> Path:
    return settings.FILES_DIR / "docs" / "pictures"


def _read_pages() -> dict[str, str]:
    """Return the text of each page and of the configuration by the name of its file."""
    docs = settings.FILES_DIR / "docs"
    pages = {path.name: path.read_text(encoding="utf-8") for path in docs.iterdir() if path.is_file()}
    pages |= {"metrics.md": _write_metrics(), "recipe-fields.md": _write_recipe_fields()}
    address = settings.SITE_URL.rstrip("/")
    return {name: _fill_in(text.replace(EXAMPLE_ADDRESS, address)) for name, text in pages.items()}


def _fill_in(text: str) -> str:
    """Put tables where comments name them, and the files of `deploy/` where blocks of code do."""
    for name, write in TABLES.items():
        if (mark := f"<!-- {name} -->") in text:
            text = text.replace(mark, write())
    for fence, name in set(FILE_OF_DEPLOY.findall(text)):
        content = (settings.FILES_DIR / name).read_text(encoding="utf-8")
        text = text.replace(f"{fence}{name}\n", f"{fence}{content}")
    return text


def _write_metrics() -> str:
    parts = [
        "# Metrics",
        "Files and the API name a metric by its key. [How numbers are made](methods.md) says how each is computed.",
    ]
    for family, metrics in FAMILIES.items():
        parts += [f"## {FAMILIES_IN_WORDS[family]}", *chain.from_iterable(map(_describe_metric, metrics.values()))]
    return "\n\n".join(parts)


def _describe_metric(metric: Metric) -> tuple[str, str]:
    unit = f"Unit: {metric.unit}. " if metric.unit else ""
    better = BETTER.get(metric.direction, f"{metric.direction.capitalize()} is better.")
    return f"### {metric.label}: `{metric.key}` {{ #{metric.key} }}", f"{metric.definition.strip()} {unit}{better}"


def _write_recipe_fields() -> str:
    examples = ", ".join(f"[{name}](/docs/recipes/{name}.toml)" for name in shipped_editions())
    parts = [
        "# Fields of a recipe",
        "A recipe is a TOML file that says what an edition evaluates, averages and ranks. A field that is not listed "
        "here is an error; one without a value has its default. The portal makes a recipe from a corpus on the page "
        f"[New challenge](/editions/new/); those of {examples} are examples.",
    ]
    for table in describe_recipe():
        parts += [f"## `{table.place}` {{ #{table.key} }}", table.meaning, _write_fields(table)]
    return "\n\n".join(parts)


def _write_fields(table: TableText) -> str:
    rows = [["Field", "Type", "Meaning", "Example"], ["---"] * 4]
    for field in table.fields:
        default = "required" if field.is_required else f"default: {field.default}"
        example = f"`{field.example}`" if field.example else ""
        rows.append([f"`{field.name}`", f"{field.type}; {default}", field.meaning, example])
    return _join_rows(rows)


def _list_built_in() -> list[Anonymizer]:
    return [method for method in methods() if find_measured(method)]


def _write_parts() -> str:
    rows = [["method", "fidelity", *SLOTS, "duration"], ["---"] * (len(SLOTS) + 3)]
    for method in _list_built_in():
        parts = {part.slot: f"{part.title} ({part.state})" for part in getattr(method, "pipeline", ())}
        cells = [parts.get(slot, "–") for slot in SLOTS]
        duration = "kept" if keeps_duration(method) else "another"
        rows.append([f"`{method.name}`", getattr(method, "fidelity", ""), *cells, duration])
    return _join_rows(rows)


def _write_measured() -> str:
    measured = read_measurements()
    rows = [["method", *measured.heads], ["---", *["---:"] * len(measured.heads)]]
    results = {"original speech": measured.original, "copies by HiFi-GAN": measured.copied}
    for name, result in measured.methods.items():
        marks = ", ".join(measured.find_shortfalls(result))
        results[f"`{name}` ({marks})" if marks else f"`{name}`"] = result
    for name, result in results.items():
        cells = measured.row(result)
        rows.append([name, *(f"{cell.text} ({cell.interval})" if cell.interval else cell.text for cell in cells)])
    marks = "; ".join(f"*{mark}*: {meaning}" for mark, meaning in SHORTFALLS.items())
    return f"{measured.describe_speech()}Measured on {measured.date}. {marks}.\n\n{_join_rows(rows)}"


def _write_sources() -> str:
    return "\n".join(f"- `{method.name}`: {method.reference}" for method in _list_built_in())


def _write_kinds_of_jobs() -> str:
    rows = [["kind", "job", "memory", "memory of a card", "time limit"], ["---"] * 5]
    for kind in list_kinds():
        card = f"{kind.card_memory_mb / 1000:g} GB" if kind.card_memory_mb else "–"
        limit = f"{kind.time_limit_s // 60} min" if kind.time_limit_s else "–"
        rows.append([f"`{kind.name}`", kind.title, f"{kind.memory_mb / 1000:g} GB", card, limit])
    return _join_rows(rows)


def _join_rows(rows: list[list[str]]) -> str:
    """Return a table of Markdown."""
    return "\n".join(f"| {' | '.join(cell.replace('|', '&#124;') for cell in row)} |" for row in rows)


TABLES = {
    "parts of anonymisers": _write_parts,
    "measured of anonymisers": _write_measured,
    "sources of anonymisers": _write_sources,
    "kinds of jobs": _write_kinds_of_jobs,
}


def recipe_file(name: str) -> str:
    """Return the text of a shipped recipe.

    Raises:
        LookupError: there is no such recipe.
    """
    if name not in shipped_editions():
        raise LookupError(name)
    return (FOLDER / f"{name}.toml").read_text(encoding="utf-8")
