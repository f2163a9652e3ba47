"""The commands and the code of the documentation are run as they are written there."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from unittest.mock import patch
from urllib.request import urlopen

import pytest

from anonymization.methods.registry import methods
from evaluation.objective_results.recomputation import measure_scores
from listening.analysis import cli as analysis_commands
from listening.design.selection import choose_candidates
from portal.client.main import main as run_vp
from tests.anonymization.cli.shell import write_kaldi
from tests.command_line import read_words
from tests.documented_engines import ENGINE_COMMANDS, MODEL_COMMANDS, run_engines
from tests.evaluation.commands import RANK_FILE, write_test
from tests.golden import demo as golden
from tests.listening.analysis.made_ratings import made_ratings
from tests.listening.design.pools import make_pool
from tests.portal.browser.journey import copy_speech
from tests.portal.intake.packing import pdf_of
from tests.portal.processes.programs import PATIENCE_S, free_port, wait_until
from tests.snapshots import write_empty_database

# Its programs would take the jobs of other tests of the same process.
pytestmark = pytest.mark.processes

ROOT = Path(__file__).resolve().parents[1]
README, LIBRARY = ROOT / "README.md", ROOT / "docs" / "library.md"
PAGES = [README, *sorted((ROOT / "docs").glob("*.md"))]
LIMIT_S = 400


def blocks(language: str, pages: Sequence[Path] = PAGES) -> list[str]:
    """The code blocks of a language in some pages, or all."""
    pattern = re.compile(rf"^```{language}\n(.*?)^```", re.MULTILINE | re.DOTALL)
    return [block for page in pages for block in pattern.findall(page.read_text())]


def environment(folder: Path, **more: str) -> dict[str, str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PORTAL_", "DJANGO_", "MAKE"))}
    return clean | {"PORTAL_DATA_DIR": str(folder / "var")} | more


def run(command: str, folder: Path, **more: str) -> str:
    """What the command prints; it must end well."""
    answer = subprocess.run(
        ["bash", "-c", command],
        cwd=ROOT,
        env=environment(folder, **more),
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert answer.returncode == 0, f"{command}\n{answer.stdout}\n{answer.stderr}"
    return answer.stdout


@contextmanager
def started(
    command: str, folder: Path, until: str, **more: str
) -> Iterator[tuple[str, list[str], subprocess.Popen[str]]]:
    """A command that runs on: the address that it serves, its lines so far and its process; ended by one Ctrl-C."""
    address = f"127.0.0.1:{free_port()}"
    process = subprocess.Popen(
        ["bash", "-c", f"exec {command} ADDRESS={address}"],
        cwd=ROOT,
        env=environment(folder, **more),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    lines: list[str] = []
    try:
        for line in process.stdout:
            lines.append(line.rstrip())
            if until in line:
                break
        else:
            pytest.fail(f"{command} ended early:\n" + "\n".join(lines))
        yield address, lines, process
    finally:
        os.killpg(process.pid, signal.SIGINT)
        try:
            lines += process.communicate(timeout=PATIENCE_S)[0].splitlines()
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise


def wait_for(address: str) -> bytes:
    """What is there, once it opens."""

    def read() -> bytes | None:
        try:
            with urlopen(f"http://{address}", timeout=10) as answer:
                return answer.read()
        except OSError:
            return None

    return wait_until(read, address)


def make_demo(
    folder: Path,
    options: str = "",
    measured: str = "B2 version 1: evaluated: All ",
    studies: int = 1,
    look: Callable[[str, list[str]], None] = lambda *_: None,
) -> None:
    key = {"PORTAL_SECRET_KEY": golden.SECRET_KEY}
    with started(f"make demo {options}", folder, until="Ctrl-C ends it", **key) as (address, lines, _):
        assert b"VoicePrivacy Portal" in wait_for(f"{address}/log-in/")
        assert any(line.startswith(measured) for line in lines)
        links = [line.split()[1] for line in lines if line.startswith("  listen ")]
        assert len(links) == studies
        assert any(line.startswith("  leaderboard ") for line in lines) == bool(studies)
        for link in links:
            assert b"You are invited to a listening test" in wait_for(link.removeprefix("http://"))
        look(address, lines)


def make_demo_as_frozen(folder: Path) -> None:
    """Without models every machine has the numbers, answers and pages of `tests/golden/demo`."""
    make_demo(folder, "MODELS=no", look=require_frozen)


def require_frozen(address: str, lines: list[str]) -> None:
    found = golden.compare(golden.read_portal(f"http://{address}", lines))
    assert not found, "\n".join(found)


def make_demo_with_speech(folder: Path) -> None:
    """One speaker of each gender is too little for a challenge: B2 alone anonymises it."""
    speech = copy_speech(folder / "speech", speakers_of_a_gender=1)
    make_demo(folder, f"SPEECH={speech}", measured="Measure demo_enrolls · b2-speech: Succeeded", studies=0)


def make_test(folder: Path) -> None:
    assert "pytest" in run("make --dry-run test", folder)  # this very run


IMPORT = ".venv/bin/python manage.py import-corpus demo/corpus --name demo --shared"
FIRST_ACCOUNT = ".venv/bin/python manage.py first-account"


def production_settings(folder: Path) -> None:
    [block] = [block for block in blocks("sh") if "PORTAL_DATABASE_URL" in block]
    run(f"{block}\n.venv/bin/python manage.py check --deploy --fail-level WARNING", folder)


PYTHON, VP = ".venv/bin/python", ".venv/bin/vp"
# What a new process says of warnings, unlike pytest.
UNSAID = (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning)


@dataclass(frozen=True)
class Answer:
    """How a command ended, what it printed, and what it complained of."""

    code: int
    said: str
    problems: str


@contextmanager
def working_in(folder: Path, given: str = "", **more: str) -> Iterator[tuple[io.StringIO, io.StringIO]]:
    """This process is what a person starts in this folder: what it prints, and what it complains of."""
    said, problems = io.StringIO(), io.StringIO()
    clean = environment(folder, PYTHONPATH=str(ROOT), **more)
    with (
        chdir(folder),
        patch.dict(os.environ, clean, clear=True),
        patch.object(sys, "stdin", io.StringIO(given)),
        redirect_stdout(said),
        redirect_stderr(problems),
        warnings.catch_warnings(record=True) as warned,
    ):
        warnings.simplefilter("default")
        for category in UNSAID:
            warnings.simplefilter("ignore", category)
        yield said, problems
    problems.writelines(f"{one.filename}:{one.lineno}: {one.category.__name__}: {one.message}\n" for one in warned)


def call(line: str, folder: Path, given: str = "", **more: str) -> Answer:
    """Run a command of ``vp`` in this process, which has already loaded what each would load again."""
    program, *words = shlex.split(line)
    assert program in (VP, "vp")
    with working_in(folder, given, **more) as (said, problems):
        code = run_vp(words)
    return Answer(code, said.getvalue(), problems.getvalue())


def start(line: str, folder: Path, given: str = "", **more: str) -> Answer:
    """Run it as a process of its own."""
    answer = subprocess.run(
        [ROOT / PYTHON, "-m", "portal.client", *shlex.split(line)[1:]],
        cwd=folder,
        env=environment(folder, PYTHONPATH=str(ROOT), **more),
        input=given,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    return Answer(answer.returncode, answer.stdout, answer.stderr)


def run_beside(line: str, folder: Path, given: str = "", **more: str) -> Answer:
    """Run a command beside the files of this folder; it must end well. One of each program is a process of its own."""
    answer = (start if line in PROCESSES else call)(line, folder, given, **more)
    assert answer.code == 0, f"{line}\n{answer.said}\n{answer.problems}"
    return answer


def science_command(line: str) -> Callable[[Path], None]:
    """A command of the README beside files as it names them, which ends well and prints something."""

    def trial(folder: Path) -> None:
        write_science_files(folder)
        answer = run_beside(line, folder)
        assert (answer.problems, bool(answer.said.strip())) == ("", True)
        for ending in re.findall(r"--(?:det|csv) (\S+)", line):
            assert (folder / ending).stat().st_size > 0

    return trial


def write_science_files(folder: Path) -> None:
    """What the README's section on Python and the shell finds in its folder."""
    write_test(folder)
    for name in ("original", "anonymised"):
        (folder / name).mkdir()
    for path in sorted((ROOT / "demo/corpus/d01").glob("*.flac"))[:2]:
        shutil.copy(path, folder / "original")
        shutil.copy(path, folder / "anonymised")
    (folder / "results").mkdir()
    for name in ("a", "b"):
        (folder / "results" / f"result_for_rank_{name}").write_text(RANK_FILE)
    shutil.copy(ROOT / "evaluation/protocols/2024.toml", folder / "autumn.toml")


