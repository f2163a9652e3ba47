"""A study of the size of 2022 from the lists of real speech: six published systems and one more on four speakers."""

import csv
from collections import Counter

import pytest

from listening.app.models import Study
from listening.app.studies import designing, planning
from portal.challenges.models import Corpus, DataSet, Speaker, TrialList, Utterance
from portal.submissions.models import SubmittedFile
from tests.listening.heard import make_draft
from tests.listening.stimuli.speech import SPEECH, needs_speech
from tests.portal.factories import make_edition

pytestmark = [pytest.mark.django_db, needs_speech]

POOL = "librispeech-train-clean-100-pool"  # one utterance of each speaker


def read(name):
    with (SPEECH / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def edition():
    """Anonymised utterances and every other one of the rest are trials, all others enrolment."""
    corpus = Corpus.objects.create(name="real", layout="manifest", source="speech")
    anonymised = read("anonymised.csv")
    held = {row["utterance_id"] for row in anonymised}
    roles = {"enrolls": "enrolment", "trials_f": "trial", "trials_m": "trial"}
    sets = {key: DataSet.objects.create(corpus=corpus, name=f"real_{key}", role=role) for key, role in roles.items()}
    met = Counter()
    for row in (row for row in read("utterances.csv") if row["corpus"] != POOL):
        gender = row["gender"].lower()
        speaker = Speaker.objects.get_or_create(corpus=corpus, name=row["speaker"], gender=gender)[0]
        utterance = Utterance.objects.create(
            corpus=corpus, speaker=speaker, name=row["utterance_id"], audio=row["path"], duration_s=row["duration_s"]
        )
        met[speaker.name] += 1
        is_trial = utterance.name in held or (row["corpus"] != "librispeech-dev-clean" and met[speaker.name] % 2)
        sets[f"trials_{gender}" if is_trial else "enrolls"].utterances.add(utterance)
    counts = {"model_count": 1, "target_count": 1, "nontarget_count": 1}
    origin = TrialList.Origin.PRODUCT
    for gender in "fm":
        trial_set = sets[f"trials_{gender}"]
        TrialList.objects.create(trial_set=trial_set, enrolment_set=sets["enrolls"], origin=origin, **counts)
    edition = make_edition(corpus)
    for label in [*sorted({row["system"] for row in anonymised}), "B2"]:
        system = edition.systems.create(name=label.lower(), label=label, title=label, corpus=corpus)
        submission = system.submissions.create(version=1, state="evaluated")
        for utterance in Utterance.objects.filter(name__in=held).select_related("speaker"):
            SubmittedFile.objects.create(
                submission=submission,
                data_set=sets[f"trials_{utterance.speaker.gender}"],
                utterance=utterance,
                audio=f"{label}/{utterance.name}.flac",
                samples=1,
                rate_hz=16000,
            )
    return edition


def draft(edition, **fields):
    numbers = {"evaluators": 52, "trials_per_evaluator": 52, "originals_per_evaluator": 26}
    return make_draft(edition, **numbers | {"practice_trials": 3, "gold_trials": 2, "bridge_trials": 0} | fields)


def test_so_few_recordings_say_what_would_do(edition):
    problems = planning.plan_problems(draft(edition))
    assert len(problems) == 2
    assert all("would do" in problem for problem in problems)


def test_whole_study_of_2022_passes_with_what_the_organizer_lets_give_way(edition):
    study = draft(edition, relaxations=["sexes", "enrolments"])
    certificate = designing.make_design(study, study.created_by)
    assert certificate["passes"]
    (part,) = certificate["parts"]
    numbers = {name: part["numbers"][name] for name in ("evaluators", "trials", "originals", "systems")}
    assert numbers == {"evaluators": 52, "trials": 52, "originals": 26, "systems": 7}
    assert len(part["relaxed"]) == 2
    trials = study.blocks.filter(trials__item__purpose="scored")
    assert trials.count() == 52 * 52
    assert {block.trials.count() for block in study.blocks.all()} == {57}
    assert Study.objects.get(pk=study.pk).certificate == certificate
