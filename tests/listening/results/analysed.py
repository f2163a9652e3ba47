"""Studies that are closed and analysed, with results that are made up: for tests of what only shows them."""

import hashlib

from django.utils import timezone

from listening.app.models import Study
from portal.core.storage import store_bytes
from portal.submissions.models import SubmittedFile
from tests.listening.analysis.examples import SYSTEMS, UTTERANCES, made_up_results
from tests.listening.factories import make_study
from tests.portal.factories import make_organizer, make_team

SVG = b'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 10 10"><rect width="10" height="10"/></svg>'


def make_analysed(*, results=None, organizer=None, publish=False, figures=(), heard=(), **fields):
    """A closed study with a finished analysis.

    Args:
        figures: paths of drawn files; each is a little square.
        heard: codes of systems of a team each that were heard.
    """
    numbers = {"evaluators": 1, "trials": 2, "systems": 1}
    closed = {"state": Study.State.CLOSED, "closed_at": timezone.now()}
    study = make_study(organizer=organizer or make_organizer(), **numbers, **closed, **fields)
    for code in heard:
        add_heard_system(study, code)
    add_analysis(study, results or made_up_results(), {path: store_bytes(SVG, ".svg") for path in figures})
    if publish:
        publish_study(study)
    return study


def add_analysis(study, results, figures=()):
    """A finished analysis of a study with these results."""
    from listening.app.results.inputs import compute_basis

    text = results.as_json()
    return study.analyses.create(
        basis=compute_basis(study),
        fingerprint=hashlib.sha256(text.encode()).hexdigest(),
        chosen=dict(results.settings),
        results=store_bytes(text.encode(), ".json"),
        figures=dict(figures),
        finished_at=timezone.now(),
    )


def publish_study(study):
    """Results and the leaderboard of the edition are public."""
    study.edition.published_at = timezone.now()
    study.edition.save()
    study.published_analysis, study.results_published_at = study.analyses.first(), timezone.now()
    study.save()


def add_heard_system(study, code=SYSTEMS[0], *, team=None):
    """A system of a team that was heard in a study under this code, with a file of an utterance that was rated."""
    team = team or make_team(study.edition)
    label = code.partition("-")[2]
    system = study.edition.systems.create(
        name=f"{study.edition.name}-{code}".lower(),
        label=label,
        title=f"System {code}",
        corpus=study.edition.corpus,
        team=team,
    )
    submission = system.submissions.create(version=1)
    study.conditions.create(submission=submission, code=code)
    corpus = study.edition.corpus
    data_set = corpus.data_sets.filter(role="trial").first()
    utterance = corpus.utterances.create(
        speaker=corpus.speakers.first(), name=UTTERANCES[0], audio=store_bytes(SVG, ".flac"), samples=1, rate_hz=16000
    )
    data_set.utterances.add(utterance)
    SubmittedFile.objects.create(
        submission=submission, data_set=data_set, utterance=utterance, audio=utterance.audio, samples=1, rate_hz=16000
    )
    return submission
