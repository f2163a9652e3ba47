"""What anonymisation runs keep of others: target speakers, whose corpus stays while voices are theirs."""

from anonymization.app.models import AnonymizationRun
from portal.challenges.models import Corpus
from portal.core.removal import declare_rows, declare_rule


def _corpus_problem(corpus: Corpus) -> str:
    elsewhere = AnonymizationRun.objects.filter(target_set__corpus=corpus).exclude(data_set__corpus=corpus)
    found = elsewhere.select_related("submission__system").order_by("pk").first()
    return f"Target speakers of {found.submission.system.name} come from it. Delete that system first." if found else ""


declare_rows(AnonymizationRun, "anonymisation runs")
declare_rule(Corpus, _corpus_problem)
