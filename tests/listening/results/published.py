"""Studies on a board with results that are made up, for tests of what shows them beside objective numbers."""

from itertools import count

from django.utils import timezone

from listening.app.models import Study
from portal.core.storage import store_bytes
from tests.listening.analysis.examples import made_up_results
from tests.listening.factories import ask
from tests.listening.rated import RATED

_number = count(1)


def make_heard_study(edition, submissions, *, is_published=True, form="rating", results=None, **fields):
    """A closed study of these submissions with an analysis, whose systems are called as on the board."""
    number = next(_number)
    study = Study.objects.create(
        **{
            "name": f"heard-{number}",
            "title": f"Heard study {number}",
            "edition": edition,
            "state": Study.State.CLOSED,
            "closed_at": timezone.now(),
        }
        | fields
    )
    ask(study, {"rating": RATED, "answers": ["emotion"]}.get(form, [form]))
    codes = [one.system.label for one in submissions]
    for code, submission in zip(codes, submissions, strict=True):
        study.conditions.create(submission=submission, code=code)
    found = results or made_up_results(systems=codes, is_simulated=study.is_simulated)
    found.study["form"] = form
    analysis = study.analyses.create(
        basis="0" * 64,
        fingerprint="0" * 64,
        results=store_bytes(found.as_json().encode(), ".json"),
        finished_at=timezone.now(),
    )
    if is_published:
        study.published_analysis, study.results_published_at = analysis, timezone.now()
        study.save()
    return study
