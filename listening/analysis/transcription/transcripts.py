"""Words that listeners understood: word error rates of what they wrote down, beside those of the recogniser.

**Errors** are counted as for the recogniser (Kaldi's alignment, `evaluation.metrics.word_errors`), after both texts
were normalised (`match_words`). Rates are pooled: all errors against all words, so that a long utterance weighs more. A
listener who says that nothing was understood, or writes no word, has deleted every word. Intervals resample listeners
with all their transcripts.

**Words** are compared whatever the way of writing: what was understood counts. English: case, punctuation, numbers in
digits, contractions, titles, signs such as %, and British or American spelling (a listener who writes "color" has
understood "colour"); the words stand in `english.toml`. Where one way of writing can stand for several ways of saying
(``1905``, ``he's``), all of them are kept as *readings*, and `match_words` takes of both sides those that agree best.
Words written apart or together (``to day``, ``good-bye``) are joined where the other side has them joined. Words that
sound alike but are other words (``there``, ``their``) stay errors, as do apostrophes left out where that makes another
word (``were`` for ``we're``). Other languages: case and punctuation only.

Conventions: rates are shares of reference words and can exceed 1 with many insertions; lower means understood better.
Normalised words are in small letters, without apostrophes; readings that are equally good keep the order given.
"""

from __future__ import annotations

import functools
import re
import tomllib
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from common.arrays import Floats
from common.tables import DataTable
from evaluation.metrics.number_words import NUMBER, number_readings
from evaluation.metrics.word_errors import align_words
from listening.analysis.models.intervals import draw_listeners, percentile_interval
from listening.analysis.reading.inputs import ORIGINAL, ObjectiveRows, Settings, Transcripts
from listening.analysis.scoring.objective import ObjectiveMeasures, index_objective
from listening.analysis.tables import Row, make_table

if TYPE_CHECKING:
    from pandas import DataFrame

Words = tuple[str, ...]
# What one piece of a text can stand for: at least one sequence of words each.
Readings = tuple[tuple[Words, ...], ...]

ENGLISH = "en"
_KNOWN: Mapping[str, Any] = tomllib.loads(Path(__file__).with_name("english.toml").read_text(encoding="utf-8"))
FUNCTION_WORDS = frozenset(" ".join(_KNOWN["function_words"].values()).split())
_SHORT_FORMS, _ENDINGS = (
    {form: tuple(tuple(words.split()) for words in readings) for form, readings in known.items()}
    for known in (_KNOWN["contractions"] | _KNOWN["titles"], _KNOWN["endings"])
)
_BEFORE_VERBS = frozenset(_KNOWN["apostrophes"]["before_verbs"].split())
_WITHOUT_APOSTROPHE = {one.replace("'", ""): one for one in _KNOWN["apostrophes"]["often_without"].split()}
_ALWAYS_Z = frozenset(_KNOWN["spelling"]["always_z"].split())
_IZE = re.compile(r"(?<=..)([iy])z(e|es|ed|er|ers|ing|ingly|able|ation|ations|ational)$")
_ROUNDS = 3
_APOSTROPHES = str.maketrans(dict.fromkeys("’‘ʼ`´", "'"))
_MONEY = re.compile(r"([$£€])\s?(" + re.sub(r"\?P<\w+>", "?:", NUMBER.pattern) + r")")
_CURRENCIES = {"$": "dollars", "£": "pounds", "€": "euros"}
_SIGNS = {"&": " and ", "%": " percent ", "+": " plus ", "=": " equals ", "@": " at ", "°": " degrees "}
_PIECE = re.compile(NUMBER.pattern + r"|'?[^\W\d_]+(?:'[^\W\d_]+)*")


class ComparableWords(NamedTuple):
    """Words of what was said and of what was heard, in the readings with the fewest errors."""

    reference: Words
    heard: Words