PLAN = ".venv/bin/vp study plan trials.csv --evaluators 6 --trials 12 --originals 6 --seed 2022 --out design.json"
CHECK = ".venv/bin/vp study check design.json"
CRITERION = ".venv/bin/python -m pytest -q tests/listening -k criterion_15"


def run_design(folder: Path) -> None:
    """A design of trials as the page names its columns, and its certificate; checked, the saved one gives it again."""
    write_trials(folder / "trials.csv")
    said = [run_beside(line, folder).said for line in (PLAN, CHECK)]
    assert said[0].startswith("Balance certificate: passes")
    assert said[1] == said[0]


def write_trials(path: Path) -> None:
    pool = make_pool(systems=("S0", "S1", "S2"))
    candidates = choose_candidates(pool, systems=("S0", "S1", "S2"), evaluators=6, trials=12, originals=6, seed=2022)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["key", "system", "speaker", "sex", "class", "source", "enrolment"])
        for one in candidates:
            word = "target" if one.is_target else "nontarget"
            writer.writerow([one.key, one.system, one.speaker, one.sex, word, one.source, one.enrolment])


def criterion_alone(folder: Path) -> None:
    """Such words are in the names of the criterion's tests, which run with all others."""
    assert criteria_tried()[15] >= {"monitor/test_flags.py", "monitor/test_monitoring.py"}


