"""A whole study as in 2022 on real speech, behind a served portal: from recordings on disk to the link for evaluators.

With TEST_LOOKS=all and `../shared/speech`: 52 evaluators with 52 scored trials each, 26 of them original; eleven
systems: the six published ones, which have 8 utterances of each of 4 speakers (three men, one woman), and five runs of
our own B2. Originals are of all 27 speakers. So few anonymised recordings cannot be half of women, and their speakers'
enrolment utterances come twice in a session: the study says that these two rules give way. Else: a small study on the
demo corpus.

A session takes as long as its sound. Of every recording only the loudest part is imported, the same part of every
version of it, so that 52 trials last minutes; `WHOLE_STUDY_SECONDS=full` imports whole recordings.
"""

import csv
import os
from collections import defaultdict
from dataclasses import dataclass
from itertools import chain

import numpy as np
import soundfile
from django.utils import timezone

from anonymization.app.services import start_anonymization
from listening.app.models import Study
from listening.app.studies.designing import make_design
from listening.app.studies.services import create_study, launch_study, prepare_study
from portal.challenges.models import Corpus, Role
from portal.core.storage import keep_audio
from portal.corpora.services import start_import
from portal.jobs.models import JobState
from portal.submissions.models import Submission
from portal.submissions.services import change_state, create_baseline
from speech.audio.files import write_flac16
from tests.browsing import EVERY_LOOK
from tests.listening.edition_factories import TOLD
from tests.portal.factories import make_edition
from tests.portal.processes.programs import wait_for_end
from tests.recordings import DEMO, SHARED

SPEECH = SHARED / "speech"
SECONDS = os.environ.get("WHOLE_STUDY_SECONDS", "0.5")  # with the silence around it 1.024 s
RATE_HZ = 16000
JOB_PATIENCE_S = 600
COLUMNS = ("utterance_id", "speaker", "gender", "corpus", "data_set", "role", "transcript", "path")


@dataclass(frozen=True)
class Size:
    """Numbers of a study; `b2_seeds`: one system for each."""

    evaluators: int
    trials: int
    originals: int
    practice: int
    gold: int
    b2_seeds: tuple[int, ...]
    relaxations: tuple[str, ...] = ()

    @property
    def trials_of_session(self):
        return self.trials + self.practice + self.gold


AS_IN_2022 = Size(52, 52, 26, 1, 2, (2022, 2023, 2024, 2025, 2026), ("sexes", "enrolments"))
SMALL = Size(6, 12, 6, 1, 1, (2022, 2023, 2024))


class Material:
    """Recordings as they lie on disk: `rows` of utterances, and by system and utterance the published versions."""

    def __init__(self):
        self.is_published = EVERY_LOOK and SPEECH.is_dir()
        self.folder = SPEECH if self.is_published else DEMO
        self.size = AS_IN_2022 if self.is_published else SMALL
        self.versions = defaultdict(dict)
        if self.is_published:
            for row in _lines(SPEECH / "anonymised.csv"):
                self.versions[row["system"]][row["utterance_id"]] = SPEECH / row["path"]
        # Of the pool of further speakers there is one utterance each, without a transcript.
        rows = [row for row in _lines(self.folder / "utterances.csv") if not row["corpus"].endswith("-pool")]
        self.rows = rows if not self.is_published else self._with_roles(rows)
        self.places = {row["utterance_id"]: loudest(read(self.folder / row["path"])) for row in self.rows}

    def _with_roles(self, rows):
        """What was anonymised is heard in trials, with half of what nobody anonymised; the others are enrolment."""
        anonymised = set(chain.from_iterable(self.versions.values()))
        whose = {row["speaker"] for row in rows if row["utterance_id"] in anonymised}
        turns = defaultdict(int)
        for row in rows:
            is_trial = row["utterance_id"] in anonymised
            if row["speaker"] not in whose:
                turns[row["speaker"]] += 1
                is_trial = turns[row["speaker"]] % 2 == 0
            row["role"] = "trial" if is_trial else "enrolment"
            row["data_set"] = f"speech_trials_{row['gender'].lower()}" if is_trial else "speech_enrolls"
        return rows

    def cut(self, path, utterance):
        """The part of a recording that is heard."""
        return read(path)[self.places[utterance]]

    def write(self, folder):
        """A corpus with a manifest."""
        folder.mkdir(parents=True)
        with (folder / "utterances.csv").open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS, extrasaction="ignore", lineterminator="\n")
            writer.writeheader()
            for row in self.rows:
                name = f"{row['utterance_id']}.flac"
                with (folder / name).open("wb") as audio:
                    write_flac16(audio, self.cut(self.folder / row["path"], row["utterance_id"]), RATE_HZ)
                writer.writerow(row | {"path": name})
        return folder