def match_words(reference: str, heard: str, language: str = ENGLISH) -> ComparableWords:
    """Read both texts as words, so that they differ least.

    Args:
        reference: what was said. `heard`: what somebody wrote down.
        language: code such as ``en`` or ``en-GB``; what is not English gets case and punctuation only.

    Example:
        >>> match_words("IT WAS NINETEEN OH FIVE, THE COLOUR", "it was 1905 the color").heard
        ('it', 'was', 'nineteen', 'oh', 'five', 'the', 'colour')
    """
    said, written = list_readings(reference, language), list_readings(heard, language)
    first, second = [one[0] for one in said], [one[0] for one in written]
    for _ in range(_ROUNDS):  # a choice on one side can change what is best on the other
        before = [*first], [*second]
        _choose(written, second, partial(_errors_of_heard, reference=_flat(first)))
        _choose(said, first, partial(_share_not_heard, heard=_flat(second)))
        if (first, second) == before:
            break
    words = ComparableWords(_flat(first), _flat(second))
    return _joined_alike(words) if is_english(language) else words


def list_readings(text: str, language: str = ENGLISH) -> Readings:
    """List each piece of a text with what it can stand for, the plainest first; none where no word is written."""
    text = unicodedata.normalize("NFKC", text).translate(_APOSTROPHES).lower()
    if not is_english(language):
        return tuple(((word,),) for word in re.findall(r"[^\W_]+", unicodedata.normalize("NFC", text)))
    text = _MONEY.sub(lambda found: f"{found[2]} {_CURRENCIES[found[1]]} ", text)
    for sign, words in _SIGNS.items():
        text = text.replace(sign, words)
    return tuple(_readings_of_piece(found[0]) for found in _PIECE.finditer(text))


def is_english(language: str) -> bool:
    return language.lower().replace("_", "-").split("-")[0] == ENGLISH


@functools.lru_cache(maxsize=50_000)
def _readings_of_piece(piece: str) -> tuple[Words, ...]:
    if piece[0].isdecimal():
        return number_readings(piece)
    written = _WITHOUT_APOSTROPHE.get(piece, piece)
    if written[0] == "'" and written not in _SHORT_FORMS:
        written = written[1:]  # an opening quotation mark
    return tuple(tuple(spell_british(word) for word in words) for words in _readings_of_word(written))


def _readings_of_word(word: str) -> tuple[Words, ...]:
    """Return what a word in small letters stands for, contractions written out, other apostrophes dropped."""
    if word in _SHORT_FORMS:
        return _SHORT_FORMS[word]
    for ending, meanings in _ENDINGS.items():
        if word.endswith(ending) and len(word) > len(ending):
            before = _readings_of_word(word.removesuffix(ending))
            return tuple((*host, *meaning) for host in before for meaning in meanings)
    host, ending = word[:-2], word[-2:]
    if ending not in ("'s", "'d") or not host:
        return ((word.replace("'", ""),),)
    plain, verbs = f"{host}s", ("is", "has")
    if ending == "'d":
        plain, verbs = f"{host}ed", ("would", "had")
    plainly, with_verb = (plain.replace("'", ""),), tuple((*_readings_of_word(host)[0], verb) for verb in verbs)
    return (*with_verb, plainly) if host in _BEFORE_VERBS else (plainly, *with_verb)


def _choose(readings: Readings, chosen: list[Words], loss: Callable[[Words, Words, Words], float]) -> None:
    """Take, piece by piece, the reading with the lowest loss between what stands before and after; or the first."""
    for place, possible in enumerate(readings):
        if len(possible) > 1:
            before, after = _flat(chosen[:place]), _flat(chosen[place + 1 :])
            losses = [loss(before, words, after) for words in possible]
            chosen[place] = possible[losses.index(min(losses))]


def _errors_of_heard(before: Words, words: Words, after: Words, *, reference: Words) -> float:
    return float(_distance(reference, (*before, *words, *after)))


def _share_not_heard(before: Words, words: Words, after: Words, *, heard: Words) -> float:
    """Return the share of a piece of the reference not heard.

    The number of errors would favour the reading with the fewest words where nobody heard any.
    """
    from rapidfuzz.distance import LCSseq

    gained = LCSseq.similarity((*before, *words, *after), heard) - LCSseq.similarity((*before, *after), heard)
    return 1 - gained / len(words)


