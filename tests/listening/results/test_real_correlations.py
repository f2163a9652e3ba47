"""The correlations of 2022 on real ratings and real word errors: from import and recognition to tables of results.

Six published anonymisers of ``../shared`` are systems of an edition, and a recogniser of the portal writes down their
speech. No open data has ratings of speech whose words can be recognised, so the ratings are those of six systems of
the Voice Conversion Challenge 2020, given to these utterances in the order of their names, and its similarity stands
for intelligibility. The values therefore say nothing of the anonymisers; that they are right is what is tested, by
plain loops, pandas and scipy.
"""

import csv
import io
from collections import defaultdict

import numpy as np
import pandas as pd
import pytest
import soundfile
from django.test import Client
from django.utils import timezone
from scipy.stats import pearsonr, spearmanr

from evaluation.app.recognition.services import start_recognition
from evaluation.metrics.word_normalization import WRITTEN_ENGLISH
from evaluation.protocols.recipe_making import Engines, make_recipe, propose_choices
from listening.app.results.importing import import_study
from listening.app.results.selectors import parsed_results
from portal.challenges.models import Corpus
from portal.core.storage import store_bytes
from portal.corpora.services import start_import
from portal.editions.selectors import describe_sets, write_recipe
from portal.jobs.models import Job, JobState
from portal.jobs.runner import execute
from speech.encoders import long_term_spectrum
from speech.recognizers import registry
from tests.listening.results.answered import analysed
from tests.official import VCC2020
from tests.portal.factories import make_edition, make_organizer, make_submission, make_team, make_team_system
from tests.recordings import SHARED

SPEECH = SHARED / "speech"
RECOGNIZER = registry.find_engine("moonshine-tiny")
pytestmark = [
    pytest.mark.django_db,
    pytest.mark.skipif(bool(registry.explain_missing(RECOGNIZER)), reason=registry.explain_missing(RECOGNIZER) or "-"),
    pytest.mark.usefixtures("shared", "quick_analyses"),
]
RATED = {  # systems of 2020, from well to badly rated, and whose utterances here have their ratings
    "team10_intra": "idmap-Average",
    "team13_intra": "idmap-Diff-U",
    "team06_intra": "idmap-GAN-N",
    "team22_intra": "idmap-MLP-U",
    "team27_intra": "idmap-PSD",
    "team04_intra": "idmap-RS",
}
TASKS = {"quality": "naturalness", "similarity": "intelligibility"}
WER = "1 − WER"
PAIRS = (("intelligibility", WER), ("naturalness", WER), ("naturalness", "intelligibility"))
OF_SPEAKER = 4  # utterances of each: one to enrol, the others to try


