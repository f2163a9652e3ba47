"""Real EERs above 50 %: wherever one stands, the portal says what an attacker reaches who reverses the sign.

The scores are those of ``../shared/vpc-librispeech``: enrolment with original speech against vectors of an anonymiser,
64.35 % for women and 74.22 % for men (README beside them).
"""

import csv
import io
from pathlib import Path

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
from tests.portal.objective import add_documents, evaluate

LIBRISPEECH = Path(__file__).resolve().parents[4] / "shared" / "vpc-librispeech"
SETS = ("libri_dev_trials_f", "libri_dev_trials_m")
# With reversed sign; the average has equal weights.
REACHED = {"libri_dev_trials_f": 100 - 64.35, "libri_dev_trials_m": 100 - 74.22, "average_dev": 100 - 69.285}
pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("quick_figures", "few_resamples"),
    pytest.mark.skipif(not LIBRISPEECH.is_dir(), reason="the real scores in ../shared are not here"),
]


def make_reversed():
    """The anonymiser, on a published leaderboard that ranks by ignorant attacks; its words are the original ones."""
    job = execute(start_import(folder=str(LIBRISPEECH / "data"), name="libri", without_audio=True, run_here=True).pk)
    assert (job.state, job.failure) == (JobState.SUCCEEDED, "")
    corpus = Corpus.objects.get(name="libri")
    sets = describe_sets(corpus)
    choices = Choices("dev", "Real scores", SETS, utilities=("wer",), ranked_by=("wer",), evaluation=Evaluation())
    text = write_recipe(make_recipe(sets, choices), corpus)
    edition = make_edition(
        corpus,
        recipe_text=text.replace('attack_model = "lazy-informed"', f'attack_model = "{AttackModel.IGNORANT}"'),
        audio_required=False,
        published_at=timezone.now(),
    )
    folder = "exp/results-2022-07-01-10-00-00.orig"
    files = {
        f"{folder}/{path.parent.name}/scores": path.read_bytes()
        for path in (LIBRISPEECH / "scores-ohnn").glob("ASV-*/scores")
    }
    spoken = corpus.utterances.filter(data_sets__name__in=SETS).distinct().values_list("name", "transcript")
    words = "".join(f"{name} {transcript}\n" for name, transcript in spoken).encode()
    files |= {f"hypotheses/libri_dev_asr{suffix}.txt": words for suffix in ("", "_anon")}
    submission = make_submission(make_team_system(make_team(edition)), state="received")
    evaluate(add_documents(submission, files))
    assert submission.state == "evaluated"
    return submission.system


@pytest.fixture
def system(once):
    return once(make_reversed)


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
