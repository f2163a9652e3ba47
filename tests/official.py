"""Golden values that the official code of the challenge gives, and the result files that the challenge published."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

GOLDEN = Path(__file__).parent / "golden"
PUBLISHED = GOLDEN / "published"
VCC2020 = GOLDEN / "vcc2020" / "ratings-english.csv.gz"


def load_json(name: str) -> Any:
    return json.loads((GOLDEN / "official" / name).read_text())


@cache
def load_arrays(name: str) -> dict[str, NDArray[Any]]:
    with np.load(GOLDEN / "official" / name) as file:
        return dict(file)
