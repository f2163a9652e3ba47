"""Editions that a study can be made of: speakers with enough tones, and systems whose submissions hold them raised."""

from itertools import count
from typing import Any

from django.db.models import F, Value
from django.db.models.functions import Concat

from listening.app.models import Study
from listening.app.studies import designing, services
from listening.app.studies.services import best_sets
from portal.challenges.models import Role
from portal.submissions.models import Submission, SubmittedFile
from tests.listening.rated import RATED, questions_of
from tests.portal.factories import make_corpus, make_edition, make_organizer, store_tone

_number = count(1)

TOLD = {"responsible": "Test University", "contact": "study@example.org", "keep_months": 24}  # before they consent


def make_edition_with_speech(*, speakers=8, utterances=8, systems=2, organizer=None, with_audio=False, **fields):
    """An edition with a corpus and systems that anonymised every trial utterance; without audio no file is there."""
    corpus = make_corpus(f"voices{next(_number)}", speakers=speakers, utterances=utterances, with_audio=with_audio)
    if not with_audio:
        corpus.utterances.update(audio=Concat(Value("absent/"), F("name"), Value(".flac")), rate_hz=16000)
    edition = make_edition(corpus, organizers=[organizer or make_organizer()], **fields)
    for index in range(systems):
        add_system(edition, f"T{index + 1:02d}-p1", hertz=300 + 10 * index)
    return edition


def add_system(edition, label, *, hertz=300, state=Submission.State.EVALUATED):
    """A system of the edition with one submission of all its trial utterances."""
    name = f"{edition.name}-{label}".lower()
    system = edition.systems.create(name=name, label=label, title=f"System {label}", corpus=edition.corpus)
    submission = system.submissions.create(version=1, state=state)
    audio = {"audio": store_tone(hertz), "samples": 9600, "rate_hz": 16000}
    SubmittedFile.objects.bulk_create(
        SubmittedFile(submission=submission, data_set=data_set, utterance=utterance, **audio)
        for data_set in edition.corpus.data_sets.filter(role=Role.TRIAL)
        for utterance in data_set.utterances.all()
    )
    return submission


def make_draft(edition, *, tasks=RATED, points=None, **fields):
    """A study of every system of an edition that was never designed."""
    number = next(_number)
    by = edition.organizers.first()
    defaults = {
        "name": f"draft-{number}",
        "title": f"Draft {number}",
        "evaluators": 4,
        "trials_per_evaluator": 8,
        "originals_per_evaluator": 4,
        "practice_trials": 2,
        "gold_trials": 2,
        "bridge_trials": 1,
        "seed": 2022,
        "pay_per_hour": 12,
        **TOLD,
    }
    systems = Submission.objects.filter(system__edition=edition).order_by("system__label")
    chosen: dict[str, Any] = {"systems": list(systems), "data_sets": best_sets(edition)}
    chosen["questions"] = questions_of(tasks, points)
    return services.create_study(edition=edition, by=by, **chosen | defaults | fields)


def make_designed(edition=None, **fields):
    """A study with a certified design; its stimuli are not made."""
    study = make_draft(edition or make_edition_with_speech(), **fields)
    designing.make_design(study, study.created_by)
    study.refresh_from_db()
    return study


def make_prepared(edition=None, **fields):
    """A designed study whose stimuli count as made; they cannot be heard."""
    study = make_designed(edition, **fields)
    study.stimulus_files.update(file="derived/nothing.flac", bytes=1, duration_s=0.6)
    study.state = Study.State.PREPARED
    study.save()
    return study
