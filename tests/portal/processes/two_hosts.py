"""What a person does to a challenge on two hosts, as commands of a process of its own: the test has another database.

`prepare FOLDER` makes the challenge with the archives of two teams, `start` a baseline, `settle` says how many jobs are
active once those that failed were run again, and `count` what there is. Each prints one line of JSON.
"""

import hashlib
import json
import sys
from collections import Counter
from pathlib import Path

import django

SPEECH = Path(__file__).parents[3] / "demo" / "corpus"
SYSTEMS = (("pitch-shift-psola", 1), ("world-formant-f0", 2))


def prepare(folder):
    from django.conf import settings

    from portal.accounts.tokens import create_token
    from portal.challenges.models import Corpus
    from portal.corpora.services import start_import
    from portal.demo import archives
    from portal.demo.challenge import make_demo_edition
    from portal.demo.terminal import TerminalScreen
    from portal.jobs.runner import execute
    from tests.portal.factories import make_organizer, make_team, make_user

    organizer = make_organizer()
    settings.IMPORT_ROOTS = [SPEECH]
    job = start_import(folder=str(SPEECH), name="speech", is_synthetic=True, by=organizer)
    assert execute(job.pk).state == "succeeded"
    screen = TerminalScreen(lambda _: None, moves=False)
    edition = make_demo_edition(corpus=Corpus.objects.get(), organizer=organizer, with_models=False, say=screen)
    sets = edition.corpus.data_sets.filter(name__in=edition.recipe.data_sets).order_by("name")
    utterances = archives.read_utterances(sets)
    sent = []
    for method, seed in SYSTEMS:
        made = archives.anonymise(utterances, method, seed)
        made.files["system_description.pdf"] = archives.describe(method, "One of the portal's own anonymisers.")
        archives.pack(made, Path(folder) / f"{method}.zip", edition.recipe.anonymised_suffix)
        team = make_team(edition, owner=make_user())
        owner = team.memberships.get().user
        _, token = create_token(user=owner, name="vp", scopes=["read", "submit"], expires_at=None)
        sent.append({"archive": f"{method}.zip", "token": token, "edition": edition.name})
    return sent


def start():
    from portal.challenges.models import Edition
    from portal.systems.services import start_edition_baseline

    edition = Edition.objects.get()
    sets = list(edition.corpus.data_sets.filter(name__in=edition.recipe.data_sets).order_by("name"))
    made = {"method": "mcadams-2022", "seed": 2022, "data_sets": sets}
    start_edition_baseline(edition=edition, label="B2", by=edition.organizers.get(), **made)


def settle():
    from portal.challenges.models import Edition
    from portal.jobs.models import ACTIVE_STATES, Job, JobState
    from portal.jobs.services import run_again

    for job in Job.objects.filter(state=JobState.FAILED):
        assert job.failure, f"{job} failed without a reason"
        run_again(job, by=Edition.objects.get().organizers.get())
    return Job.objects.filter(state__in=ACTIVE_STATES).count()


def count():
    from evaluation.app.models import EvaluationRun, MetricValue
    from portal.jobs.models import Job
    from portal.submissions.models import Submission, SubmittedFile, Upload

    numbers = MetricValue.objects.values_list(
        "run__submission__system__title", "data_set", "metric", "estimator", "value"
    )
    files = SubmittedFile.objects.values_list("data_set__name", "utterance__name", "audio")
    jobs = Job.objects.exclude(kind="send-notice")  # a mail that says that something failed is one job more
    return {
        "same": {
            "jobs": count_by(jobs, "kind", "state"),
            "submissions": count_by(Submission.objects, "system__title", "state"),
            "runs": count_by(EvaluationRun.objects, "kind"),
            "uploads": count_by(Upload.objects, "state"),
            "files": [len(files), digest(map(str, files))],
            "numbers": [len(numbers), digest(f"{row[:4]} {row[4]:.9g}" for row in numbers)],
        },
        "lost attempts": sum(max(0, attempt - 1) for attempt in jobs.values_list("attempt", flat=True)),
    }


def count_by(rows, *names):
    return {" ".join(row): number for row, number in sorted(Counter(rows.values_list(*names)).items())}


def digest(lines):
    return hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()


if __name__ == "__main__":
    django.setup()
    print(
        json.dumps({"prepare": prepare, "start": start, "settle": settle, "count": count}[sys.argv[1]](*sys.argv[2:]))
    )