ANALYSIS = ".venv/bin/vp study "
ANALYSIS_COMMANDS = (
    f"{ANALYSIS}analyse ratings.csv results --scale 1-10",
    f"{ANALYSIS}analyse ratings.csv by-midrank --scale naturalness=1-10 --normalisation midrank --no-figures",
    f"{ANALYSIS}reproduce results/bundle.zip again",
    f"{ANALYSIS}describe ratings",
    f"{ANALYSIS}describe summary detection",
    f"{ANALYSIS}analyse mushra.csv sliders --kind mushra --reference reference --anchor anchor70",
    f"{ANALYSIS}analyse paired_comparison.csv preference --kind ab --column listener=email",
    f"{ANALYSIS}analyse batch.csv quality --kind mos --pattern '.*/(?P<condition>[^/]+)/(?P<item>[^/]+)\\.wav'",
    f"{ANALYSIS}analyse config comparison --kind ccr",
    f"{ANALYSIS}describe answers",
)


def few_figures(results: object) -> list[object]:
    """Of the figures of an analysis the first: each takes a second, and there are tests of them all."""
    return LIST_FIGURES(results)[:1]


LIST_FIGURES = analysis_commands.list_figures


def run_analysis(folder: Path) -> None:
    """The commands for ratings of any laboratory, one after the other, with as few resamples as are taken."""
    write_ratings(folder / "ratings.csv")
    write_answers_of_other_tools(folder)
    for line in ANALYSIS_COMMANDS:
        fewer = " --resamples 200" if line.startswith(f"{ANALYSIS}analyse") else ""
        with patch.object(analysis_commands, "list_figures", few_figures):
            answer = run_beside(line + fewer, folder)
        assert (answer.problems, bool(answer.said.strip())) == ("", True), line
        assert "0 differ." in answer.said or "reproduce" not in line
    assert (folder / "results" / "tables" / "raw" / "summary.csv").is_file()
    assert list((folder / "results" / "figures").rglob("*.svg"))


def write_ratings(path: Path) -> None:
    """Of one task: of three it takes three times as long."""
    ratings = made_ratings()
    columns = ("listener", "task", "system", "rating", "is_target", "utterance", "speaker")
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        rows = zip(*(getattr(ratings, column).tolist() for column in columns), strict=True)
        writer.writerows(row for row in rows if row[1] == "naturalness")


