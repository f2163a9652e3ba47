"""``vp`` against a portal that says no, says nothing, or is none; when all is well: processes/test_vp."""

import json
import socket
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
from django.utils import timezone

from common.errors import Unreachable
from portal.accounts.tokens import create_token, revoke_token
from portal.client import api, results, submit
from portal.client.main import main
from portal.submissions.models import Submission, Upload
from portal.submissions.resumable_uploads import hash_upload
from portal.teams.services import invite_member
from tests.portal.archives import DESCRIPTION, anonymised, hand_in, zip_of
from tests.portal.factories import make_corpus, make_edition, make_submission, make_team, make_team_system, make_user
from tests.portal.objective_runs import make_objective_run, number, ranked_numbers

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def owner():
    return make_user()


@pytest.fixture
def team(owner):
    return make_team(make_edition(name="vpc", scores_required=False), owner=owner, number=11)


@pytest.fixture
def token(owner):
    return create_token(user=owner, name="vp", scopes=["read", "submit"], expires_at=None)


@pytest.fixture(autouse=True)
def home(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for name in ("VP_SERVER", "VP_TOKEN"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def vp(monkeypatch, live_server, token, capsys):
    """Runs a command: exit code, standard output, standard error."""
    monkeypatch.setenv("VP_SERVER", live_server.url)
    monkeypatch.setenv("VP_TOKEN", token[1])

    def run(*words):
        code = main([str(word) for word in words])
        return code, *capsys.readouterr()

    return run


@pytest.fixture
def archive(tmp_path):
    path = tmp_path / "T11.zip"
    path.write_bytes(zip_of({"system.pdf": DESCRIPTION}))
    return path


def change(archive):
    """Make it another archive of the same name."""
    archive.write_bytes(archive.read_bytes() + b" ")


# Which portal --------------------------------------------------------------------------------------


def test_what_is_no_address_is_told(capsys):
    assert main(["status", "--server", "http://[::1"]) == 2
    assert "http://[::1: expected the address of a portal" in capsys.readouterr().err


def test_silent_portal_is_told_with_its_address(capsys):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        server = f"http://127.0.0.1:{probe.getsockname()[1]}"
    assert main(["status", "--server", server]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"The portal at {server} does not answer (")
    assert "Check its address" in said


@pytest.fixture
def stranger():
    """A web server that is no portal: it answers as the test says."""

    class Handler(BaseHTTPRequestHandler):
        answer = (200, {"Content-Type": "text/html"}, b"<h1>Welcome</h1>")

        def do_GET(self):
            status, headers, body = self.answer
            self.send_response(status)
            for name, value in (headers | {"Content-Length": str(len(body))}).items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server: Any = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    server.handler, server.url = Handler, f"http://127.0.0.1:{server.server_port}"
    yield server
    server.shutdown()


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        ((200, {"Content-Type": "text/html"}, b"<h1>Welcome</h1>"), "gives no JSON. Is it the address of a"),
        ((502, {}, b"Bad gateway"), "answers with status 502 and no reason. It may be busy or just restarting."),
        ((301, {"Location": "https://new.example/api/submissions/"}, b""), "redirects to https://new.example. Give"),
    ],
)
def test_what_is_no_portal_is_told(stranger, capsys, answer, sentence):
    stranger.handler.answer = answer
    assert main(["status", "--server", stranger.url]) == 2
    assert sentence in capsys.readouterr().err


def test_kept_token_goes_to_its_own_server_only(stranger, monkeypatch):
    api.keep_login("https://portal.example.org", "vpp_secret")
    with api.open_portal(stranger.url) as portal:
        assert "Authorization" not in portal._client.headers
    with api.open_portal() as portal:
        assert portal._client.headers["Authorization"] == "Bearer vpp_secret"


def test_portal_of_another_version_is_told_once(stranger, capsys):
    stranger.handler.answer = (200, {"Portal-Version": "0.2.0"}, b'{"results": [], "next": null}')
    with api.open_portal(stranger.url) as portal:
        list(portal.every("submissions/"))
        list(portal.every("submissions/"))
    assert capsys.readouterr().err == (
        f"This is vp 0.1.0, the portal has version 0.2.0. Update: see {stranger.url}/downloads/.\n"
    )


# Who may what --------------------------------------------------------------------------------------


def test_revoked_token_is_told_with_the_way_to_another(vp, token):
    revoke_token(token=token[0], by=token[0].user, now=token[0].created_at)
    code, _, said = vp("status")
    assert (code, "unknown, revoked or expired. Make a token on your account page" in said) == (2, True)


def test_token_without_the_scope_is_told(vp, monkeypatch, owner):
    monkeypatch.setenv("VP_TOKEN", create_token(user=owner, name="a", scopes=["submit"], expires_at=None)[1])
    code, _, said = vp("status")
    assert (code, "lacks the scope “read”" in said) == (2, True)


