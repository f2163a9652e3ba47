"""The challenge of 2022 once more: its published files, sent as three teams do, from upload to public leaderboard.

Everything is real: the upload in parts, the check of the archive, numbers, leaderboard and downloads. Teams have
no score files and no speech here, so the organizer lets reported numbers count.
"""

import csv
import io

import pytest
from django.test import Client
from django.utils import timezone

from evaluation.formats.results import AttackModel, Speech
from evaluation.protocols.ranking.policy import make_policy
from portal.challenges.services import create_edition
from portal.jobs.models import Job, JobState
from portal.jobs.runner import execute
from portal.leaderboard.services import change_policy, publish_leaderboard, unpublish_leaderboard
from portal.submissions.models import Submission
from portal.submissions.resumable_uploads import UploadPlan, create_upload, receive_part
from portal.teams.services import approve_team, register_team
from tests.evaluation.formats.published import R2022
from tests.portal.archives import zip_of
from tests.portal.factories import make_user
from tests.portal.objective_runs import read_values_of_submission

pytestmark = pytest.mark.django_db(transaction=True)
STAMP = "exp/results-2022-07-01-10-00-00"
PART_BYTES = 16 << 10
FILES = {"B1.a": "tts_old_c", "B1.b": "tts_joint_nsf_hifigan", "B2": "mcadams"}
# Tables 5 to 7 of 2022: averages of dev and test as they are printed.
TABLES = {
    "B1.a": {"eer": "11.742 11.809", "wer": "7.940 8.285", "pitch": "0.774 0.765", "gain": "-9.706 -10.145"},
    "B1.b": {"eer": "9.928 9.183", "wer": "7.585 7.560", "pitch": "0.804 0.801", "gain": "-6.444 -6.438"},
    "B2": {"eer": "6.529 7.769", "wer": "8.040 9.030", "pitch": "0.608 0.620", "gain": "-1.721 -1.633"},
}
OF_ORIGINAL = {
    "B1.a": {"eer": "3.539 3.786", "wer": "7.305 8.480"},
    "B1.b": {"eer": "3.551 3.786", "wer": "7.315 8.475"},
    "B2": {"eer": "3.539 3.786", "wer": "7.305 8.485"},
}
METRICS = {
    "eer": ("eer", "kaldi"),
    "wer": ("wer", "tglarge"),
    "pitch": ("pitch_correlation", "praat"),
    "gain": ("gain_of_voice_distinctiveness", "official"),
}


@pytest.fixture
def edition(organizer):
    """The shipped protocol, without speech and scores; reported numbers are ranked."""
    edition = create_edition(
        by=organizer,
        organizers=[organizer],
        name="vpc2022",
        title="VoicePrivacy 2022",
        protocol="2022",
        is_listed=True,
        audio_required=False,
        scores_required=False,
        description_required=False,
    )
    return rank_by(edition, organizer, basis="claims")


def rank_by(edition, organizer, **changes):
    """The edition after its organizer changed its policy."""
    policy = make_policy(edition.recipe, edition.track, edition.leaderboard_policy | changes)
    return change_policy(edition=edition, policy=policy, now=timezone.now(), by=organizer)


def archive_of(system):
    """The published files of a system in the layout that the evaluation plan asks for."""
    name = FILES[system]
    return zip_of(
        {
            f"{STAMP}/results.txt": (R2022 / f"results.anon_{name}").read_bytes(),
            f"{STAMP}/results_summary.txt": (R2022 / f"RESULTS_summary_{name}").read_bytes(),
            f"{STAMP}/config.info": f"settings of {system}\n".encode(),
            f"{STAMP}.orig/results.txt": (R2022 / f"results.orig_{name}").read_bytes(),
        }
    )


def take_part(edition, organizer):
    """Three teams register, are approved, and each sends its archive in parts; the submissions after their jobs."""
    for system in FILES:
        owner = make_user()
        team = register_team(
            edition=edition,
            by=owner,
            now=timezone.now(),
            name=f"Team of {system}",
            contact="Ada Lovelace",
            contact_email=owner.email,
            affiliation="University of Somewhere",
            country="FR",
            is_academic=True,
        )
        team = approve_team(team=team, by=organizer, now=timezone.now())
        send(UploadPlan(edition, team, title=system), archive_of(system), by=owner)
    run_jobs()
    return {one.system.title: one for one in Submission.objects.filter(system__edition=edition)}


def send(plan, content, *, by):
    upload = create_upload(plan=plan, file_name="results.zip", size=len(content), by=by, now=timezone.now())
    for start in range(0, len(content), PART_BYTES):
        part = io.BytesIO(content[start : start + PART_BYTES])
        receive_part(upload=upload, offset=start, read=part.read, by=by)


def run_jobs():
    """Everything that waits, and what that brings about, as a worker takes it."""
    while waiting := list(Job.objects.filter(state=JobState.WAITING).order_by("created_at")):
        for job in waiting:
            execute(job.pk)


def printed(values, kind, **speech):
    """An average of dev and test with the digits of the tables, which agree with those that the team reports."""
    found = [values.average(*METRICS[kind], split=split, **speech) for split in ("dev", "test")]
    assert [(number.agrees, number.reported_text) for number in found] == [(True, f"{one.value:.3f}") for one in found]
    return " ".join(f"{number.value:.3f}" for number in found)


def places(edition):
    """System and rank in each condition, as the download for everybody has them."""
    rows = csv.DictReader(
        io.StringIO(Client().get(f"/editions/{edition.name}/leaderboard/leaderboard.csv").content.decode())
    )
    found = {}
    for row in rows:
        if row["kind"] == "system":
            found.setdefault(row["minimum_eer"], []).append((row["team"].removeprefix("Team of "), row["rank"]))
    return found


def test_published_files_go_from_upload_to_leaderboard_with_their_averages(edition, organizer):
    submissions = take_part(edition, organizer)
    assert {name: one.state for name, one in submissions.items()} == dict.fromkeys(FILES, "evaluated")
    assert [one.errors for one in submissions.values()] == [0, 0, 0]
    for name, submission in submissions.items():
        values = read_values_of_submission(submission)
        assert (values.missing, values.disagreements, values.is_complete) == ((), (), True)
        assert {kind: printed(values, kind) for kind in METRICS} == TABLES[name]
        assert OF_ORIGINAL[name] == {
            "eer": printed(values, "eer", attack_model=AttackModel.UNPROTECTED),
            "wer": printed(values, "wer", speech=Speech.ORIGINAL),
        }

    publish_leaderboard(edition=edition, now=timezone.now(), by=organizer)
    leaderboard = Client().get("/editions/vpc2022/leaderboard/leaderboard.json").json()
    assert [table["condition"]["minimum_eer"] for table in leaderboard["rankings"]] == [15, 20, 25, 30]
    assert places(edition) == {"": [("B1.a", ""), ("B1.b", ""), ("B2", "")]}  # in no condition, the nearest first
    page = Client().get("/editions/vpc2022/leaderboard/").content.decode()
    for name in FILES:
        for kind in METRICS:
            assert TABLES[name][kind].split()[1].replace("-", "−") in page, (name, kind)

    # By lower limits the same files are ranked.
    edition = unpublish_leaderboard(edition=edition, by=organizer)
    edition = rank_by(edition, organizer, minimum_eers=(5, 8, 10))
    publish_leaderboard(edition=edition, now=timezone.now(), by=organizer)
    assert places(edition) == {
        "5.0": [("B1.b", "1"), ("B1.a", "2"), ("B2", "3")],
        "8.0": [("B1.b", "1"), ("B1.a", "2")],
        "10.0": [("B1.a", "1")],
    }
