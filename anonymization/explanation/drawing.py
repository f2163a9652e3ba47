"""Draws explanations one after another for a process that holds no heavy library: lines in, files out.

Each line is what `request_drawing` wrote; `evaluation.figures.drawing_process` says how they are answered. Pitch marks,
which need a compiled kernel, are found here too.
"""

from __future__ import annotations

import base64
import json
import sys
from dataclasses import asdict

import numpy as np

from anonymization.explanation.explain import Explanation
from anonymization.methods.pitch_shift.method import cut_around, mark_both
from common.arrays import Samples
from evaluation.figures.drawing_process import answer_lines
from evaluation.figures.explanation import as_namespace, draw_explanation, write_explanation
from evaluation.figures.style import ImageFormat, Theme


def request_drawing(
    explanation: Explanation,
    *,
    theme: Theme,
    image_format: ImageFormat,
    narrow: bool = False,
    to_mark: tuple[Samples, Samples] | None = None,
) -> bytes:
    """A line that asks for a file.

    to_mark: original and anonymised, int16, shape (n,), whose pitch marks the picture shall have.
    """
    asked: dict[str, object] = {"theme": theme, "image_format": image_format, "narrow": narrow}
    asked["explanation"] = write_explanation(explanation)
    if to_mark is not None:
        *pieces, at_s = cut_around(*to_mark, explanation.rate_hz, explanation.at_s)
        asked["pieces"] = [base64.b64encode(piece.astype("<i2").tobytes()).decode() for piece in pieces]
        asked["piece_at_s"] = at_s
    return json.dumps(asked).encode() + b"\n"


def answer_drawing(line: bytes) -> bytes:
    """The file that a line asks for."""
    asked = json.loads(line)
    explanation = json.loads(asked["explanation"])
    if "pieces" in asked:
        before, after = (np.frombuffer(base64.b64decode(each), "<i2").astype(np.int16) for each in asked["pieces"])
        marks = mark_both(before, after, explanation["rate_hz"], asked["piece_at_s"])
        explanation["marks"] = asdict(marks)
    return draw_explanation(as_namespace(explanation), asked["theme"], asked["image_format"], narrow=asked["narrow"])


def main() -> int:
    """Answer until the input ends or nothing is asked for a while."""
    return answer_lines(answer_drawing)


if __name__ == "__main__":
    sys.exit(main())
