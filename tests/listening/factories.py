"""Small real studies for tests of the listening test: rows as a design leaves them, stimuli that are tones."""

from datetime import timedelta
from functools import cache
from itertools import count

import numpy as np
from django.utils import timezone

from listening.app.models import Block, Item, Presentation, PresentationSample, Stimulus, Study, Trial
from listening.app.studies.services import ask_questions
from listening.stimuli.making import write_wav
from portal.core.storage import store_bytes
from tests.listening.rated import RATED, questions_of
from tests.portal.factories import make_corpus, make_edition, make_organizer, tone

RATE_HZ = 16000
SECONDS = 0.6  # of each stimulus
_number = count(1)


def make_study(
    *,
    evaluators=2,
    trials=4,
    systems=2,
    state=Study.State.OPEN,
    edition=None,
    organizer=None,
    tasks=RATED,
    points=None,
    **fields,
):
    """A launched study: every evaluator meets the same kinds of items in another order, half of them originals."""
    number = next(_number)
    if edition is None:
        speakers, utterances = 2, max(2, trials)
        corpus = make_corpus(f"heard{number}", speakers=speakers, utterances=utterances)
        edition = make_edition(corpus, organizers=[organizer or make_organizer()])
    study = Study.objects.create(
        **{
            "name": f"study-{number}",
            "title": f"Study {number}",
            "edition": edition,
            "state": state,
            "languages": ["en", "fr"],
            "evaluators": evaluators,
            "trials_per_evaluator": trials,
            "originals_per_evaluator": trials // 2,
            "practice_trials": 0,
            "gold_trials": 0,
            "seed": 2022,
            "pay_per_hour": 12,
            "certificate": {"passes": True},
            "launched_at": timezone.now(),
        }
        | fields
    )
    ask(study, tasks, points)
    of_study = [_make_system(study, index) for index in range(systems)]
    items = _make_presentations(study, of_study, trials)
    blocks = Block.objects.bulk_create(Block(study=study, number=number) for number in range(1, evaluators + 1))
    Trial.objects.bulk_create(
        Trial(block=block, position=position, presentation=items[(block.number + position - 1) % len(items)])
        for block in blocks
        for position in range(1, len(items) + 1)
    )
    return study


def ask(study, tasks=RATED, points=None):
    """Let a study ask these questions."""
    ask_questions(study, questions_of(tasks, points))


def _make_system(study, index):
    edition = study.edition
    label = f"secretive{study.pk}-{index}"
    system = edition.systems.create(name=label, label=label, title=f"System {label}", corpus=edition.corpus)
    return study.conditions.create(submission=system.submissions.create(version=1), code=label)


def _make_presentations(study, systems, wanted):
    """Presentations with sample A of the trial sets and B of the enrolment set, target and nontarget in turn."""
    corpus = study.edition.corpus
    utterances = corpus.utterances.select_related("speaker")
    trial_utterances = list(utterances.filter(data_sets__role="trial"))
    enrolments = list(utterances.filter(data_sets__role="enrolment"))
    original = original_of(study)
    items, heard, said, stimuli = [], [], {}, {}
    for index in range(wanted):
        system = systems[(index // 2) % len(systems)] if index % 2 else original
        utterance, enrolment = trial_utterances[index], enrolments[index % len(enrolments)]
        is_target = utterance.speaker_id == enrolment.speaker_id
        items.append(Presentation(study=study, key=f"item-{index}", condition=system, is_target=is_target))
        heard.append({"a": (system, utterance), "b": (original, enrolment)})
        for of in heard[-1].values():
            if of not in stimuli:
                item = said.setdefault(of[1], Item(study=study, utterance=of[1], **_told_of(of[1])))
                stimuli[of] = Stimulus(study=study, condition=of[0], item=item, **_made_of(*of))
    Item.objects.bulk_create(said.values())
    Presentation.objects.bulk_create(items)
    Stimulus.objects.bulk_create(stimuli.values())
    PresentationSample.objects.bulk_create(
        PresentationSample(presentation=item, slot=slot, stimulus=stimuli[of])
        for item, samples in zip(items, heard, strict=True)
        for slot, of in samples.items()
    )
    return items


def original_of(study):
    """The condition with which the systems of a study are compared."""
    return study.conditions.get_or_create(code="", defaults={"kind": "original"})[0]


def item_of(study, utterance):
    """What is said in an utterance, as an item of a study."""
    return study.items.get_or_create(utterance=utterance, defaults=_told_of(utterance))[0]


def _told_of(utterance):
    speaker = {"speaker": utterance.speaker.name, "sex": utterance.speaker.gender}
    return {"name": utterance.name, "transcript": utterance.transcript, **speaker}


def make_stimulus(study, condition, utterance):
    """A short stimulus that is a tone of its own in both ears."""
    item, defaults = item_of(study, utterance), _made_of(condition, utterance)
    return study.stimulus_files.get_or_create(condition=condition, item=item, defaults=defaults)[0]


def _made_of(condition, utterance):
    return {"source": utterance.audio, **store_stimulus(100 + utterance.pk % 97 + (50 if condition.code else 0))}


@cache
def wav_of_tone(hertz, seconds):
    return write_wav(np.asarray(tone(hertz, seconds), np.int16))


def store_stimulus(hertz, seconds=None):
    """File, size and duration of a stored WAV file with a tone."""
    seconds = seconds or SECONDS
    content = wav_of_tone(hertz, seconds)
    return {"file": store_bytes(content, ".wav"), "bytes": len(content), "duration_s": seconds}


def make_session(study, **fields):
    """A session that has consented and stands before its first trial, holding a block of its own."""
    number = next(_number)
    participant = study.participants.create(person_key=f"person-{number}")
    block = study.blocks.filter(holder=None, is_finished=False).first()
    now = timezone.now()
    defaults = {"step": "trials", "consented_at": now, "trials_started_at": now, "heard_until": now, "block": block}
    session = study.sessions.create(participant=participant, **defaults | fields)
    if session.block is not None and not session.is_preview:
        block = session.block
        block.holder, block.offers = session, block.offers + 1
        block.lease_expires_at = now + timedelta(minutes=study.lease_minutes)
        block.save()
    return session
