"""Small launched studies of the forms that are not rated: boards and transcriptions."""

from django.utils import timezone

from listening.app.models import Presentation, Study
from tests.listening.factories import ask, make_stimulus, original_of
from tests.portal.factories import make_corpus, make_edition, make_organizer

SAMPLES = 4


def make_board_study(*, name="board-study", samples=SAMPLES, boards=2, evaluators=2, **fields):
    """Boards of three speakers, half of the samples original."""
    study, system, utterances = _make_study(name, "linkability", fields, boards, evaluators)
    for block in study.blocks.all():
        for position in range(1, boards + 1):
            item = Presentation.objects.create(study=study, key=f"board-{block.number}-{position}", condition=system)
            for number in range(samples):
                utterance = utterances[(position * samples + number) % len(utterances)]
                stimulus = make_stimulus(study, system if number % 2 else original_of(study), utterance)
                item.samples.create(slot=str(number + 1), stimulus=stimulus)
            block.trials.create(position=position, presentation=item)
    return study


def make_transcription_study(*, name="writing-study", trials=2, evaluators=2, **fields):
    """Trials with one sample each, original and anonymised in turn."""
    defaults = {"plays_at_most": 2} | fields
    study, system, utterances = _make_study(name, "transcription", defaults, trials, evaluators)
    for number in range(trials):
        of = system if number % 2 else original_of(study)
        item = Presentation.objects.create(study=study, key=f"writing-{number}", condition=of)
        item.samples.create(slot="a", stimulus=make_stimulus(study, of, utterances[number]))
        for block in study.blocks.all():
            block.trials.create(position=number + 1, presentation=item)
    return study


def _make_study(name, task, fields, trials, evaluators):
    corpus = make_corpus(name, speakers=3, utterances=3)
    edition = make_edition(corpus, organizers=[make_organizer()])
    study = Study.objects.create(
        **{
            "name": name,
            "title": "Kiwistudy",
            "edition": edition,
            "state": Study.State.OPEN,
            "languages": ["en", "fr"],
            "evaluators": evaluators,
            "trials_per_evaluator": trials,
            "originals_per_evaluator": trials // 2,
            "practice_trials": 0,
            "gold_trials": 0,
            "certificate": {"passes": True},
            "launched_at": timezone.now(),
        }
        | fields
    )
    ask(study, [task])
    label = f"secretive-{name}"
    of_edition = edition.systems.create(name=label, label=label, title="Secretive", corpus=corpus)
    system = study.conditions.create(submission=of_edition.submissions.create(version=1), code=label)
    for number in range(1, evaluators + 1):
        study.blocks.create(number=number)
    return study, system, list(corpus.utterances.all())
