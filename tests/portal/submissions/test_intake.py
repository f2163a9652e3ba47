"""The check of an archive as a job, on real archives of tones: what is kept, what is inherited, what is left behind."""

import hashlib
import io
import os
import re
import signal
import threading
import zipfile
from concurrent.futures import CancelledError
from pathlib import Path

import numpy as np
import pytest
import soundfile
from django.core.files.storage import default_storage
from django.db import connection
from django.utils import timezone

from common.child_process import ChildLimits
from portal.core.storage import load_audio
from portal.intake import check as check_module
from portal.jobs.models import Job, JobState
from portal.jobs.runner import JobReleased, execute
from portal.jobs.services import claim_job
from portal.submissions import handlers, staging
from portal.submissions.handlers import StagedFiles, run_intake
from portal.submissions.models import Submission
from portal.submissions.periodic_tasks import tidy_checks, tidy_uploads
from portal.submissions.resumable_uploads import upload_path, used_submissions
from portal.submissions.rules import Relation
from portal.submissions.selectors import load_report
from portal.submissions.services import take_part_back, withdraw
from portal.submissions.signals import submission_accepted
from tests.portal.archives import DESCRIPTION, anonymised, check, files_on_disk, hand_in, submit, wav
from tests.portal.factories import make_corpus, make_edition, make_organizer, make_team
from tests.portal.hostile.corpus import ARCHIVES

pytestmark = pytest.mark.django_db(transaction=True)
RECEIVED, ACCEPTED, REFUSED = Submission.State.RECEIVED, Submission.State.ACCEPTED, Submission.State.REFUSED
CHECKING, WITHDRAWN = Submission.State.CHECKING, Submission.State.WITHDRAWN


@pytest.fixture(autouse=True)
def own_folders(own_storage, settings, tmp_path):
    """Files of other tests are of no concern here: what one test leaves on disk is counted."""
    settings.DATA_DIR, settings.UPLOAD_DIR = tmp_path, tmp_path / "uploads"
    settings.UPLOAD_DIR.mkdir()


@pytest.fixture
def accepted(monkeypatch):
    """Each accepted submission, and whether that was told in a transaction. Nothing evaluates what is accepted here."""
    heard = []

    def hear(submission, **_):
        heard.append((submission.pk, connection.in_atomic_block))

    monkeypatch.setattr(submission_accepted, "receivers", [])
    submission_accepted.connect(hear, weak=False)
    return heard


@pytest.fixture
def team(accepted):
    return make_team(make_edition(make_corpus(), scores_required=False))


@pytest.fixture
def members(team):
    return anonymised(team.edition.corpus)


def codes(submission, severity="error"):
    return {row["code"]: row["count"] for row in submission.report_summary if row["severity"] == severity}


def contents(submission):
    rows = submission.files.values_list("data_set__name", "utterance__name", "audio", "is_inherited")
    return {(data_set, name): (audio, is_inherited) for data_set, name, audio, is_inherited in rows}


# What is kept --------------------------------------------------------------------------------------


def test_nothing_but_contents_and_report_stays_on_disk(team, members):
    before = files_on_disk()
    submission = hand_in(team, members)
    keys = {file.audio for file in submission.files.all()} | {submission.report}
    assert files_on_disk() - before == {Path(default_storage.path(key)) for key in keys}
    assert not upload_path(submission.upload).exists()


# Problems --------------------------------------------------------------------------------------------


@pytest.fixture
def faulty(team, members):
    """The first utterance cut off, the second the original itself, the third not there."""
    first, second, third = list(members)[:3]
    original = team.edition.corpus.utterances.get(name=Path(second).stem)
    with default_storage.open(original.audio) as stored:
        flac = stored.read()
    sent = members | {first: members[first][:5000], second.replace(".wav", ".flac"): flac}
    return {path: data for path, data in sent.items() if path not in (second, third)}