def test_unknown_edition_and_one_without_a_team_are_told(vp, archive):
    code, _, said = vp("submit", archive, "--edition", "nothing")
    assert (code, "There is no edition nothing, or you may not see it." in said) == (2, True)
    make_edition(name="other")
    code, _, said = vp("submit", archive, "--edition", "other")
    assert (code, "You belong to no team of" in said) == (2, True)
    code, _, said = vp("verify", archive, "--edition", "other")
    assert (code, "You do not take part in other: this is for approved teams and organizers." in said) == (2, True)


def test_what_cannot_be_sent_is_told_before_anything_is(vp, team, archive, tmp_path):
    code, _, said = vp("submit", tmp_path, "--edition", "vpc")
    assert (code, "Pack the folder first" in said) == (2, True)
    code, _, said = vp("submit", archive, "--edition", "vpc", "--system", "T11-p9")
    assert (code, "expected a system of this team (none), found T11-p9" in said) == (2, True)
    code, _, said = vp("submit", archive, "--edition", "vpc", "--team", "T99")
    assert (code, "expected one of your teams in vpc (T11" in said) == (2, True)
    code, _, said = vp("submit", archive, "--edition", "vpc", "--resume")
    assert (code, "no unfinished upload of it" in said) == (2, True)
    team.edition.submissions_per_team = 1
    team.edition.save()
    make_submission(make_team_system(team))
    code, _, said = vp("submit", archive, "--edition", "vpc", "--system", "T11-p1")
    assert (code, "its one submission" in said) == (2, True), said
    assert Upload.objects.count() == 0


def test_correction_is_verified_with_what_it_inherits(vp, owner, tmp_path):
    """Exactly what the portal then says of it."""
    corpus = make_corpus("tones", speakers=2)
    team = make_team(make_edition(corpus, name="speech", scores_required=False), owner=owner, number=12)
    members = anonymised(corpus)
    broken = next(iter(members))
    first = hand_in(team, members | {broken: members[broken][:5000], "old.pdf": DESCRIPTION})
    fix = tmp_path / "fix.zip"
    fix.write_bytes(zip_of({broken: members[broken]}))
    code, said, _ = vp("verify", fix, "--edition", "speech")
    assert (code, "Missing utterances" in said) == (1, True)
    code, said, warned = vp("verify", fix, "--edition", "speech", "--system", first.system.label.lower())
    assert (code, "inherited from earlier versions" in said) == (0, True), said + warned
    second = hand_in(team, fix.read_bytes(), system=first.system)
    assert (second.state, second.errors) == (Submission.State.EVALUATING, 0)
    code, _, said = vp("verify", fix, "--edition", "speech", "--system", "T12-p9")
    assert (code, "no system T12-p9 of yours" in said) == (2, True)
    code, _, said = vp("verify", fix, "--expected", fix, "--system", "T12-p1")
    assert (code, "Give --edition" in said) == (2, True)


def test_upload_becomes_a_submission_of_the_system_that_was_named(vp, team, archive):
    invite_member(team=team, email="new@uni.example", by=None, now=timezone.now())
    code, said, warned = vp("submit", archive, "--edition", "vpc", "--title", "Ours", "--no-wait")
    assert "the members of your team are fixed, and 1 open invitation ends: " in " ".join(said.split())
    assert (code, "T11.zip arrived completely: submission" in said) == (0, True), warned
    assert "numbers are public" not in said
    type(team.edition).objects.update(published_at=timezone.now())
    change(archive)
    code, said, warned = vp("submit", archive, "--edition", "vpc", "--system", "t11-P1", "--team", "t11", "--no-wait")
    assert code == 0, warned
    told = "your numbers are public as soon as they are computed. From then on, only the organizer can withdraw"
    assert -1 < " ".join(said.split()).find(told) < " ".join(said.split()).find("arrived completely")
    assert "The system keeps its title" not in said
    change(archive)
    code, said, warned = vp(
        "submit", archive, "--edition", "vpc", "--system", "T11-p1", "--title", "Other", "--no-wait"
    )
    assert (code, "The system keeps its title: --title is for a new one." in said) == (0, True), warned
    code, said, warned = vp("submit", archive, "--edition", "vpc", "--kind", "contrastive", "--no-wait")
    assert code == 0, warned
    found = Submission.objects.order_by("pk").values_list("system__label", "version", "system__title")
    assert list(found) == [("T11-p1", 1, "Ours"), ("T11-p1", 2, "Ours"), ("T11-p1", 3, "Ours"), ("T11-c1", 1, "T11-c1")]
    assert all(upload.claimed_sha256 for upload in Upload.objects.all())


def test_same_command_finds_what_was_taken(vp, team, archive):
    """It is as if the first had been interrupted while its archive was checked."""
    command = ("submit", archive, "--edition", "vpc", "--no-wait")
    assert vp(*command)[0] == 0
    code, said, warned = vp(*command)
    number = Submission.objects.get().pk
    assert (code, f"T11.zip was submitted before: submission {number}" in said) == (0, True), warned


