"""The sentences on problems and the code that names them go together."""

import re
import tomllib
from pathlib import Path

import portal.intake
from common.problems import Severity

FOLDER = Path(portal.intake.__file__).parent
SOURCES = [
    *FOLDER.rglob("*.py"),
    *(one for name in ("submissions", "challenges", "corpora") for one in FOLDER.with_name(name).glob("*.py")),
]
SENTENCES = tomllib.loads((FOLDER / "problem_codes.toml").read_text("utf-8"))
# Made of a word that is only known when the problem is found.
PUT_TOGETHER = re.compile(r"(no-(utterance|speaker)|contradicting-\w+/set|(longer|shorter)/(somewhat|far))\Z")


def kinds_named_in_code():
    text = "\n".join(path.read_text("utf-8") for path in SOURCES)
    return {name for name in SENTENCES if f'"{name}"' in text}


def test_every_kind_is_named_in_code():
    assert {name for name in SENTENCES if not PUT_TOGETHER.match(name)} <= kinds_named_in_code()


def test_every_kind_that_code_names_has_its_sentences():
    text = "\n".join(path.read_text("utf-8") for path in SOURCES)
    named = re.findall(r'(?:describe|refuse|_refused|_tell|fill|\.problem|check_size)\(\s*"([^"]+)"', text)
    assert named
    assert set(named) <= SENTENCES.keys()


def test_table_says_what_was_expected_and_found_and_what_to_do():
    for kind, sentences in SENTENCES.items():
        assert sentences.keys() - {"severity"} == {"expected", "found", "remedy"}, kind
        assert sentences.get("severity", "error") in list(Severity), kind
