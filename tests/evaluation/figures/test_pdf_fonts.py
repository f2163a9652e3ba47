"""The texts of a figure in a PDF can be read, searched and copied, though its fonts are only partly embedded."""

from __future__ import annotations

import pytest
from fontTools.ttLib import TTFont

from evaluation.figures.style import Size, draw_formats
from tests.evaluation.pdf import outline, read_texts

PLAIN = ("Ünïcode Łčž, φ^0.7 ≤ 15 %", "κρ–αβγ − “office fluffier” (x\\y)", "Figure AVATo.")
LIGATURES = {"ff": "ﬀ", "fi": "ﬁ", "fl": "ﬂ", "ffi": "ﬃ", "ffl": "ﬄ"}
BOLD = "Equal error rate → 25 %"


class Texts:
    size = Size(4.0, 3.0)

    def paint(self, figure, palette):
        figure.add_subplot().set_axis_off()
        for number, text in enumerate(PLAIN):
            figure.text(0.1, 0.2 * number, text, color=palette.ink)
        figure.text(0.1, 0.9, BOLD, weight="bold")


@pytest.fixture(scope="module")
def found():
    return read_texts(draw_formats(Texts(), ["pdf"], title="Texts", description="Signs of many kinds")["pdf"])


def test_every_text_can_be_copied(found):
    texts = ["".join(font.texts[code] for font, code in text) for text in found]
    assert sorted(texts) == sorted([*PLAIN, BOLD])


def test_every_sign_has_the_shape_that_the_font_gives_it(found):
    from matplotlib.font_manager import findfont

    whole = {"DejaVuSans": TTFont(findfont("DejaVu Sans")), "DejaVuSans-Bold": TTFont(findfont("DejaVu Sans:bold"))}
    shown = {(font.name, font.texts[code]): font.outline(code) for text in found for font, code in text}
    assert {name for name, _ in shown} == set(whole)
    signs = {(name, sign): ord(LIGATURES.get(sign, sign)) for name, sign in shown}
    expected = {key: outline(whole[key[0]], whole[key[0]].getBestCmap()[sign]) for key, sign in signs.items()}
    assert shown == expected