def test_faulty_archive_is_refused_with_every_problem_and_keeps_what_is_sound(team, members, faulty, accepted):
    submission = hand_in(team, faulty)
    assert submission.state == REFUSED
    assert codes(submission) == {"truncated": 1, "identical-to-original": 1, "missing": 1}
    assert (submission.errors, submission.warnings, submission.notes) == (3, 1, 0)
    assert codes(submission, "warning") == {"cannot-be-ranked": 1}  # of scores, which are not required
    assert len(contents(submission)) == len(members) - 3
    assert {finding.code for finding in load_report(submission).findings} == {*codes(submission), "cannot-be-ranked"}
    assert not upload_path(submission.upload).exists()
    assert accepted == []


def test_organizers_get_a_mail_when_an_archive_was_checked(team, faulty):
    organizer = make_organizer()
    team.edition.organizers.set([organizer, make_organizer(unwanted_notifications=["checked"])])
    submission = hand_in(team, faulty)
    notice = Job.objects.get(kind="send-notice", parameters__kind="checked").parameters
    assert notice["members"] == [organizer.pk]
    assert notice["subject"] == f"{submission} was refused"
    assert f"It comes from the team “{team}”." in notice["lines"][0]


@pytest.fixture
def opinions(monkeypatch):
    """What the network thinks of a recording by its loudness, as if its files were here: noise above a limit."""
    heard = []

    def predict(samples, rate_hz):
        heard.append(samples.size)
        return 2.1 if samples.std() > LOUD else 3.5

    monkeypatch.setattr(handlers.naturalness, "missing", lambda: "")
    monkeypatch.setattr(handlers.naturalness, "predict_naturalness", predict)
    return heard


LOUD = 15_000


def wav_of(samples):
    file = io.BytesIO()
    soundfile.write(file, samples, 16_000, format="WAV", subtype="PCM_16")
    return file.getvalue()


def test_recordings_that_sound_like_noise_are_told_early_and_refuse_nothing(team, members, opinions):
    noise = np.random.default_rng(3).integers(-32000, 32000, 9600).astype(np.int16)
    name = next(name for name in members if name.endswith(".wav"))
    submission = hand_in(team, {**members, name: wav_of(noise)})
    assert submission.state == ACCEPTED
    [found] = [one for one in load_report(submission).findings if one.code == "sounds-broken"]
    assert (found.file, found.found) == (name, "2.1 from 1 to 5, as noise has (DNSMOS P.808, a prediction)")
    assert submission.warnings >= 1
    assert len(opinions) <= 5 * team.edition.corpus.data_sets.count() + 1


def test_archive_with_another_checksum_is_not_read(team, members):
    submission = hand_in(team, members, claimed_sha256="0" * 64)
    assert (submission.state, codes(submission)) == (REFUSED, {"wrong-checksum": 1})
    assert (submission.files.count(), submission.upload.sha256 != "0" * 64) == (0, True)


def traversal():
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("wav/good.wav", wav(300))
        archive.writestr("../../outside.wav", wav(310))
    return packed.getvalue()


def test_archive_that_turns_out_hostile_at_its_end_leaves_no_file_behind(team, members):
    """Everything before the last member is sound and has been staged when that member is met."""
    import tarfile

    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for path, data in ({"system.pdf": DESCRIPTION} | members).items():
            entry = tarfile.TarInfo(path)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
        link = tarfile.TarInfo("wav/link.wav")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    before = files_on_disk()
    submission = hand_in(team, packed.getvalue(), file_name="archive.tar.gz")
    assert (submission.state, codes(submission)) == (REFUSED, {"symbolic-link": 1})
    assert submission.files.count() == 0
    assert files_on_disk() - before == {Path(default_storage.path(submission.report))}


@pytest.mark.slow  # twenty jobs; each archive by itself is read in test_archives.py
def test_no_hostile_archive_leaves_a_file_behind(team, members, tmp_path):
    """An archive of `tests/portal/hostile` for each reason to refuse one, through the whole job."""
    system = hand_in(team, members).system
    path, left = tmp_path / "archive", {}
    of_code = {hostile.code: (name, hostile) for name, hostile in reversed(ARCHIVES.items()) if hostile.refused}
    for name, hostile in of_code.values():
        hostile.write(path)
        data = path.read_bytes()
        if not data:  # an empty file is refused before it could be uploaded
            continue
        before = files_on_disk()
        submission = hand_in(team, data, system=system)
        rows = submission.files.count() + submission.documents.count()
        found = files_on_disk() - before - {Path(default_storage.path(submission.report))}
        if (submission.state, submission.job.state, rows, found) != (REFUSED, JobState.SUCCEEDED, 0, set()):
            left[name] = (submission.state, submission.job.failure, submission.report_summary, rows, found)
    assert left == {}