def _lines(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def read(path):
    samples, rate = soundfile.read(path, dtype="int16")
    assert rate == RATE_HZ
    return samples


def loudest(samples):
    """Where the part with most energy lies that is as long as wanted."""
    if SECONDS == "full":
        return slice(None)
    wanted = round(float(SECONDS) * RATE_HZ)
    energy = np.concatenate([[0], np.cumsum(samples.astype(np.float64) ** 2)])
    starts = np.arange(0, max(1, samples.size - wanted), 160)
    start = int(starts[np.argmax(energy[np.minimum(starts + wanted, samples.size)] - energy[starts])])
    return slice(start, start + wanted)


def make_whole_study(folder, organizer):
    """The launched study, by the ways that the portal has for an organizer; its jobs run in the served portal."""
    material = Material()
    size, by = material.size, organizer
    finish([start_import(folder=str(material.write(folder / "speech")), name="speech", by=by)])
    corpus = Corpus.objects.get(name="speech")
    edition = make_edition(corpus, organizers=[organizer], name="speech-2022", title="Real speech")
    trial_sets = list(corpus.data_sets.filter(role=Role.TRIAL))
    own = [create_baseline(name=f"b2-{seed}", title=f"B2, seed {seed}", corpus=corpus, by=by) for seed in size.b2_seeds]
    jobs = [
        run.job
        for submission, seed in zip(own, size.b2_seeds, strict=True)
        for run in start_anonymization(
            submission=submission, data_sets=trial_sets, method="mcadams-2022", seed=seed, by=by
        )
    ]
    published = [hand_in(corpus, trial_sets, material, system, by) for system in material.versions]
    finish(jobs)
    for submission in own:
        change_state(submission=submission, state=Submission.State.ACCEPTED, note="Made here.", actor=by)
    study = create_study(
        edition=edition,
        by=by,
        systems=[*own, *published],
        data_sets=corpus.data_sets.all(),
        name="whole-2022",
        title="Listening test as in 2022",
        evaluators=size.evaluators,
        trials_per_evaluator=size.trials,
        originals_per_evaluator=size.originals,
        practice_trials=size.practice,
        gold_trials=size.gold,
        relaxations=list(size.relaxations),
        screening={"sound": True, "headphones": "none", "gold_gate": "flag"},
        seed=2022,
        **TOLD,
    )
    make_design(study, by)
    finish([prepare_study(study, by)])
    study.refresh_from_db()
    assert study.state == Study.State.PREPARED
    return launch_study(study=study, by=by, now=timezone.now()), size


def hand_in(corpus, trial_sets, material, system, by):
    """A published system with the utterances that it has."""
    submission = create_baseline(name=system.lower(), title=system, corpus=corpus, by=by)
    versions = material.versions[system]
    for data_set in trial_sets:
        for utterance in data_set.utterances.filter(name__in=versions):
            samples = material.cut(versions[utterance.name], utterance.name)
            audio = {"audio": keep_audio(samples, RATE_HZ), "samples": samples.size, "rate_hz": RATE_HZ}
            submission.files.create(data_set=data_set, utterance=utterance, **audio)
    change_state(submission=submission, state=Submission.State.ACCEPTED, note="As published.", actor=by)
    return submission


def finish(jobs):
    for job in jobs:
        ended = wait_for_end(job, seconds=JOB_PATIENCE_S)
        assert ended.state == JobState.SUCCEEDED, f"{ended.title}: {ended.failure}"
