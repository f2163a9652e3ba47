"""What evaluation runs keep of submissions: it goes with them."""

from evaluation.app.models import EvaluationRun, ScoreSet, UtteranceMeasure
from portal.core.removal import declare_rows

declare_rows(EvaluationRun, "evaluation runs")
declare_rows(ScoreSet, files=("key",))
declare_rows(UtteranceMeasure, files=("f0_original", "f0_anonymised"))