def test_lost_archive_is_the_operators_affair(team, members):
    submission = submit(team, members)
    upload_path(submission.upload).unlink()
    job = execute(submission.job_id)
    assert (job.state, job.failure_actor) == (JobState.FAILED, "operator")
    assert job.failure == f"The archive of {submission} is not among the portal's files."


# Inheritance ---------------------------------------------------------------------------------------


def test_corrected_archive_holds_only_what_changed(team, members, faulty):
    first = hand_in(team, faulty)
    fixes = {path: data for path, data in members.items() if path in list(members)[:3]}
    before = files_on_disk()
    second = hand_in(team, fixes, system=first.system)
    assert (second.state, second.errors, second.inherits) == (ACCEPTED, 0, first)
    rows = contents(second)
    assert len(rows) == len(members)
    assert sum(is_inherited for _, is_inherited in rows.values()) == len(members) - 3
    inherited = {place: audio for place, (audio, is_inherited) in rows.items() if is_inherited}
    assert inherited == {place: audio for place, (audio, _) in contents(first).items()}
    assert len(files_on_disk() - before) == 3 + 1  # and the report


@pytest.mark.postgres
def test_newest_sound_file_of_each_utterance_is_inherited(team, members):
    """A broken archive between two versions costs nothing, and the report says which version stands in."""
    first = hand_in(team, members)
    broken, changed, *_ = members
    second = hand_in(team, {broken: members[broken][:5000], changed: wav(1234)}, system=first.system)
    third = hand_in(team, {"system.pdf": DESCRIPTION}, system=first.system)
    assert (second.state, third.state, third.inherits, codes(third)) == (REFUSED, ACCEPTED, second, {})
    before, between, after = contents(first), contents(second), contents(third)
    assert len(after) == len(members)
    name = broken.removeprefix("wav/").removesuffix(".wav")
    lacking = {place for place in before if place[1] == name}
    assert {place: audio for place, (audio, _) in after.items() if place not in lacking} == {
        place: audio for place, (audio, _) in between.items()
    }
    assert {after[place] for place in lacking} == {(before[place][0], True) for place in lacking}
    assert codes(third, "note") == {"inherited-older": len(lacking)}
    note = next(cause for cause in third.report_summary if cause["code"] == "inherited-older")
    assert note["examples"] == [f"{name}: expected the recording of version 2, found one with errors there."]
    assert "version 1" in note["remedy"]


def test_offers_go_on_with_the_version_that_holds_the_same(team, members):
    first = hand_in(team, members | {"system.pdf": DESCRIPTION})
    offered, released, changed = first.files.order_by("pk")[:3]
    for one in (offered, released, changed):
        first.shared_parts.create(file=one, released_at=timezone.now() if one == released else None)
    first.shared_parts.create(document=first.documents.get())
    sent = {"system.pdf": DESCRIPTION + b"% second", f"wav/{changed.utterance.name}.wav": wav(1234)}
    second = hand_in(team, sent, system=first.system)
    assert second.state == ACCEPTED
    kept = {(part.file.utterance_id, part.released_at is None) for part in second.shared_parts.all()}
    assert kept == {(offered.utterance_id, True), (released.utterance_id, False)}
    assert {part.file or part.document.path for part in first.shared_parts.all()} == {released, changed, "system.pdf"}
    part = second.shared_parts.exclude(released_at=None).get()
    take_part_back(part=part, by=None, relations=[Relation.TEAM])
    assert not first.shared_parts.filter(file=released).exists()
    assert second.shared_parts.count() == 1


