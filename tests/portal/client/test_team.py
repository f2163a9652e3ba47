"""The way of a team by ``vp``: data, run, pack, submit, accepted at the first try; and what stops it on the way."""

import errno
import hashlib
import json
import re
import shutil
import sys
import zipfile
from datetime import UTC, datetime
from pathlib import Path

import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from portal.accounts.tokens import create_token
from portal.challenges.models import Corpus
from portal.challenges.services import prepare_data_files
from portal.client.api import open_portal
from portal.client.data import ARRIVING, NOTE, OfferedFile
from portal.client.main import main
from portal.jobs.models import Job, JobState
from portal.jobs.runner import execute
from portal.submissions.models import Submission
from tests.anonymization.programs import confined
from tests.portal.archives import DESCRIPTION, check, wav, zip_of
from tests.portal.browser.journey import copy_speech, recipe_text
from tests.portal.factories import make_corpus, make_edition, make_organizer, make_team, make_user

pytestmark = pytest.mark.django_db(transaction=True)
REVERSE = """
import sys, wave
from pathlib import Path
source, target = map(Path, sys.argv[1:3])
Path("scratch").write_text("for a while")
is_folder = source.is_dir()
for path in source.iterdir() if is_folder else [source]:
    made_at = target / path.name if is_folder else target
    with path.open("rb") as file, wave.open(file) as given, wave.open(str(made_at), "wb") as made:
        made.setparams(given.getparams())
        made.writeframes(memoryview(given.readframes(given.getnframes())).cast("h")[::-1].tobytes())
"""


def open_edition(corpus, **fields):
    edition = make_edition(corpus, name="autumn", shares_data=True, scores_required=False, **fields)
    prepare_data_files(edition=edition)
    assert execute(Job.objects.get(kind="data-files").pk).state == JobState.SUCCEEDED
    return edition


@pytest.fixture
def edition():
    return open_edition(make_corpus("tones"))


@pytest.fixture
def speech_edition(tmp_path):
    organizer = make_organizer()
    folder = copy_speech(tmp_path / "speech", speakers_of_a_gender=1)
    call_command("import_corpus", folder, name="demo", owner=organizer.email, verbosity=0)
    return open_edition(Corpus.objects.get(), protocol="", recipe_text=recipe_text(), organizers=[organizer])


@pytest.fixture
def owner():
    return make_user()


@pytest.fixture
def vp(monkeypatch, live_server, tmp_path, capsys, owner):
    """Runs a command in an empty folder: exit code, standard output, standard error."""
    token = create_token(user=owner, name="vp", scopes=["read", "submit"], expires_at=None)[1]
    for name, text in {"VP_SERVER": live_server.url, "VP_TOKEN": token}.items():
        monkeypatch.setenv(name, text)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")

    def run(*words):
        capsys.readouterr()
        code = main([str(word) for word in words])
        return code, *capsys.readouterr()

    return run


def accept(edition, person):
    """As on the page of the data."""
    client = Client()
    client.force_login(person)
    terms = client.get(reverse("api:data", args=[edition.name])).json()["terms"]
    client.post(reverse("editions:accept-data", args=[edition.name]), {"terms": terms})


def test_team_goes_from_approval_to_an_accepted_submission(vp, speech_edition, owner, live_server):
    code, _, said = vp("data", "autumn")
    assert (code, "You do not take part in autumn: this is for approved teams and organizers." in said) == (2, True), (
        said
    )
    make_team(speech_edition, owner=owner, number=11)
    code, _, said = vp("data", "autumn")
    assert (code, f"accept them on {live_server.url}/editions/autumn/data/" in said) == (2, True), said
    assert not Path("autumn").exists()
    accept(speech_edition, owner)

    type(speech_edition).objects.update(archived_at=datetime(2026, 5, 4, tzinfo=UTC))
    code, said, warned = vp("data", "autumn")
    assert (code, "Next: vp run autumn" in said) == (0, True), warned
    assert "The edition autumn was archived on 2026-05-04: it takes no submissions." in said + warned
    type(speech_edition).objects.update(archived_at=None)
    code, said, warned = vp("run", "autumn", "--method", "mcadams-2022", "--jobs", "1")
    assert (code, "Next: vp pack autumn" in said) == (0, True), said + warned
    code, said, warned = vp("pack", "autumn")
    assert (code, "Found 0 errors" in said, "--kind" in said) == (0, True, False), said + warned
    assert ".anonymization.lock" not in said
    line = re.search("Next: vp (submit .*)", said)[1]
    code, said, warned = vp(*line.split(), "--no-wait")
    assert code == 0, warned
    submission = check(Submission.objects.get())
    assert (submission.errors, submission.state) == (0, Submission.State.EVALUATING)
    names = zipfile.ZipFile("autumn/autumn.zip").namelist()
    assert len(names) == 24
    type(speech_edition).objects.update(description_required=True)
    code, said, warned = vp("run", "autumn", "--method", "mcadams-2022", "--jobs", "1")
    [line] = re.findall("Next: vp (pack autumn --add DESCRIPTION.pdf)", said)
    Path("DESCRIPTION.pdf").write_bytes(DESCRIPTION)
    code, said, warned = vp(*line.split())
    assert (code, "say --kind primary instead" in said) == (0, True), said + warned
    assert re.search("Next: vp submit .* --system T11-p1$", said, re.MULTILINE)
    assert not [name for name in names if not re.fullmatch(r"demo_[a-z_]+_anon/wav/[^/]+\.wav", name)]