def write_answers_of_other_tools(folder: Path) -> None:
    """Files as webMUSHRA, the P.808 toolkit and listen-and-rate leave them, of twelve listeners."""
    listeners = range(12)
    sliders = ["session_test_id,session_uuid,trial_id,rating_stimulus,rating_score"]
    pairs = ["session_test_id,email,trial_id,choice_reference,choice_non_reference,choice_answer"]
    batch = ["AssignmentId,AssignmentStatus,WorkerId,Input.tp,Answer.Q1_URL,Answer.q1"]
    (folder / "config").mkdir()
    for one in listeners:
        told = zip(("reference", "C1", "anchor70"), (98, 70, 40), strict=True)
        sliders += [f"t,u{one},trial1,{name},{score + one % 3 - 1}" for name, score in told]
        pairs.append(f"t,{one}@x,trial{one % 2},ref,C1,{'correct' if one % 3 else 'undecided'}")
        batch += [f"a{one},Approved,w{one},u/tp.wav,u/c{number}/i1.wav,{1 + (one + number) % 5}" for number in (1, 2)]
        rows = "session_id,system_a,system_b,item,rating\n" + f"s{one},x,y,u1,{one % 3 - 1}\n"
        (folder / "config" / f"s{one}.csv").write_text(rows)
    for name, lines in (("mushra", sliders), ("paired_comparison", pairs), ("batch", batch)):
        (folder / f"{name}.csv").write_text("\n".join([*lines, ""]))


B2 = "--method mcadams-2022"
ANONYMIZATION_COMMANDS = (
    f"{VP} anonymize {B2} demo/corpus anonymised --seed 2022",
    f"{VP} methods",
    f"{VP} anonymize {B2} demo/corpus louder --seed 2022 --option level=kept --jobs 2",
    f"{VP} voices data {B2} --seed 2022 --out voices.csv",
    f"{VP} voices {B2} --check voices.csv",
    f"{VP} anonymize {B2} data/libri_dev_enrolls enrolled --voices voices.csv",
    f"{VP} anonymize {B2} data anon --seed 2022 --suffix _anon",
)


def run_anonymization(folder: Path) -> None:
    """The commands that anonymise, one after the other; none has anything to complain of."""
    copy_speech(folder / "demo" / "corpus", speakers_of_a_gender=1)
    write_kaldi(folder / "data" / "libri_dev_enrolls", {"1462-1-1": "1462", "84-1-1": "84"})
    write_kaldi(folder / "data" / "libri_dev_trials_f", {"1462-1-2": "1462", "84-1-2": "84"})
    for line in ANONYMIZATION_COMMANDS:
        answer = run_beside(line, folder)
        # A slow machine says from time to time how far it is.
        problems = re.sub(r"^[\d,]+/[\d,]+ utterances.*\n", "", answer.problems, flags=re.MULTILINE)
        assert (problems, bool(answer.said.strip())) == ("", True), line
    assert len(list((folder / "anonymised").rglob("*.wav"))) == 2 * 12
    assert len(list((folder / "anon" / "libri_dev_trials_f_anon" / "wav").iterdir())) == 2


TEAM_COMMANDS = (
    "vp login --server https://portal.example.org",
    "vp data autumn",
    "vp run autumn --method mcadams-2022",
    "vp pack autumn --add T11.pdf",
    'vp submit autumn/autumn.zip --edition autumn --title "Our system"',
    "vp status",
    "vp results T11-p1",
    "vp pack autumn --add T11.pdf --system T11-p1",
    "vp verify autumn/autumn.zip --edition autumn --system T11-p1",
    "vp submit autumn/autumn.zip --edition autumn --system T11-p1",
    "vp status 2",
    "vp results T11-p1 --csv",
    "vp verify autumn/autumn.zip --expected autumn.json",
    "vp verify autumn/anonymised --expected autumn.json --csv report.csv",
)
# The challenge of the commands for teams is on a part of the speech: theirs is anonymised and checked twice.
PREPARED = f"""
import sys
import manage
speech = sys.argv[1]
for line in ({IMPORT!r}, {FIRST_ACCOUNT!r}, f"python manage.py import-corpus {{speech}} --name part --shared"):
    sys.argv = line.split()[1:]
    manage.main()
from django.utils import timezone
from portal.accounts.tokens import create_token
from portal.challenges.models import Corpus
from portal.challenges.services import prepare_data_files
from portal.jobs.models import Job
from portal.submissions.requirements import describe_requirements
from portal.teams.selectors import data_access
from portal.teams.services import accept_data
from tests.portal.browser.journey import recipe_text
from tests.portal.factories import make_edition, make_team, make_user
owner = make_user()
fields = dict(protocol="", recipe_text=recipe_text(), scores_required=False, shares_data=True)
edition = make_edition(Corpus.objects.get(name="part"), name="autumn", title="Autumn", **fields)
make_team(edition, owner=owner, number=11)
prepare_data_files(edition=edition)
accept_data(edition=edition, by=owner, now=timezone.now(), text=data_access(owner, edition).terms)
print(create_token(user=owner, name="vp", scopes=["read", "submit"], expires_at=None)[1])
print(describe_requirements(edition).to_json())
"""


