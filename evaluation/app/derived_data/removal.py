"""What evaluation runs keep of submissions: it goes with them."""

from django.db.models import Q

from evaluation.app.models import EvaluationRun, ScoreSet
from portal.core.removal import declare_owned, declare_rows
from portal.jobs.models import Job
from portal.submissions.selectors import OF_ENGINES

declare_owned(Job, by=EvaluationRun, find=lambda runs: Q(kind__in=OF_ENGINES, parameters__run__in=runs))
declare_rows(EvaluationRun, "evaluation runs")
declare_rows(ScoreSet, files=("key",))
