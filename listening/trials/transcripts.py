"""What an evaluator writes down of what was heard: bounds, and the raw text that is kept.

Nothing is normalised here: the analysis does that, and the raw text stays as it was typed. Pasting, dropping and
corrections by the browser come as events of the session, not as part of the answer. Nothing understood is an answer
of its own, which somebody has to give on purpose. Public: `validate_text`, `TextError`.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass

from django.utils.translation import gettext as _

LONGEST = 1000


class TextError(ValueError):
    """The text cannot be taken as an answer; `sentences` tell the evaluator why."""

    def __init__(self, sentences: list[str]) -> None:
        super().__init__(" ".join(sentences))
        self.sentences = sentences


@dataclass(frozen=True)
class Transcript:
    """`text` as it was typed, empty exactly if `is_nothing`: the evaluator says that nothing was understood."""

    text: str
    is_nothing: bool

    @property
    def data(self) -> dict[str, bool]:
        """What stands beside the text in `Answer.data`."""
        return {"nothing": self.is_nothing}


def validate_text(given: object) -> Transcript:
    """The transcription as it is stored.

    Args:
        given: ``{"raw": "what was typed", "nothing": false}``, decoded from JSON; ``nothing`` true with an empty text
            for "I understood nothing".

    Raises:
        TextError: with everything that is wrong, for the evaluator to read.
    """
    if not isinstance(given, Mapping):
        raise TextError([_("This is not a transcription.")])
    raw, is_nothing = given.get("raw"), given.get("nothing", False)
    if not isinstance(raw, str) or not isinstance(is_nothing, bool):
        raise TextError([_("This is not a transcription.")])
    faults = []
    if len(raw) > LONGEST:
        faults.append(
            _("The text has %(found)d characters; at most %(most)d are taken.") % {"found": len(raw), "most": LONGEST}
        )
    if any(_is_unreadable(sign) for sign in raw):
        faults.append(_("The text has characters that nobody can type, such as control characters."))
    if is_nothing and raw.strip():
        faults.append(_("You wrote something and said that you understood nothing. Only one of both can be."))
    if not is_nothing and not raw.strip():
        faults.append(_("Write what you heard, or say that you understood nothing."))
    if faults:
        raise TextError(faults)
    return Transcript("" if is_nothing else raw, is_nothing)


def _is_unreadable(sign: str) -> bool:
    """Control characters but line breaks and tabs, and lone surrogates.

    Signs of direction and joiners (category Cf) are typed in right-to-left and Indic writing and stay.
    """
    return sign not in "\n\r\t" and unicodedata.category(sign) in {"Cc", "Cs"}
