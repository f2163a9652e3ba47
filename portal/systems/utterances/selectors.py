"""What made an anonymised utterance, for those who may know."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from django.http import HttpRequest

from anonymization.app.models import AnonymizationRun
from anonymization.app.networks import find_run_method
from anonymization.app.selectors import NETWORKS
from anonymization.app.voice_assignment import find_pseudo_speaker
from anonymization.methods.contract import Anonymizer, MethodError, PseudoSpeaker
from portal.submissions.models import SubmittedFile
from portal.submissions.rules import Relation
from portal.submissions.selectors import relation_to


@dataclass(frozen=True)
class Making:
    """The run, the method, the voice and the options that made a file here; none of them for files made elsewhere."""

    run: AnonymizationRun | None = None
    method: Anonymizer | None = None
    voice: PseudoSpeaker | None = None
    options: dict[str, Any] = field(default_factory=dict)


def find_making(request: HttpRequest, file: SubmittedFile) -> Making:
    """Nothing for files made elsewhere, and for all but organizers: with its voice an anonymisation can be undone."""
    if relation_to(request.user, file.submission.system) is not Relation.ORGANIZER:
        return Making()
    runs = AnonymizationRun.objects.select_related(NETWORKS)
    run = runs.filter(submission=file.submission_id, data_set=file.data_set_id).first()
    if run is None:
        return Making()
    run.data_set = file.data_set
    try:
        return Making(run, find_run_method(run), find_pseudo_speaker(run, file.utterance), run.options)
    except MethodError:  # a plug-in that is gone, or somebody who came after the voices were planned
        return Making()
