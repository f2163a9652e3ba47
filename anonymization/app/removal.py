"""What anonymisation runs keep of others: target speakers, whose corpus stays while voices are theirs, and networks of
trainings in the portal, which stay as long as a system that was made with them. A decoder stays as long as a training
for it, too.
"""

from django.db.models import Q, QuerySet

from anonymization.app.models import AnonymizationRun, NetworkTraining
from portal.challenges.models import Corpus
from portal.core.removal import declare_rows, declare_rule


def _corpus_problem(corpus: Corpus) -> str:
    elsewhere = AnonymizationRun.objects.exclude(data_set__corpus=corpus)
    if name := _find_system(elsewhere, Q(target_set__corpus=corpus)):
        return f"Target speakers of {name} come from it. Delete that system first."
    used = Q(network__training__corpus=corpus) | Q(network__training__decoder__training__corpus=corpus)
    if name := _find_system(elsewhere, used):
        return f"A network of {name} was trained on it. Delete that system first."
    reader = NetworkTraining.objects.exclude(corpus=corpus).filter(decoder__training__corpus=corpus).first()
    return f"The decoder of training {reader.pk} was trained on it. Delete that training first." if reader else ""


def _training_problem(training: NetworkTraining) -> str:
    used = Q(network__training=training) | Q(network__training__decoder__training=training)
    if name := _find_system(AnonymizationRun.objects.all(), used):
        return f"The system {name} was made with a network of it. Delete that system first."
    reader = NetworkTraining.objects.filter(decoder__training=training).first()
    return f"Training {reader.pk} is for a decoder of it. Delete that training first." if reader else ""


def _find_system(runs: QuerySet[AnonymizationRun], wanted: Q) -> str:
    """The name of the first system with such a run; empty where there is none."""
    found = runs.filter(wanted).select_related("submission__system").order_by("pk").first()
    return found.submission.system.name if found else ""


declare_rows(AnonymizationRun, "anonymisation runs")
declare_rule(Corpus, _corpus_problem)
declare_rule(NetworkTraining, _training_problem)
