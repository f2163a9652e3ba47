"""British and American spellings of the same English word, brought to the British one.

A listener who writes "color" has understood "colour". Only spellings are treated, never words that sound different
(aluminum, airplane, toward) or that are other words in British English (check, story, tire). Older spellings of the
books that test sets are read from (shew, waggon) are treated alike.

Conventions: words in small letters. Source of the classes: New Oxford Style Manual (2016), section 21.
"""

from __future__ import annotations

import functools
import re

_OUR = (
    "arbo ardo armo behavio cando clamo colo demeano discolo dishono endeavo enamo favo fervo flavo glamo harbo hono "
    "humo labo misdemeano neighbo odo parlo ranco rigo rumo savio savo splendo succo tumo valo vapo vigo"
)
_OUR_ENDINGS = (
    "", "s", "ed", "ing", "er", "ers", "able", "ably", "ful", "fully", "ite", "ites", "less", "hood", "hoods", "ly",
    "y", "ist", "ings",
)  # fmt: skip
_RE = (
    "calib cent centimet fib goit kilomet lit lust meag met millimet louv och reconnoit sab scept sepulch somb spect "
    "theat"
)
_DOUBLED = (
    "cancel channel chisel counsel cudgel dial duel enamel equal fuel grovel gravel hovel imperil jewel kidnap label "
    "level libel marvel model panel pedal pencil quarrel revel rival shovel shrivel signal snivel spiral squirrel "
    "stencil swivel total towel travel trowel tunnel unravel worship"
)
_DOUBLED_ENDINGS = ("ed", "ing", "er", "ers", "ings", "or", "ors", "ous", "ously")
_SINGLES = {
    "acknowledgement": "acknowledgment", "aging": "ageing", "analog": "analogue", "anesthetic": "anaesthetic",
    "archeology": "archaeology", "artifact": "artefact", "artifacts": "artefacts", "ax": "axe", "caldron": "cauldron",
    "catalog": "catalogue", "catalogs": "catalogues", "centering": "centring", "connexion": "connection",
    "connexions": "connections", "cozily": "cosily", "cozy": "cosy", "cypher": "cipher", "defense": "defence",
    "defenseless": "defenceless", "defenses": "defences", "despatch": "dispatch", "despatched": "dispatched",
    "dialog": "dialogue", "dialogs": "dialogues", "distill": "distil", "draft": "draught", "drafts": "draughts",
    "encyclopedia": "encyclopaedia", "enroll": "enrol", "enrollment": "enrolment", "esthetic": "aesthetic",
    "fetus": "foetus", "fulfill": "fulfil", "fulfillment": "fulfilment", "fulfills": "fulfils", "gaol": "jail",
    "gaoler": "jailer", "gray": "grey", "grayer": "greyer", "grayish": "greyish", "grays": "greys",
    "gypsies": "gipsies", "gypsy": "gipsy", "hemorrhage": "haemorrhage", "hiccough": "hiccup", "inclose": "enclose",
    "inclosed": "enclosed", "inclosure": "enclosure", "inquire": "enquire", "inquired": "enquired",
    "inquires": "enquires", "inquiries": "enquiries", "inquiring": "enquiring", "inquiry": "enquiry",
    "installment": "instalment", "installments": "instalments", "instill": "instil", "intrench": "entrench",
    "jewelry": "jewellery", "judgement": "judgment", "judgements": "judgments", "licence": "license",
    "licenced": "licensed", "licences": "licenses", "maneuver": "manoeuvre", "maneuvered": "manoeuvred",
    "maneuvering": "manoeuvring", "maneuvers": "manoeuvres", "meagerly": "meagrely", "medieval": "mediaeval",
    "mold": "mould", "molded": "moulded", "molding": "moulding", "molds": "moulds", "moldy": "mouldy",
    "molt": "moult", "mustache": "moustache", "mustached": "moustached", "mustaches": "moustaches",
    "naught": "nought", "offense": "offence", "offenses": "offences", "ok": "okay", "orthopedic": "orthopaedic",
    "pajamas": "pyjamas", "pediatric": "paediatric", "plow": "plough", "plowed": "ploughed", "plowing": "ploughing",
    "plowman": "ploughman", "plows": "ploughs", "practise": "practice", "practised": "practiced",
    "practises": "practices", "practising": "practicing", "pretense": "pretence", "pretenses": "pretences",
    "program": "programme", "programs": "programmes", "shew": "show", "shewed": "showed", "shewn": "shown",
    "shews": "shows", "skeptic": "sceptic", "skeptical": "sceptical", "skeptically": "sceptically",
    "skepticism": "scepticism", "skillful": "skilful", "skillfully": "skilfully", "smolder": "smoulder",
    "smoldered": "smouldered", "smoldering": "smouldering", "smolders": "smoulders", "somberly": "sombrely",
    "sulfur": "sulphur", "waggon": "wagon", "waggons": "wagons", "whisky": "whiskey", "willful": "wilful",
    "willfully": "wilfully", "woolen": "woollen", "woolens": "woollens", "wooly": "woolly",
}  # fmt: skip
# -ise and -ize sound alike; these are written with z by everybody, or are other words with s.
_ALWAYS_Z = (
    "size sizes sized sizing prize prizes prized prizing seize seizes seized seizing capsize capsizes capsized "
    "capsizing maize assize assizes downsize downsized resize resized resizing outsize undersized oversized baize"
)
_IZE = re.compile(r"(?<=..)([iy])z(e|es|ed|er|ers|ing|ingly|able|ation|ations|ational)$")


@functools.cache
def british_spelling(word: str) -> str:
    """The British spelling of a word in small letters; the word itself where there is no other.

    >>> [british_spelling(word) for word in ("color", "realized", "center", "traveler", "four", "prize")]
    ['colour', 'realised', 'centre', 'traveller', 'four', 'prize']
    """
    if word in _british():
        return _british()[word]
    return word if word in _always_z() else _IZE.sub(r"\1s\2", word)


@functools.cache
def _british() -> dict[str, str]:
    """British spelling by American one."""
    known = {f"{stem}r{ending}": f"{stem}ur{ending}" for stem in _OUR.split() for ending in _OUR_ENDINGS}
    for american, british in (("er", "re"), ("ers", "res"), ("ered", "red")):
        known |= {f"{stem}{american}": f"{stem}{british}" for stem in _RE.split()}
    for ending in _DOUBLED_ENDINGS:
        known |= {f"{stem}{ending}": f"{stem}{stem[-1]}{ending}" for stem in _DOUBLED.split()}
    known |= _SINGLES
    return known


@functools.cache
def _always_z() -> frozenset[str]:
    return frozenset(_ALWAYS_Z.split())
