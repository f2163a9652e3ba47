"""What organizers may do with the results of a study, and how its analysis goes: asked at each request."""

from __future__ import annotations

from typing import Any

from listening.models import Study
from listening.results.collecting import has_answers
from listening.results.publishing import NOT_PUBLISHED, publication_problems
from listening.results.result_pages import listeners_in_words
from listening.results.selectors import Shown, is_outdated, running_job
from portal.jobs.selectors import with_estimates


def doings(shown: Shown) -> dict[str, Any]:
    """The analysis under way, and whether another may be started; nothing for whoever does not organise the study."""
    if not shown.is_organizer:
        return {}
    study, job = shown.study, running_job(shown.study)
    is_busy = job is not None and not job.has_ended
    if job is not None and is_busy:
        with_estimates([job])
    is_locked = study.state != Study.State.CLOSED
    return {
        "job": job,
        "is_busy": is_busy,
        "is_locked": is_locked,
        "may_analyse": not is_locked and not is_busy and has_answers(study),
        "is_outdated": shown.analysis is not None and is_outdated(shown.analysis, study),
    }


def publication(shown: Shown, *, is_taking_back: bool = False, refusal: str = "") -> dict[str, Any]:
    """What a page says before results are published or taken back.

    Args:
        refusal: why it was not done just now; told where nothing stands in the way any more.
    """
    study, analysis = shown.study, shown.analysis
    published = study.results_published_at
    if is_taking_back:
        problems = [] if published else [NOT_PUBLISHED]
    else:
        problems = publication_problems(study) or list(filter(None, [refusal]))
    facts = [
        ("Study", str(study)),
        ("Analysed", f"{analysis.finished_at:%Y-%m-%d %H:%M} UTC" if analysis and analysis.finished_at else "not yet"),
        ("Rests on", listeners_in_words(shown.results) if analysis else "nothing"),
        ("Published", f"{published:%Y-%m-%d %H:%M} UTC" if published else "no"),
    ]
    return {
        "study": study,
        "analysis": analysis,
        "is_organizer": True,
        "is_taking_back": is_taking_back,
        "facts": facts,
        "problems": problems,
    }