def run_portal(folder: Path) -> None:
    """A portal is started and filled, and the commands for teams run against it, one after the other.

    It says what it does, and ends quietly. Its database is there already: to make it takes longer than a start. It has
    no networks, which would listen to what is sent.
    """
    none = {"PORTAL_MODELS_DIR": str(folder / "models")}
    (folder / "var").mkdir()
    write_empty_database(folder / "var" / "portal.sqlite3")
    with started("make run", folder, until="/first-account/", **none) as (address, lines, make):
        speech = copy_speech(folder / "speech", speakers_of_a_gender=2, seconds=1)
        *said, token, expected = run(f"{PYTHON} -c {shlex.quote(PREPARED)} {speech}", folder).splitlines()
        gained = "The corpus demo gained 10 speakers, 120 utterances, 120 audio files, 3 data sets, 2 trial lists."
        assert gained in said
        assert any("/first-account/" in line for line in said)
        (folder / "autumn.json").write_text(expected)
        # It is ready after the scheduler's first round.
        wait_until(lambda: json.loads(wait_for(f"{address}/health/ready"))["ready"], "a portal that is ready")
        own = {"XDG_CONFIG_HOME": str(folder), **none}
        for number, line in enumerate(TEAM_COMMANDS):
            (folder / "T11.pdf").write_bytes(pdf_of(note=b"draft %d" % number))
            command = line.replace("https://portal.example.org", f"http://{address}")
            with patch.object(os, "cpu_count", return_value=1):  # further processes would compile the method again
                assert run_beside(command, folder, f"{token}\n", **own).said.strip(), line
    told = [line for line in lines if not re.match(r"(web|worker|light|scheduler) +\| ", line)]
    told = told[told.index("Starting the portal") :]  # behind what make installs where requirements are new
    started_at = lines.index("Starting the portal")
    assert lines[started_at : started_at + 4] == told
    _, opened, offered, first = told
    assert opened == f"The portal opens at http://{address}/ (Ctrl-C ends it)"
    assert offered == "Make your account here, as operator and organizer; the address works once:"
    assert re.fullmatch(rf"  http://{address}/first-account/[\w-]{{32}}/", first)
    assert make.returncode in {0, -signal.SIGINT}


COMMANDS = {
    "make demo": make_demo_as_frozen,
    "make demo SPEECH=path/to/speech": make_demo_with_speech,
    "make test": make_test,
    "export": production_settings,
    CRITERION: criterion_alone,
} | {
    line: science_command(line)
    for line in (
        ".venv/bin/vp score scores --trials trials --bootstrap 1000 --det det.svg",
        ".venv/bin/vp pitch original anonymised --csv pitch.csv",
        ".venv/bin/vp verify-results results",
        ".venv/bin/vp verify-results results --recipe autumn.toml",
        ".venv/bin/vp compare results/result_for_rank_a results/result_for_rank_b",
        ".venv/bin/vp metrics",
    )
}
# One whole demo is enough for each run of the tests.
MARKS = {"make demo": pytest.mark.golden, "make demo SPEECH=path/to/speech": pytest.mark.slow}
# What belongs together runs together, once, whatever processes the other tests run in.
SESSIONS = {
    run_portal: (IMPORT, FIRST_ACCOUNT, "make run", *TEAM_COMMANDS),
    run_design: (PLAN, CHECK),
    run_analysis: ANALYSIS_COMMANDS,
    run_anonymization: ANONYMIZATION_COMMANDS,
    partial(run_engines, ENGINE_COMMANDS, run_beside): ENGINE_COMMANDS,
    partial(run_engines, MODEL_COMMANDS, run_beside): MODEL_COMMANDS,
}
PROCESSES = {
    ".venv/bin/vp metrics",
    f"{VP} methods",
    f"{ANALYSIS}describe ratings",
    CHECK,
    "vp status",
}


def documented_commands() -> set[str]:
    """Return the lines of all blocks but those that run as a whole, in `tests/portal/processes/test_copies.py`."""
    found = [block for block in blocks("sh") if not block.startswith("set -eu\n")]
    lines = [line.split("  #")[0].strip() for block in found for line in block.splitlines()]
    return {"export" if line.startswith("export ") else line for line in lines if line}


def test_each_documented_command_is_run_here():
    assert documented_commands() == {*COMMANDS, *chain.from_iterable(SESSIONS.values())}


