"""The sentences on problems and the code that names them go together."""

import re
import tomllib
from pathlib import Path

import portal.intake
from common.problems import Severity
from portal.intake.problem_codes import describe, fill

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


def test_problem_takes_its_severity_from_its_table_unless_told_otherwise():
    problem = describe("name-not-utf8", "a.txt", line=3, encoding="cp437")
    assert (problem.code, problem.file, problem.line, problem.severity) == ("name-not-utf8", "a.txt", 3, "warning")
    assert problem.found == "another encoding, read as cp437"
    assert describe("missing", "a.wav", severity=Severity.WARNING).severity == "warning"


def test_word_behind_the_slash_is_no_part_of_the_code():
    assert describe("missing-file/utt2spk", "dev/utt2spk").code == "missing-file"
    assert fill("not-finite", samples=2, found="1 NaN")[0] == "not-finite"
