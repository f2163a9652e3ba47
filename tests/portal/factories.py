"""Small real objects for tests of the portal: people, corpora whose speech is tones, systems, jobs.

Every corpus has data sets as the challenge has them: `<name>_enrolls`, `<name>_trials_f`, `<name>_trials_m`.
"""

import csv
import io
from collections import Counter
from functools import cache
from itertools import count

import numpy as np
import soundfile
from django.db.models import Count
from django.test import Client
from django.utils import timezone

from evaluation.protocols.evaluation_table import Evaluation
from evaluation.protocols.recipe_making import Choices, SpeakerShare, SpeechSet, make_recipe, write_recipe
from portal.accounts.models import User
from portal.challenges.models import Corpus, DataSet, Edition, Gender, Role, Speaker, TrialList, Utterance
from portal.core.storage import store_bytes
from portal.jobs.models import Job, Queue
from portal.submissions.models import Submission, SubmittedFile, System
from portal.teams.models import Membership, Team

RATE_HZ = 16000
_number = count(1)


def make_user(password="a long password", **fields):
    number = next(_number)
    fields = {"name": f"Person {number}", "email": f"person{number}@test.example"} | fields
    return User.objects.create_user(password=password, **fields)


def make_organizer(**fields):
    return make_user(is_organizer=True, **fields)


def make_operator(**fields):
    return make_user(is_staff=True, is_superuser=True, **fields)


def client_of(user):
    """A browser in which this person is logged in."""
    client = Client()
    client.force_login(user)
    return client


def tone(hertz, seconds=0.6):
    """A voice-like tone with harmonics that swells and fades, different for every frequency."""
    time = np.arange(int(seconds * RATE_HZ)) / RATE_HZ
    harmonics = sum(np.sin(2 * np.pi * hertz * n * time) / n for n in range(1, 8))
    return (4000 * harmonics * np.sin(np.pi * time / seconds)).astype(np.int16)


def store_tone(hertz):
    """The key of a stored FLAC file with that tone."""
    return store_bytes(_tone_file(hertz), ".flac")


@cache
def _tone_file(hertz):
    file = io.BytesIO()
    soundfile.write(file, tone(hertz), RATE_HZ, format="FLAC", subtype="PCM_16")
    return file.getvalue()


def make_corpus(name="tones", *, speakers=2, utterances=2, with_audio=True, **fields):
    """Women and men in turn, each with so many utterances in the enrolment set and as many in the trial set.

    All organizers see it, where nothing else is asked for.
    """
    defaults = {"layout": "manifest", "source": f"/speech/{name}", "is_shared": True}
    corpus = Corpus.objects.create(name=name, **defaults | fields)
    roles = {"enrolls": Role.ENROLMENT, "trials_f": Role.TRIAL, "trials_m": Role.TRIAL}
    rows = [DataSet(corpus=corpus, name=f"{name}_{key}", role=role) for key, role in roles.items()]
    sets = dict(zip(roles, DataSet.objects.bulk_create(rows), strict=True))
    people = Speaker.objects.bulk_create(
        Speaker(corpus=corpus, name=f"{name}-s{number}", gender=(Gender.FEMALE, Gender.MALE)[number % 2])
        for number in range(speakers)
    )
    made = Utterance.objects.bulk_create(
        Utterance(
            corpus=corpus,
            speaker=speaker,
            name=f"{speaker.name}-{sentence:03d}",
            transcript=f"SENTENCE {sentence} OF SPEAKER {number}",
            duration_s=0.6,
            **_audio(100 + 20 * number + sentence) if with_audio else {},
        )
        for number, speaker in enumerate(people)
        for sentence in range(2 * utterances)
    )
    held = DataSet.utterances.through
    held.objects.bulk_create(
        held(
            dataset=sets["enrolls" if place % (2 * utterances) < utterances else f"trials_{utterance.speaker.gender}"],
            utterance=utterance,
        )
        for place, utterance in enumerate(made)
    )
    of_gender = Counter(speaker.gender for speaker in people)
    TrialList.objects.bulk_create(
        TrialList(
            trial_set=sets[f"trials_{gender}"],
            enrolment_set=sets["enrolls"],
            origin=TrialList.Origin.PRODUCT,
            model_count=of_gender[gender],
            target_count=of_gender[gender] * utterances,
            nontarget_count=of_gender[gender] * (of_gender[gender] - 1) * utterances,
        )
        for gender in Gender
    )
    return corpus


def _audio(hertz):
    return {"audio": store_tone(hertz), "samples": int(0.6 * RATE_HZ), "rate_hz": RATE_HZ}


def make_system(corpus, name="b2-tones"):
    """A system with one version of every utterance of every data set: the same sentence as a higher tone."""
    system = System.objects.create(name=name, title="B2: McAdams coefficient (2022)", corpus=corpus, is_baseline=True)
    add_files(system.submissions.create(version=1), store_tone(300))
    return system