@pytest.fixture
def fetched(vp, edition, owner):
    """The data of tones on the team's machine."""
    make_team(edition, owner=owner, number=11)
    accept(edition, owner)
    code, _, warned = vp("data", "autumn")
    assert code == 0, warned
    return Path("autumn")


def test_data_go_on_where_they_ended_and_damage_is_found(vp, fetched, edition, monkeypatch):
    code, said, _ = vp("data", "autumn")
    assert (code, "0 of them new" in said) == (0, True)
    kept = json.loads((fetched / NOTE).read_text())
    lost = fetched / "data" / "tones_enrolls" / "wav"
    shutil.rmtree(lost)
    (fetched / ARRIVING).mkdir()
    arriving = fetched / ARRIVING / "tones_enrolls.zip"
    arriving.write_bytes(b"not what stands there")
    code, said, warned = vp("data", "autumn")
    assert (code, "1 of them new" in said, json.loads((fetched / NOTE).read_text())) == (0, True, kept), warned
    assert len(list(lost.iterdir())) == 4
    assert not arriving.parent.exists()
    with open_portal() as portal:
        [row] = [one for one in portal.get("editions/autumn/data/")["files"] if one["name"] == arriving.name]
        place, told = Path("whole.zip"), []
        portal.download(row["url"], place, str)
        whole = place.read_bytes()
        place.write_bytes(whole[:1000])
        portal.download(row["url"], place, told.append)
    assert (place.read_bytes() == whole, hashlib.sha256(whole).hexdigest()) == (True, row["sha256"])
    assert min(told) > 1000


def test_data_of_another_kind_are_never_unpacked_outside(vp, fetched, monkeypatch):
    """What the portal would have to be to harm the machine of a team."""
    evil = zip_of({"../outside.txt": b"x"})
    row = {"name": "evil.zip", "bytes": len(evil), "sha256": hashlib.sha256(evil).hexdigest(), "url": "/x"}
    monkeypatch.setattr("portal.client.data.list_files", lambda *_: [OfferedFile(**row)])
    monkeypatch.setattr("portal.client.api.Portal.download", lambda *given: given[2].write_bytes(evil))
    code, _, said = vp("data", "autumn")
    assert (code, "Tell the organizer." in said) == (2, True), said
    assert not list(Path().rglob("outside.txt"))

    def fill(*given):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("portal.client.data.list_files", lambda *_: [OfferedFile(**row | {"name": "full.zip"})])
    monkeypatch.setattr("portal.client.api.Portal.download", fill)
    code, _, said = vp("data", "autumn")
    assert (code, said.startswith("autumn: it cannot be written, “No space left on device”.")) == (2, True), said
    monkeypatch.setattr("portal.client.api.Portal.download", lambda *given: given[2].write_bytes(evil))
    monkeypatch.setattr("portal.client.data.list_files", lambda *_: [OfferedFile(**row | {"sha256": "0" * 64})])
    code, _, said = vp("data", "autumn")
    assert (code, "expected the SHA-256" in said) == (2, True), said


def run_command(vp, command, *words):
    """``vp run`` of one's own command: exit code, standard output, and standard error in one line."""
    code, said, warned = vp("run", "autumn", "--jobs", 1, "--command", command, *words)
    return code, said, " ".join(warned.split())


COMMANDS = {
    "braces": """f=wav; echo "${f}" | awk '{print}' | sed -n '1{p}' && PYTHON reverse.py {input} {output}""",
    "folders": "PYTHON reverse.py {input_folder} {output_folder}",
    "confined": "PYTHON reverse.py {input} {output}",
}


@pytest.mark.parametrize("kind", ["braces", "folders", pytest.param("confined", marks=confined)])
def test_own_command_runs_as_it_is_typed(kind, vp, fetched, monkeypatch):
    """In the home folder, too; what it writes where it starts is not left there."""
    Path("reverse.py").write_text(REVERSE)
    monkeypatch.setenv("HOME", str(Path.cwd()))
    command = COMMANDS[kind].replace("PYTHON", sys.executable)
    words = {"folders": (), "confined": ("--limit", 2, "--reads", ".")}.get(kind, ("--limit", 2))
    code, said, warned = run_command(vp, command, *words)
    assert code == 0, said + warned
    assert len(list((fetched / "anonymised").rglob("*_anon/wav/*.wav"))) == (2 if words else 8)
    assert not Path("scratch").exists()


