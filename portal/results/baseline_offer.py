"""What there is to choose from where an anonymiser is started on a corpus, and what is known of its cost."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet

from anonymization.estimates import Pace, paces
from anonymization.methods.contract import Anonymizer
from anonymization.methods.registry import methods, missing_of
from anonymization.trials import trials_under_way
from portal.challenges.models import Corpus, Edition
from portal.challenges.selectors import DataSetRow, data_set_table, managed_editions_for
from portal.core.wording import roughly
from portal.jobs.models import Job
from portal.results.pages import measuring_per_second
from portal.submissions.expected import asks_for


@dataclass(frozen=True)
class Offer:
    """Read once for a page.

    Attributes:
        rows: the data sets of the corpus.
        known: the methods by name; missing: what each lacks here, empty where nothing.
        paces: of the methods of which anything tells one.
        measuring: seconds of work to measure a second of speech, None where nothing tells.
        editions: those of the corpus that this person organises.
        trials: of methods, under way.
    """

    rows: list[DataSetRow]
    known: dict[str, Anonymizer]
    missing: dict[str, str]
    paces: dict[str, Pace]
    measuring: float | None
    editions: list[Edition]
    trials: list[Job]

    @property
    def ready(self) -> list[DataSetRow]:
        """The data sets that can be anonymised."""
        return [row for row in self.rows if 0 < row.utterances == row.with_audio]

    @property
    def without_audio(self) -> list[DataSetRow]:
        """The data sets that lack audio."""
        return [row for row in self.rows if not 0 < row.utterances == row.with_audio]

    @property
    def untried(self) -> list[str]:
        """The methods that could run here, of whose pace nothing is known and that are not being tried."""
        tried = {name for job in self.trials for name in job.parameters["methods"]}
        return [name for name, missing in self.missing.items() if not missing and name not in {*self.paces, *tried}]

    def asked_by(self, edition: Edition) -> list[str]:
        """The data sets of an edition's lists."""
        return [row.data_set.name for row in self.rows if asks_for(edition, row.data_set)]

    def cost_of(self, method: str) -> float | None:
        """Seconds that anonymising and measuring a second of speech take; None where nothing tells one of the two."""
        pace = self.paces.get(method)
        return None if pace is None or self.measuring is None else pace.work_per_second + self.measuring

    def extent(self, wanted: Container[str], cost: float | None) -> str:
        """How much the ready data sets of these keys are, and how long it takes at so many seconds for a second."""
        chosen = [row for row in self.ready if str(row.data_set.pk) in wanted]
        if not chosen:
            return "No data set chosen."
        seconds = sum(row.seconds for row in chosen)
        sets = f"{len(chosen)} data set{'s' if len(chosen) > 1 else ''}, {roughly(seconds)} of speech"
        return f"{sets}; the work takes {roughly(seconds * cost)}." if cost else f"{sets}."


def editions_for(corpus: Corpus, by: Any) -> QuerySet[Edition]:
    """The editions of a corpus that this person organises, the newest first."""
    return managed_editions_for(by).filter(corpus=corpus).order_by("-created_at", "-pk")


def offer_on(corpus: Corpus, by: Any) -> Offer:
    """What this person may choose from on this corpus."""
    known = {method.name: method for method in methods()}
    return Offer(
        rows=data_set_table(corpus),
        known=known,
        missing={name: missing_of(method) for name, method in known.items()},
        paces=paces(),
        measuring=measuring_per_second(),
        editions=list(editions_for(corpus, by)),
        trials=trials_under_way(corpus),
    )