def add_files(submission, audio="", **fields):
    """A file of every utterance of every data set: this one, or else the original itself."""
    submission.files.bulk_create(
        SubmittedFile(
            submission=submission,
            data_set=data_set,
            utterance=utterance,
            **{"audio": audio or utterance.audio, "samples": int(0.6 * RATE_HZ), "rate_hz": RATE_HZ} | fields,
        )
        for data_set in submission.system.corpus.data_sets.all()
        for utterance in data_set.utterances.all()
    )
    return submission


def make_edition(corpus=None, *, organizers=(), **fields):
    """A listed edition of the 2022 protocol in which everything is open; organised by a new organizer if by nobody."""
    number = next(_number)
    defaults = {"name": f"edition-{number}", "title": f"Challenge {number}", "protocol": "2022", "is_listed": True}
    edition = Edition.objects.create(corpus=corpus, **defaults | fields)
    edition.organizers.set(organizers or [make_organizer()])
    return edition


def recipe_of(corpus, by="portal", training=""):
    """The text of a recipe that is made from a corpus of `make_corpus`, with four speakers or more.

    Args:
        training: as in the recipe; the corpus then has a training set.
    """
    evaluation = Evaluation(by, ("long-term-spectrum",), "", training) if by != "teams" else Evaluation()
    sets = []
    for one in corpus.data_sets.all():
        counted = one.utterances.values_list("speaker__name", "speaker__gender").annotate(Count("pk")).order_by()
        shares = tuple(SpeakerShare(*row) for row in sorted(counted))
        enrolment = f"{corpus.name}_enrolls" if one.role == Role.TRIAL else ""
        sets.append(SpeechSet(name=one.name, role=one.role, split=one.split, speakers=shares, enrolment=enrolment))
    trials = tuple(one.name for one in sets if one.role == Role.TRIAL)
    choices = Choices("own", "Our challenge", trials, utilities=("pitch_correlation",), evaluation=evaluation)
    return write_recipe(make_recipe(sets, choices))


def make_team(edition, *, owner=None, members=(), **fields):
    """An approved team with an owner."""
    number = next(_number)
    defaults = {
        "name": f"Team {number}",
        "number": edition.teams.count() + 1,
        "contact": "Ada Lovelace",
        "contact_email": f"team{number}@test.example",
        "affiliation": "University of Somewhere",
        "country": "FR",
        "is_academic": True,
        "state": Team.State.APPROVED,
        "decided_at": timezone.now(),
    }
    team = Team.objects.create(edition=edition, **defaults | fields)
    team.memberships.create(user=owner or make_user(), role=Membership.Role.OWNER)
    for member in members:
        team.memberships.create(user=member)
    return team


def make_team_system(team, label="p1", **fields):
    """A system of a team without a submission."""
    edition = team.edition
    label = f"{team.label}-{label}"
    defaults = {"title": f"System {label}", "corpus": edition.corpus, "kind": System.Kind.PRIMARY}
    return System.objects.create(
        name=f"{edition.name}-{label}".lower(), label=label, edition=edition, team=team, **defaults | fields
    )


def make_submission(system, state=Submission.State.EVALUATED, **fields):
    """A submission in a state; without files."""
    defaults = {"version": system.submissions.count() + 1, "submitted_by": None}
    if state == Submission.State.EVALUATED:
        defaults["evaluated_at"] = timezone.now()
    return system.submissions.create(state=state, **defaults | fields)


def make_job(state="waiting", **fields):
    """A row as the engine leaves it in that state."""
    now = timezone.now()
    defaults = {
        "kind": "import-corpus",
        "queue": Queue.INTAKE,
        "title": "Import of the corpus tones",
        "waiting_since": now,
    }
    if state == "running":
        defaults |= {"claim": "00000000-0000-0000-0000-000000000001", "heartbeat_at": now, "attempt": 1}
    if state not in {"waiting", "cancelled"}:
        defaults["started_at"] = now
    if state in {"succeeded", "failed", "cancelled"}:
        defaults["finished_at"] = now
    return Job.objects.create(state=state, **defaults | fields)


def make_problem(code="wrong-rate", severity="error", **fields):
    """One problem as it is stored with a job."""
    return {
        "code": code,
        "severity": severity,
        "file": "a.wav",
        "line": None,
        "expected": "16000 Hz",
        "found": "44100 Hz",
        "remedy": "Convert the corpus.",
    } | fields


def write_manifest(folder, *, speakers=2, utterances=4, rate_hz=RATE_HZ):
    """A folder with a manifest and tones, ready for a real import."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "utterances.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["utterance_id", "speaker", "gender", "transcript", "path"])
        for number in range(speakers):
            for sentence in range(utterances):
                name = f"s{number}-{sentence:03d}"
                soundfile.write(folder / f"{name}.flac", tone(100 + 20 * number + sentence), rate_hz, subtype="PCM_16")
                table.writerow([name, f"s{number}", "FM"[number % 2], f"SENTENCE {sentence}", f"{name}.flac"])
    return folder