def test_same_archive_is_refused_and_does_not_count(team, members):
    first = hand_in(team, members)
    second = hand_in(team, members, system=first.system, file_name="renamed.zip")
    assert (second.state, codes(second), contents(second)) == (REFUSED, {"same-archive": 1}, {})
    assert str(first) in second.report_summary[0]["examples"][0]
    assert used_submissions(team) == 1
    withdraw(submission=first, by=None, relation=Relation.ORGANIZER)
    assert hand_in(team, members, system=first.system).state == ACCEPTED
    assert hand_in(team, members).state == ACCEPTED  # as another system


def test_further_version_in_which_nothing_is_used_is_refused(team, members):
    content = {"notes.txt": b"x", "nobody-1.wav": wav(1)}
    first = hand_in(team, members)
    second = hand_in(team, content, system=first.system)
    assert (second.state, codes(second)) == (REFUSED, {"nothing-used": 1})
    third = hand_in(team, content | {"system.pdf": DESCRIPTION}, system=first.system)
    assert third.state == ACCEPTED


@pytest.mark.postgres
def test_check_waits_for_an_earlier_version_that_is_being_read(team, members, monkeypatch):
    """What the earlier one kept is there when the later one asks what it inherits."""
    first = submit(team, members)
    second = submit(team, {"system.pdf": DESCRIPTION}, system=first.system)
    Job.objects.filter(pk=first.job_id).update(
        state=JobState.RUNNING, claim=first.upload_id, started_at=timezone.now(), heartbeat_at=timezone.now()
    )
    waited = []

    def sleep(seconds):
        waited.append(seconds)
        Job.objects.filter(pk=first.job_id).update(state=JobState.WAITING)
        check(first)

    monkeypatch.setattr(handlers.time, "sleep", sleep)
    check(second)
    assert waited == [handlers.AWAIT_EVERY_S]
    assert (second.state, second.inherits, len(contents(second))) == (ACCEPTED, first, len(members))


def test_check_gives_way_to_an_earlier_version_that_waits_for_a_worker(team, members, monkeypatch):
    """As after a restart in the midst of the earlier one: read before it, the later one would inherit nothing."""
    first = submit(team, members)
    with monkeypatch.context() as patch:
        stop_after(patch, 5, JobReleased())
        execute(first.job_id)
    second = submit(team, {"system.pdf": DESCRIPTION}, system=first.system)
    check(second)
    assert (second.state, second.job.state, second.job.attempt) == (RECEIVED, JobState.WAITING, 0)
    check(first)
    check(second)
    assert (second.state, second.inherits, len(contents(second))) == (ACCEPTED, first, len(members))


def test_withdrawn_and_unsafe_versions_hand_nothing_down(team, members):
    first = hand_in(team, members)
    second = hand_in(team, anonymised(team.edition.corpus, first_hertz=310), system=first.system)
    hand_in(team, traversal(), system=first.system)
    withdraw(submission=second, by=None, relation=Relation.ORGANIZER)
    fourth = hand_in(team, {"system.pdf": DESCRIPTION}, system=first.system)
    assert (fourth.state, fourth.inherits) == (ACCEPTED, first)
    assert {audio for audio, _ in contents(fourth).values()} == {audio for audio, _ in contents(first).values()}


# Interruptions -------------------------------------------------------------------------------------


@pytest.fixture
def encoded(monkeypatch, tmp_path):
    """The hash of the samples of each recording that was encoded, in whatever process."""
    made = tmp_path / "encoded"
    original = staging.write_flac16

    def encode(file, samples, rate_hz):
        with made.open("a") as list_of_hashes:
            list_of_hashes.write(f"{hashlib.sha256(samples).hexdigest()}\n")
        original(file, samples, rate_hz)

    monkeypatch.setattr(staging, "write_flac16", encode)
    return lambda: made.read_text().split()