NAMES = ("portal", "design", "analysis", "anonymization", "engines", "models")


@pytest.mark.parametrize(
    "trial",
    [
        pytest.param(trial, id=name, marks=[pytest.mark.slow] * (name == "engines"))
        for trial, name in zip(SESSIONS, NAMES, strict=True)
    ],
)
@pytest.mark.django_db
def test_documented_commands_that_belong_together_do_what_they_say(trial, tmp_path):
    require_environment()
    trial(tmp_path)


@pytest.mark.parametrize(
    "trial",
    [pytest.param(trial, id=line, marks=MARKS.get(line, ())) for line, trial in COMMANDS.items()],
)
def test_documented_command_does_what_it_says(trial, tmp_path):
    require_environment()
    trial(tmp_path)


@pytest.mark.parametrize("line", ENGINE_COMMANDS)
def test_command_line_takes_the_documented_commands_of_engines(line):
    """They run in `make test-slow`."""
    assert read_words(shlex.split(line)[1:])


def require_environment() -> None:
    if not (ROOT / ".venv").is_dir():
        pytest.skip("the documented commands use .venv, which make test sets up")


def run_code(code: str, where: Path) -> list[float]:
    """The numbers that a piece of documented code prints."""
    with working_in(where) as (said, _):
        exec(compile(code, "documentation", "exec"), {"__name__": "__main__"})
    return [float(word) for word in said.getvalue().split()]


def test_documented_code_for_score_files_runs_in_under_five_lines(tmp_path):
    [code] = blocks("python", [README])
    assert code == blocks("python", [LIBRARY])[0]
    write_science_files(tmp_path)
    assert len([line for line in code.splitlines() if line]) < 5
    measured = measure_scores(tmp_path / "scores", tmp_path / "trials")
    assert run_code(code, tmp_path) == [measured.kaldi_eer, measured.min_cllr]
    assert (tmp_path / "det.pdf").read_bytes().startswith(b"%PDF")


def test_documented_code_for_an_anonymiser_runs():
    _, code = blocks("python", [LIBRARY])
    [rho] = run_code(code, ROOT)
    assert 0 < rho < 1


def test_links_of_the_readme_lead_somewhere_and_it_is_short():
    assert len(README.read_text().splitlines()) <= 60
    for target in re.findall(r"(?:\]\(|src=\")([^)#\"]+)", README.read_text()):
        assert "://" in target or (ROOT / target).exists(), target


def criteria_tried() -> dict[int, set[str]]:
    """The files below tests/listening that try each criterion of the listening test, by the names of their tests."""
    found: dict[int, set[str]] = {number: set() for number in range(1, 35)}
    folder = ROOT / "tests" / "listening"
    for path in folder.rglob("test_*.py"):
        names = re.findall(r"^def test_criterion_(\d\d)(?:_(and|to)_(\d\d))?", path.read_text(), re.MULTILINE)
        for first, word, last in names:
            through = range(int(first), int(last) + 1) if word == "to" else {int(first), int(last or first)}
            for number in through:
                found[number].add(path.relative_to(folder).as_posix())
    return found


def test_criteria_of_the_listening_test_are_tried_where_the_page_says():
    page = (ROOT / "docs" / "architecture.md").read_text()
    rows = dict(re.findall(r"^\| (\d+) [^|]+ \| ([^|]+) \|$", page, re.MULTILINE))
    assert list(map(int, rows)) == list(range(1, 35))
    tried = criteria_tried()
    for number, words in rows.items():
        named = set(re.findall(r"`((?:\w+/)?test_\w+\.py)`", words))
        others = {path for path in named - tried[int(number)] if not (ROOT / "tests/listening" / path).is_file()}
        assert named >= tried[int(number)], f"{number}: {sorted(tried[int(number)] - named)}"
        assert bool(named) == bool(tried[int(number)]), f"{number}: {sorted(named)}"
        assert not others, f"{number}: there is no {sorted(others)}"


def test_page_about_anonymisers_says_what_each_does():
    page = (ROOT / "docs" / "anonymizer-methods.md").read_text()
    assert [method.name for method in methods() if f"`{method.name}`" not in page] == []


def test_make_lists_its_targets(tmp_path):
    listed = run("make", tmp_path)
    for target in ("demo", "run", "test", "lint", "bench", "clean"):
        assert f"make {target}" in listed
