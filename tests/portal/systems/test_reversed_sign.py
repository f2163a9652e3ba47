"""EERs above 50 %: the portal says what an attacker reaches who reverses the sign.

The scores are made up for all trials of dev: an ignorant attacker of women and of men (tests/librispeech.py).
"""

import csv
import io

import pytest
from django.test import Client
from django.utils import timezone

from evaluation.formats.results import AttackModel
from evaluation.protocols.evaluation_table import Evaluation
from evaluation.protocols.recipe_making import Choices, make_recipe
from portal.challenges.models import Corpus
from portal.corpora.services import start_import
from portal.editions.selectors import describe_sets, write_recipe
from portal.jobs.models import JobState
from portal.jobs.runner import execute
from tests.portal.factories import make_edition, make_submission, make_team, make_team_system
from tests.portal.objective_runs import add_documents, evaluate

SETS = ("libri_dev_trials_f", "libri_dev_trials_m")
# What Kaldi prints of the ignorant attacker's scores with reversed sign; the average has equal weights.
REACHED = {"libri_dev_trials_f": 36.36, "libri_dev_trials_m": 26.09, "average_dev": 31.225}
pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("quick_figures", "few_resamples"),
]


def make_reversed(folder):
    """The anonymiser, on a published leaderboard that ranks by ignorant attacks; its words are the original ones."""
    job = execute(start_import(folder=str(folder / "data"), name="libri", without_audio=True, run_here=True).pk)
    assert (job.state, job.failure) == (JobState.SUCCEEDED, "")
    corpus = Corpus.objects.get(name="libri")
    sets = describe_sets(corpus)
    choices = Choices("dev", "Scores", SETS, utilities=("wer",), ranked_by=("wer",), evaluation=Evaluation())
    text = write_recipe(make_recipe(sets, choices), corpus)
    edition = make_edition(
        corpus,
        recipe_text=text.replace('attack_model = "lazy-informed"', f'attack_model = "{AttackModel.IGNORANT}"'),
        audio_required=False,
        published_at=timezone.now(),
    )
    results = "exp/results-2022-07-01-10-00-00.orig"
    scores = (folder / "scores").glob("ASV-*/scores")
    files = {f"{results}/{path.parent.name}/scores": path.read_bytes() for path in scores}
    spoken = corpus.utterances.filter(data_sets__name__in=SETS).distinct().values_list("name", "transcript")
    words = "".join(f"{name} {transcript}\n" for name, transcript in spoken).encode()
    files |= {f"hypotheses/libri_dev_asr{suffix}.txt": words for suffix in ("", "_anon")}
    submission = make_submission(make_team_system(make_team(edition)), state="received")
    evaluate(add_documents(submission, files))
    assert submission.state == "evaluated"
    return submission.system


@pytest.fixture
def system(once, librispeech):
    return once(make_reversed, librispeech)


def read(path):
    answer = Client().get(path)
    assert answer.status_code == 200, path
    return answer.content.decode("utf-8-sig").replace("\xa0", " ")


def test_downloads_have_the_reversed_sign_of_every_set(system):
    rows = csv.DictReader(io.StringIO(read(f"/systems/{system.name}/objective.csv")))
    found = {
        row["data_set"]: float(row["value"])
        for row in rows
        if (row["metric"], row["attack_model"]) == ("better_sign_eer", AttackModel.IGNORANT)
    }
    assert found == pytest.approx(REACHED, abs=0.006)
    values = Client().get(f"/api/systems/{system.name}/values").json()["numbers"]
    told = {
        one["data_set"]: one["value"]
        for one in values
        if (one["metric"], one["attack_model"]) == ("better_sign_eer", AttackModel.IGNORANT)
    }
    assert told == pytest.approx(found)