def _distance(reference: Words, heard: Words) -> int:
    from rapidfuzz.distance import Levenshtein

    return int(Levenshtein.distance(reference, heard))


def _joined_alike(words: ComparableWords) -> ComparableWords:
    """Join neighbours that the other side writes as one word, if that leaves fewer errors."""
    reference = _join(words.reference, frozenset(words.heard))
    heard = _join(words.heard, frozenset(reference))
    return ComparableWords(reference, heard) if _distance(reference, heard) < _distance(*words) else words


def _join(words: Words, known: frozenset[str]) -> Words:
    joined: list[str] = []
    for word in words:
        if joined and joined[-1] + word in known:
            joined[-1] += word
        else:
            joined.append(word)
    return tuple(joined)


def _flat(parts: Sequence[Words]) -> Words:
    return tuple(chain.from_iterable(parts))


@functools.cache
def spell_british(word: str) -> str:
    """Spell a word in small letters the British way; the word itself where there is no other spelling.

    >>> [spell_british(word) for word in ("color", "realized", "center", "traveler", "four", "prize")]
    ['colour', 'realised', 'centre', 'traveller', 'four', 'prize']
    """
    if word in _british():
        return _british()[word]
    return word if word in _ALWAYS_Z else _IZE.sub(r"\1s\2", word)


@functools.cache
def _british() -> dict[str, str]:
    """Return British spelling by American one."""
    known = _KNOWN["spelling"]
    endings = ["", *known["our_endings"].split()]
    found = {f"{stem}r{ending}": f"{stem}ur{ending}" for stem in known["our"].split() for ending in endings}
    for american, british in (("er", "re"), ("ers", "res"), ("ered", "red")):
        found |= {f"{stem}{american}": f"{stem}{british}" for stem in known["re"].split()}
    for ending in known["doubled_endings"].split():
        found |= {f"{stem}{ending}": f"{stem}{stem[-1]}{ending}" for stem in known["doubled"].split()}
    singles: Mapping[str, str] = known["singles"]
    return {**found, **singles}


ALL = "all"
_EACH = ["system", "utterance", "listener", "words", "errors", "reference", "heard"]
_SUMMED = ["substitutions", "deletions", "insertions", "keywords", "keywords_heard", "is_nothing"]


def make_transcription_tables(
    transcripts: Transcripts,
    objective: ObjectiveRows | None,
    settings: Settings,
    language: str = ENGLISH,
    original: str = ORIGINAL,
) -> list[DataTable]:
    """Return the tables ``transcription`` and ``transcripts``.

    Args:
        objective: word errors of the recogniser; None where nothing was computed.
        language: that was spoken; what is not English gets case and punctuation normalised only, and no keywords.
        original: name of unprotected speech.
    """
    counting: Transcripts = transcripts.rows(transcripts.excluded == "")
    has_reference = np.char.strip(counting.reference) != ""
    unknown = Counter(counting.system[~has_reference].tolist())
    unknown[ALL] = unknown.total() - unknown[original]
    counted = _count_errors(counting.rows(has_reference), language)
    recognised = index_objective(objective)
    listeners = sorted(counted["listener"].unique())
    draws = draw_listeners(len(listeners), settings)
    rows = []
    for system, of_system in _by_system(counted).items():
        row, note = _understood(of_system, listeners, draws, settings)
        rate, missing = _recogniser_rate(of_system, recognised)
        if not is_english(language):
            del row["keyword_accuracy"]
        notes = (_without_reference(unknown[system]), note, missing)
        rows.append({"system": system, "recogniser_wer": rate, "remark": " ".join(filter(None, notes))} | row)
    return [make_table("transcription", rows), make_table("transcripts", counted[_EACH].to_dict("records"))]