@pytest.fixture
def edition(tmp_path):
    """An edition whose corpus has the shortest utterances of four real speakers that published anonymisers spoke."""
    with (SPEECH / "utterances.csv").open(newline="") as file:
        known = {row["utterance_id"]: row for row in csv.DictReader(file)}
    with (SPEECH / "anonymised.csv").open(newline="") as file:
        spoken = sorted({row["utterance_id"] for row in csv.DictReader(file)})
    shortest = sorted(spoken, key=lambda name: float(known[name]["duration_s"]))
    of_speaker = defaultdict(list)
    for name in shortest:
        of_speaker[known[name]["speaker"]].append(known[name])
    columns = ("utterance_id", "speaker", "gender", "transcript", "path")
    with (tmp_path / "utterances.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow([*columns, "data_set", "role"])
        for rows in of_speaker.values():
            for number, row in enumerate(rows[:OF_SPEAKER]):
                (tmp_path / f"{row['utterance_id']}.flac").write_bytes((SPEECH / row["path"]).read_bytes())
                cells = [row[name] for name in columns[:-1]] + [f"{row['utterance_id']}.flac"]
                table.writerow([*cells, *(("real_trials", "trial") if number else ("real_enrolls", "enrolment"))])
    job = execute(start_import(folder=str(tmp_path), name="real", run_here=True, is_shared=True).pk)
    assert (job.state, job.failure) == (JobState.SUCCEEDED, "")
    corpus = Corpus.objects.get(name="real")
    engines = Engines((long_term_spectrum.ENGINE.name,), (RECOGNIZER.name,))
    sets = describe_sets(corpus)
    recipe = make_recipe(sets, propose_choices(sets, engines, edition="real", title="Real"))
    return make_edition(
        corpus,
        organizers=[make_organizer()],
        recipe_text=write_recipe(recipe, corpus),
        published_at=timezone.now(),
    )


@pytest.fixture
def systems(edition):
    """The label of each published anonymiser, whose speech is submitted and recognised."""
    labels = {}
    for anonymiser in RATED.values():
        submission = make_submission(make_team_system(make_team(edition)))
        labels[anonymiser] = submission.system.label
        for data_set in edition.corpus.data_sets.all():
            for utterance in data_set.utterances.select_related("speaker"):
                path = SPEECH / "anonymised" / anonymiser / utterance.speaker.name / f"{utterance.name}.flac"
                facts = {"samples": soundfile.info(path).frames, "rate_hz": 16_000}
                audio = store_bytes(path.read_bytes(), ".flac")
                submission.files.create(data_set=data_set, utterance=utterance, audio=audio, **facts)
        start_recognition(submission=submission, engine=RECOGNIZER.name, data_sets=["real_trials"])
        for job in Job.objects.filter(state=JobState.WAITING).order_by("created_at"):
            assert execute(job.pk).failure == ""
    return labels


def choose_ratings(systems, utterances):
    """Every valid rating of the first utterances of each chosen system of 2020, as a file that the portal imports."""
    table = pd.read_csv(VCC2020)
    table = table[(table.valid == 1) & table.system.isin(RATED)].copy()
    table["rated"] = table["sample"].str.split("-", n=1).str[1]
    names = sorted(utterances)
    place = {one: dict(zip(sorted(of.rated.unique()), names, strict=False)) for one, of in table.groupby("system")}
    table["utterance"] = [place[one].get(rated, "") for one, rated in zip(table.system, table.rated, strict=True)]
    table = table[table.utterance != ""]
    table["task"] = table.task.map(TASKS)
    table["system"] = table.system.map(RATED).map(systems)
    return table.rename(columns={"score": "rating"})[["listener", "task", "system", "utterance", "rating"]]


def count_plainly(said, heard):
    """Levenshtein's distance of two lists of words, row by row."""
    before = list(range(len(heard) + 1))
    for number, word in enumerate(said, 1):
        row = [number]
        for column, other in enumerate(heard, 1):
            row.append(min(before[column] + 1, row[-1] + 1, before[column - 1] + (word != other)))
        before = row
    return before[-1]


def read_recognised(client, edition):
    """1 − WER of each utterance, of the words that the page of recognition lets everybody download."""
    found = {}
    for system in edition.systems.all():
        answer = client.get(f"/systems/{system.name}/recognition/utterances.csv")
        for row in csv.DictReader(io.StringIO(answer.content.decode("utf-8-sig"))):
            said, heard = (WRITTEN_ENGLISH.normalise(row[name]).split() for name in ("reference", "hypothesis"))
            found[system.label, row["utterance"]] = 1 - count_plainly(said, heard) / len(said)
    return found


def correlate_plainly(ratings, recognised, scores):
    """Pearson and Spearman of the means of each utterance, as pandas and scipy have them."""
    table = ratings.copy()
    if scores == "normalised":
        of_listener = table.groupby(["listener", "task"]).rating
        size = of_listener.transform("size")
        table["rating"] = np.where(size > 1, (of_listener.rank() - 1) / (size - 1).clip(lower=1), 0.5)
    means = table.groupby(["system", "utterance", "task"]).rating.mean().round(10).unstack("task")
    means[WER] = [recognised[name] for name in means.index]
    found = {}
    for first, second in PAIRS:
        both = means[[first, second]].dropna()
        pair = both[first], both[second]
        found[first, second] = len(both), pearsonr(*pair)[0], spearmanr(*pair)[0]
    return found


@pytest.mark.slow  # Moonshine tiny on 72 recordings
def test_correlations_of_2022_on_real_ratings_and_word_errors_are_those_of_plain_computations(edition, systems):
    trials = edition.corpus.utterances.filter(data_sets__name="real_trials").values_list("name", flat=True)
    ratings = choose_ratings(systems, trials)
    owner = edition.organizers.get()
    file = io.BytesIO(ratings.to_csv(index=False).encode())
    made = import_study(edition=edition, by=owner, name="heard", title="Heard", file=file, file_name="ratings.csv")
    assert (made.ratings, set(made.matched)) == (len(ratings), set(systems.values()))
    results = parsed_results(analysed(made.analysis).results)
    client = Client()
    client.force_login(owner)
    recognised = read_recognised(client, edition)
    assert len(set(recognised.values())) > 5
    for scores in ("raw", "normalised"):
        expected = correlate_plainly(ratings, recognised, scores)
        rows = {frozenset((row["first"], row["second"])): row for row in results.records(scores, "correlations")}
        for pair, (utterances, pearson, spearman) in expected.items():
            row = rows[frozenset(pair)]
            assert row["utterances"] == utterances == len(RATED) * len(trials), pair
            assert row["pearson"] == pytest.approx(pearson, abs=1e-9), (scores, pair)
            assert row["spearman"] == pytest.approx(spearman, abs=1e-9), (scores, pair)
