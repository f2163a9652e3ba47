"""Figures with their budgets, times of work in turns, the speech of the demo, and a portal on a database of its own."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import numpy as np

from common.arrays import Samples

ROOT = Path(__file__).resolve().parents[1]
SPEECH = ROOT / "demo" / "corpus"
RATE_HZ = 16_000

Work = Callable[[], object]


@dataclass(frozen=True)
class Figure:
    """A measured number and its budget: the most that it may be, or the least where `is_least`."""

    what: str
    value: float
    budget: float
    unit: str = ""
    is_least: bool = False

    @property
    def is_met(self) -> bool:
        return self.value >= self.budget if self.is_least else self.value <= self.budget

    def __str__(self) -> str:
        bound = "at least" if self.is_least else "at most"
        unit = f" {self.unit}" if self.unit else ""
        verdict = "met" if self.is_met else "NOT MET"
        return f"{self.what:<66} {self.value:8.4g}{unit}   budget {bound} {self.budget:g}{unit}   {verdict}"


def report(*figures: Figure) -> int:
    """Print each figure with its budget; return 1 where one is not met, else 0."""
    for figure in figures:
        print(figure, flush=True)
    return int(not all(figure.is_met for figure in figures))


def measure_least_seconds(
    *works: Work, repeats: int = 5, clock: Callable[[], float] = perf_counter
) -> tuple[float, ...]:
    """Return the least seconds of each work. They take turns, so that a busy machine slows all of them."""
    least = [np.inf] * len(works)
    for _ in range(repeats):
        for place, work in enumerate(works):
            began = clock()
            work()
            least[place] = min(least[place], clock() - began)
    return tuple(least)


def read_speech(seconds: float) -> list[Samples]:
    """Return whole utterances of the demo corpus of about that length in all, from across the corpus."""
    import soundfile

    files = sorted(SPEECH.rglob("*.flac"))
    np.random.default_rng(0).shuffle(files)
    utterances: list[Samples] = []
    while files and sum(samples.size for samples in utterances) < seconds * RATE_HZ:
        samples, rate = soundfile.read(files.pop(), dtype="int16")
        if rate != RATE_HZ:
            raise ValueError(f"The demo corpus is expected at {RATE_HZ} Hz; found {rate} Hz.")
        utterances.append(samples)
    return utterances


@contextmanager
def open_portal() -> Iterator[None]:
    """Set Django up with a data folder and a database of its own, which go at the end."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"PORTAL_DATA_DIR": folder, "DJANGO_SETTINGS_MODULE": "tests.settings"}
        import django

        django.setup()
        from django.conf import settings
        from django.db import connection
        from django.test.utils import get_runner, setup_test_environment

        setup_test_environment()
        connection.settings_dict["TEST"]["MIGRATE"] = False  # the tables of the models, as in tests
        runner = get_runner(settings)(verbosity=0)
        databases = runner.setup_databases()
        try:
            yield
        finally:
            runner.teardown_databases(databases)