def _count_errors(transcripts: Transcripts, language: str) -> DataFrame:
    """Return a row for each transcript, in the order of system (original first), utterance, listener and session.

    Words of the reference and of what was heard are normalised, with blanks between. `keywords`: content words among
    those of the reference; `is_nothing`: no word was written.
    """
    from pandas import DataFrame

    named = [getattr(transcripts, name) for name in ("text", "item", "session", "listener", "utterance", "system")]
    rows: list[Row] = []
    for place in np.lexsort([*named, transcripts.system != ORIGINAL]).tolist():
        row: Row = {name: str(getattr(transcripts, name)[place]) for name in ("listener", "system", "utterance")}
        text = "" if transcripts.nothing[place] else str(transcripts.text[place])
        reference, heard = match_words(str(transcripts.reference[place]), text, language)
        alignment = align_words(reference, heard)
        keywords = [one for one in alignment if one.reference is not None and one.reference not in FUNCTION_WORDS]
        row |= {"reference": " ".join(reference), "heard": " ".join(heard), "is_nothing": not heard}
        row |= {"words": len(reference), "errors": sum(not one.is_correct for one in alignment)}
        row |= {"deletions": sum(one.hypothesis is None for one in alignment)}
        row |= {"insertions": sum(one.reference is None for one in alignment)}
        row |= {"substitutions": row["errors"] - row["deletions"] - row["insertions"]}
        row |= {"keywords": len(keywords), "keywords_heard": sum(one.is_correct for one in keywords)}
        rows.append(row)
    return DataFrame(rows, columns=[*_EACH, *_SUMMED])


def _by_system(counted: DataFrame) -> dict[str, DataFrame]:
    """Return the original first, then all that is anonymised if that is more than one system, then each system."""
    of_system = {str(name): rows for name, rows in counted.groupby("system", sort=False)}
    original = {ORIGINAL: of_system.pop(ORIGINAL)} if ORIGINAL in of_system else {}
    every = {ALL: counted[counted["system"] != ORIGINAL]} if len(of_system) > 1 else {}
    return original | every | of_system


def _understood(
    counted: DataFrame, listeners: Sequence[str], draws: Floats | None, settings: Settings
) -> tuple[Row, str]:
    """Return what a row of ``transcription`` says of listeners, and its note."""
    total = counted[["words", "errors", *_SUMMED]].sum()
    row: Row = {"n": len(counted), "listeners": counted["listener"].nunique(), "words": total["words"]}
    row |= {"utterances": counted["utterance"].nunique(), "nothing": total["is_nothing"] / len(counted)}
    row |= {name: _ratio(total[name], total["words"]) for name in ("substitutions", "deletions", "insertions")}
    row |= {"wer": _ratio(total["errors"], total["words"])}
    row["keyword_accuracy"] = _ratio(total["keywords_heard"], total["keywords"])
    if draws is None or row["listeners"] < settings.least_clusters:
        return row, f"Fewer than {settings.least_clusters} listeners: no interval."
    of_listener = counted.groupby("listener")[["errors", "words"]].sum().reindex(listeners, fill_value=0)
    drawn = draws @ of_listener.to_numpy(np.float64)
    with np.errstate(invalid="ignore"):
        rates: Floats = np.where(drawn[:, 1] > 0, drawn[:, 0] / drawn[:, 1], np.nan)
    row["wer_low"], row["wer_high"] = percentile_interval(rates, settings.level)
    return row, ""


def _recogniser_rate(
    counted: DataFrame, recognised: Mapping[tuple[str, str], ObjectiveMeasures]
) -> tuple[float | None, str]:
    """Return the recogniser's WER, utterances weighted by how often transcribed, and a note where some lack it."""
    measures = [recognised.get(name) for name in zip(counted["system"], counted["utterance"], strict=True)]
    known = [one for one in measures if one is not None and np.isfinite(one.one_minus_wer)]
    if not known:
        return None, ""
    rate = _ratio(sum(one.errors for one in known), sum(one.words for one in known))
    if len(known) == len(counted):
        return rate, ""
    return rate, f"The recogniser's result is known for {len(known)} of {len(counted)} transcripts."


def _without_reference(transcripts: int) -> str:
    if not transcripts:
        return ""
    return f"{transcripts} transcript{'' if transcripts == 1 else 's'} left out: what was said is not known."


def _ratio(part: float, whole: float) -> float | None:
    return part / whole if whole else None