def stop_after(monkeypatch, count, error):
    """The check meets `error` once so many recordings were staged."""
    original = StagedFiles.keep_speech
    kept = []

    def keep(self, *given):
        if len(kept) == count:
            raise RuntimeError
        kept.append(1)
        original(self, *given)

    read_apart = handlers.read_apart

    def read(*given, **named):
        try:
            return read_apart(*given, **named)
        except RuntimeError:
            raise error from None

    monkeypatch.setattr(StagedFiles, "keep_speech", keep)
    monkeypatch.setattr(handlers, "read_apart", read)


def test_interrupted_check_continues_and_encodes_nothing_twice(team, members, encoded, monkeypatch):
    submission = submit(team, members)
    with monkeypatch.context() as patch:
        stop_after(patch, 5, JobReleased())
        assert execute(submission.job_id).state == JobState.WAITING
    assert len(encoded()) == 5
    check(submission)
    assert (submission.state, len(contents(submission))) == (ACCEPTED, len(members))
    assert len(encoded()) == len(set(encoded())) == len(members)
    texts = list(submission.job.events.values_list("text", flat=True))
    assert "5 recordings of an earlier attempt were reused." in texts


def test_staged_file_that_is_not_whole_is_made_again(team, members, encoded, monkeypatch):
    submission = submit(team, members)
    with monkeypatch.context() as patch:
        stop_after(patch, 5, JobReleased())
        execute(submission.job_id)
    folder = staging.Staging(submission).folder
    damaged = sorted(folder.glob("*.flac"))[0]
    damaged.write_bytes(damaged.read_bytes()[:100])
    check(submission)
    assert (submission.state, len(encoded())) == (ACCEPTED, len(members) + 1)
    for file in submission.files.all():
        assert load_audio(file.audio)[0].size == file.samples


def test_withdrawing_ends_the_check_and_leaves_nothing(team, members, monkeypatch):
    submission = submit(team, members)
    before = files_on_disk()

    original = handlers.run_in_child

    def run(*given, **named):
        withdraw(submission=submission, by=None, relation=Relation.TEAM)
        return original(*given, **named)

    monkeypatch.setattr(handlers, "run_in_child", run)
    check(submission)
    assert (submission.state, submission.files.count(), submission.report) == (WITHDRAWN, 0, "")
    assert files_on_disk() == before - {upload_path(submission.upload)}


def test_scheduler_tidies_up_after_a_withdrawn_check_and_nothing_else(team, members, monkeypatch):
    withdrawn, waiting = submit(team, members), submit(team, members)
    for submission in (withdrawn, waiting):
        with monkeypatch.context() as patch:
            stop_after(patch, 2, JobReleased())
            execute(submission.job_id)
        os.utime(upload_path(submission.upload), (0, 0))
    withdraw(submission=withdrawn, by=None, relation=Relation.TEAM)
    tidy_uploads()
    tidy_checks()
    assert staging.folders() == [staging.Staging(waiting).folder]
    assert upload_path(waiting.upload).exists()
    assert not upload_path(withdrawn.upload).exists()


# What would hang, fill or crash its reader ---------------------------------------------------------


def hang(*_):
    re.fullmatch(r"(a+)+", "a" * 60 + "b")  # as a pattern of before: it holds the interpreter for years


def fill(*_):
    return [bytearray(1 << 26) for _ in range(100)]


def crash(*_):
    os.kill(os.getpid(), signal.SIGSEGV)
    threading.Event().wait()  # another thread may be the one that gets the signal


def hear_in_child(monkeypatch, inspect):
    """Something else than the usual becomes of one recording."""
    original = check_module.inspect_speech

    def inspect_speech(data, *, file, **named):
        return inspect() if file.endswith("s0-001.wav") else original(data, file=file, **named)

    monkeypatch.setattr(check_module, "inspect_speech", inspect_speech)