def test_command_that_cannot_run_is_one_sentence(vp, fetched):
    for command, sentence in (
        ("nosuch {input} {output}", "expected a program, found “nosuch”, which is in no folder of PATH."),
        ("cat {input}", "command: expected {output} with {input}, found none."),
        ("cat '{input} {output}", "--command: expected a command that /bin/sh can read"),
    ):
        code, said, warned = vp("run", "autumn", "--command", command)
        assert (code, said, warned.count("\n"), sentence in warned) == (2, "", 1, True), warned


def test_command_that_cannot_be_confined_is_refused(vp, fetched, monkeypatch):
    monkeypatch.setattr("portal.client.run.explain_missing_bubblewrap", lambda: "bubblewrap is missing")
    code, said, warned = vp("run", "autumn", "--command", "cat {input} {output}", "--reads", ".")
    assert (code, said) == (2, "")
    assert "cannot be confined here: bubblewrap is missing. Without --reads it runs unconfined." in " ".join(
        warned.split()
    )


def test_failure_of_a_command_is_told_once_with_its_line_and_what_it_printed(vp, fetched):
    code, _, warned = run_command(vp, f"{sys.executable} -c 1/0 {{input}} {{output}}")
    assert (code, warned.count("ZeroDivisionError"), "8 files, such as " in warned) == (1, 1, True), warned
    assert "It ended with exit code 1, expected 0. The last that it printed: " in warned
    assert f"Command: {sys.executable} -c 1/0 {{input}} {{output}}" in warned
    _, _, warned = run_command(vp, "echo no such file: {input} >&2; false {output}", "--limit", 1)
    assert "The last that it printed: no such file: {input}. Command: echo" in warned


def test_run_goes_on_unless_nothing_was_finished_or_its_program_was_changed(vp, fetched):
    Path("reverse.py").write_text(REVERSE)
    command = f"{sys.executable} reverse.py {{input}} {{output}}"
    assert run_command(vp, f"false {command}", "--limit", 1)[0] == 1
    assert run_command(vp, command, "--limit", 1)[0] == 0
    assert run_command(vp, command, "--limit", 1)[0] == 0
    Path("reverse.py").write_text(f"{REVERSE}\n")
    for changed in (command, f"{command} {{seed}}"):
        code, _, warned = run_command(vp, changed, "--limit", 1)
        assert (code, "own-command has changed since this folder was begun" in warned) == (2, True), warned


def test_pack_names_every_fault_and_leaves_no_archive(vp, fetched):
    folder = Path("ours")
    folder.mkdir()
    for number, path in enumerate(sorted((fetched / "data").rglob("wav/*"))):
        (folder / f"{path.stem}.wav").write_bytes(wav(300 + 7 * number))
    names = sorted(folder.iterdir())
    sound = names[0].read_bytes()
    names[0].write_bytes(wav(300, seconds=0.01))
    other = names[1].rename(folder / "other-name.wav")
    code, said, warned = vp("pack", "autumn", folder)
    told = ("Too short", "Missing utterances", "Nothing was packed.", "has its name: other-name.wav.")
    assert (code, [words for words in told if words not in said]) == (1, []), said
    assert not list(Path().rglob("*.zip*"))
    names[0].write_bytes(sound)
    other.unlink()
    names[1].write_bytes(wav(999))
    (folder / "readme.wav").write_bytes(b"")
    Path("paper.pdf").write_bytes(DESCRIPTION)
    code, said, warned = vp("pack", "autumn", folder, "--add", "paper.pdf", "--out", "ours.zip")
    assert (code, "Left out, as no utterance of the edition has its name: readme.wav." in said) == (0, True), (
        said + warned
    )
    assert "paper.pdf" in zipfile.ZipFile("ours.zip").namelist()
    first = Path("ours.zip").read_bytes()
    (folder / "Icon\r").touch()
    Path("paper").write_bytes(DESCRIPTION)
    _, said, _ = vp("pack", "autumn", folder, "--add", "paper.pdf", "--add", "paper", "--out", "ours.zip")
    assert "1 that an operating system or a program left behind, such as Icon\\r" in said
    assert "paper: expected a description whose name ends in .pdf, found what looks like description" in said
    assert Path("ours.zip").read_bytes() == first
    (folder / "paper.pdf").write_bytes(DESCRIPTION)
    code, said, warned = vp("pack", "autumn", folder, "--add", folder / "paper.pdf", "--out", "same.zip")
    assert (code, zipfile.ZipFile("same.zip").namelist().count("paper.pdf")) == (0, 1), said + warned
    code, said, warned = vp("pack", "autumn", folder, "--add", "paper.pdf")
    assert (code, "expected one file of the name paper.pdf" in warned) == (2, True), said + warned
