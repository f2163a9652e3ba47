"""English words that hold a sentence together and carry little of its message; all others are content words.

Closed classes only: articles, pronouns, prepositions, conjunctions, auxiliary verbs, particles, as in Quirk, Greenbaum,
Leech & Svartvik, "A Comprehensive Grammar of the English Language" (1985), section 2.35. Numerals count as content.

Conventions: small letters, contractions written out, no apostrophes, as `normalised_words` gives words.
"""

from __future__ import annotations

_ARTICLES = "a an the this that these those each every either neither some any no all both such same other another"
_PRONOUNS = (
    "i me my mine myself you your yours yourself yourselves thou thee thy thine he him his himself she her hers "
    "herself it its itself we us our ours ourselves they them their theirs themselves ones who whom whose which "
    "what whoever whatever whichever somebody someone something anybody anyone anything nobody nothing everybody "
    "everyone everything none much many more most few little less least"
)
_PREPOSITIONS = (
    "about above across after against along amid among around as at before behind below beneath beside besides "
    "between beyond but by concerning despite down during except for from in inside into like near of off on onto "
    "out outside over past per round since than through throughout till to toward towards under underneath until "
    "unto up upon via with within without"
)
_CONJUNCTIONS = "and or nor so yet if unless because though although while whilst whereas whether lest once"
_VERBS = (
    "am is are was were be been being have has had having do does did doing done will would shall should can could "
    "may might must ought need dare used hath doth hast art wast wert wilt shalt"
)
_PARTICLES = (
    "not aint there here then thus hence too also just only even ever never very quite rather almost still already "
    "again away back how when where why oh ah"
)
FUNCTION_WORDS = frozenset(" ".join((_ARTICLES, _PRONOUNS, _PREPOSITIONS, _CONJUNCTIONS, _VERBS, _PARTICLES)).split())