@pytest.mark.parametrize(
    ("inspect", "code", "found", "starts"),
    [
        (hang, "cannot-be-read", "takes longer, last at", 1),
        (fill, "cannot-be-read", "takes more, last at", 1),
        (crash, "cannot-be-read", "ended the process that reads it 3 times, last at wav/tones-s0-001.wav.", 3),
    ],
)
def test_archive_that_would_end_its_reader_is_refused_with_the_file(
    team, members, monkeypatch, inspect, code, found, starts
):
    hear_in_child(monkeypatch, inspect)
    monkeypatch.setattr(handlers, "child_limits", lambda _: ChildLimits(1 if inspect is hang else 30, 1 << 28, 60))
    submission = submit(team, members)
    before = files_on_disk()
    check(submission)
    assert (submission.state, codes(submission)) == (REFUSED, {code: 1})
    [cause] = submission.report_summary
    assert found in cause["examples"][0]
    assert "s0-001.wav" in cause["examples"][0]
    assert (
        submission.job.events.filter(text__startswith="The process that reads the archive was ended at").count()
        == starts
    )
    assert files_on_disk() - before == {Path(default_storage.path(submission.report))}


def test_archives_of_one_team_let_those_of_others_be_read_first(team, members):
    other = make_team(team.edition)
    first, second, third = submit(team, members), submit(team, members), submit(other, members)
    claim_job(first.job_id)  # by another worker
    assert execute(second.job_id).state == JobState.WAITING
    assert second.job.events.filter(text__startswith="Another team's archive waits").exists()
    assert check(third).state == ACCEPTED
    fourth, fifth = submit(other, members), submit(other, members)
    claim_job(fourth.job_id)
    assert fifth.job.state == JobState.WAITING  # an archive of its team is read already
    assert check(second).state == ACCEPTED


def test_later_version_lets_another_team_come_first_while_it_waits(team, members, monkeypatch):
    other = make_team(team.edition)
    first = submit(team, members)
    second = submit(team, members, system=first.system)
    claim_job(first.job_id)
    arrived = []
    monkeypatch.setattr(handlers.time, "sleep", lambda _: arrived.append(submit(other, members)))
    assert execute(second.job_id).state == JobState.WAITING
    assert len(arrived) == 1
    assert check(arrived[0]).state == ACCEPTED


def test_cancelled_check_ends_what_hangs(team, members, monkeypatch):
    hear_in_child(monkeypatch, hang)
    original, asked, children = handlers.run_in_child, [], []
    fork = os.fork

    def remember_child():
        children.append(fork())
        return children[-1]

    monkeypatch.setattr(os, "fork", remember_child)

    def run(work, limits, *, check, **named):
        def cancel():
            asked.append(1)
            if len(asked) == 3:
                raise CancelledError
            check()

        return original(work, limits, check=cancel, **named)

    monkeypatch.setattr(handlers, "run_in_child", run)
    submission = submit(team, members)
    assert execute(submission.job_id).state == JobState.CANCELLED
    assert len(children) == 1
    with pytest.raises(ChildProcessError):
        os.waitpid(children[0], os.WNOHANG)  # it is no longer there


@pytest.mark.postgres
def test_second_end_of_a_check_changes_nothing(team, members):
    """As when a process is killed after it wrote the rows and before it ended the job."""
    submission = hand_in(team, members)
    rows = list(submission.files.order_by("pk").values())

    class Context:
        parameters = {"submission": submission.pk}

    assert run_intake(Context()) == {"outcome": ACCEPTED}
    assert list(submission.files.order_by("pk").values()) == rows
    assert submission.events.count() == 3


def test_inherited_results_are_held_against_the_recipe_again(team, members):
    """What was wrong with results stays wrong until they come again, and what completes them is read with them."""
    retrained, original = "results-2022-07-01-10-00-00", "results-2022-07-01-10-00-00.orig"
    first = hand_in(team, members | {f"exp/{retrained}/results.txt": b"nothing that counts\n"})
    assert first.state == REFUSED
    assert "missing-directory" in codes(first)
    second = hand_in(team, {"system.pdf": DESCRIPTION}, system=first.system)
    assert (second.state, codes(second)) == (REFUSED, codes(first))
    third = hand_in(team, {f"exp/{original}/results.txt": b"nothing that counts\n"}, system=first.system)
    assert "missing-directory" not in codes(third)
    assert set(third.documents.values_list("path", "is_inherited")) == {
        (f"exp/{retrained}/results.txt", True),
        (f"exp/{original}/results.txt", False),
        ("system.pdf", True),
    }