def test_another_archive_of_the_same_name_is_not_taken_for_the_first(vp, team, archive):
    command = ("submit", archive, "--edition", "vpc", "--no-wait")
    assert vp(*command)[0] == 0
    change(archive)
    code, _, warned = vp(*command)
    assert (code, "The team has systems already (T11-p1). Say --system T11-p1" in warned) == (2, True)


def test_archive_that_was_packed_anew_is_sent_from_its_beginning(vp, team, archive, monkeypatch):
    monkeypatch.setattr(submit, "PART_BYTES", 100)
    command = ("submit", archive, "--edition", "vpc", "--no-wait")
    with monkeypatch.context() as patch:
        patch.setattr(submit.Sender, "_send_parts", break_off)
        assert vp(*command)[0] == 2
    archive.write_bytes(archive.read_bytes()[::-1])
    code, _, warned = vp(*command)
    told = "is of other content and is kept; this one is sent from its beginning"
    assert (code, told in " ".join(warned.split())) == (0, True)
    assert hash_upload(Submission.objects.get().upload)


def break_off(sender, address):
    sender._send_part(address, 0)
    raise Unreachable("The line broke.")


def test_file_that_changes_while_it_is_sent_is_discarded(vp, team, archive, monkeypatch):
    monkeypatch.setattr(submit, "PART_BYTES", 100)
    send = submit.Sender._send_part

    def change_after_the_first(sender, address, offset):
        if offset == 100:
            archive.write_bytes(archive.read_bytes()[::-1])
        return send(sender, address, offset)

    monkeypatch.setattr(submit.Sender, "_send_part", change_after_the_first)
    code, _, warned = vp("submit", archive, "--edition", "vpc", "--no-wait")
    assert (code, "the file has changed while it was sent. What was sent of it is discarded." in warned) == (2, True)
    assert Upload.objects.get().state == "abandoned"


def test_status_of_a_refused_submission_ends_with_one(vp, team):
    submission = make_submission(make_team_system(team), state=Submission.State.REFUSED)
    code, said, _ = vp("status", submission.pk)
    assert (code, "T11-p1 version 1, vpc: refused" in said) == (1, True)
    code, said, _ = vp("status", submission.pk, "--json")
    assert (code, json.loads(said)["state"]) == (1, "refused")
    assert "T11-p1 version 1, vpc: refused" in vp("status", "t11-P1")[1]
    assert vp("status", "T99-p1")[0] == 2
    code, _, said = vp("status", 999_999)
    assert code == 2
    assert said == "999999: there is no such submission, or none that you may see. vp status lists your own.\n"


def test_results_show_claims_beside_and_end_with_one_where_one_disagrees(vp, team):
    system = make_team_system(team)
    reported = {"reported": 12.3, "reported_text": "12.3", "reported_in": "results.txt, line 2", "agrees": False}
    unlike = number(team.edition, "eer", "kaldi", "libri_test_trials_f", 14.1, low=12.0, high=16.5, **reported)
    category = number(
        team.edition, "zebra_category", "", "libri_test_trials_f", 2.0, reported=2.0, reported_text="B", agrees=True
    )
    numbers = {one.identity: one for one in ranked_numbers(team.edition, eer=16.0, wer=8.5)}
    numbers |= {one.identity: one for one in (unlike, category)}
    missing = [("G_VD of a set", "its matrices are missing", False)]
    make_objective_run(make_submission(system), numbers.values(), missing=missing)
    code, said, _ = vp("results", "T11-p1")
    [row] = [line for line in said.splitlines() if "DISAGREES" in line]
    assert (code, row.split()[:2], "14.1" in row, "12.0 to 16.5" in row, "12.3" in row) == (
        1,
        ["libri_test_trials_f", "f"],
        True,
        True,
        True,
    )
    assert "EER (Kaldi), %" in row
    assert said.index("Weighted averages") < said.index("By data set") < said.index("more numbers: --all shows them")
    assert not [line for line in said.splitlines() if line.split()[-2:] == ["B", "agrees"]]
    assert [line for line in vp("results", "T11-p1", "--all")[1].splitlines() if line.split()[-2:] == ["B", "agrees"]]
    assert results._label_and_decimals({"metric": "newer", "estimator": "own"}) == ("newer (own)", 4)
    assert "Missing (1), because its matrices are missing:\n  G_VD of a set\n" in said
    assert vp("results", "T99-p1")[0] == 2
    assert vp("results", system.name, "--csv")[1].startswith("system,version,data_set")


# What it loads -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "unwanted"),
    [
        ("from portal.client.main import main\ntry: main(['--help'])\nexcept SystemExit: pass", "httpx numpy django"),
        (
            "from portal.client import login, results, status, submit, verify",
            "django torch pandas matplotlib",
        ),
    ],
    ids=["help", "commands"],
)
def test_vp_loads_little(code, unwanted):
    program = f"{code}\nimport sys\nprint('HELD', *[name for name in {unwanted.split()!r} if name in sys.modules])"
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert answer.stdout.splitlines()[-1] == "HELD"
