"""Flags that only an analysis can find: listeners who agree with nobody, or are far from the others on the bridge set.

After each analysis they stand beside those of the monitor, so that the same reversible rules leave such sessions out.
They are final for a session that is left out: without it nobody looks at it again. Unlike the flags of the monitor,
new ones are caught by no standing rule: leaving listeners out moves the means of the others, and rules that followed
by themselves would go on until hardly anybody is left. Public: `write_flags`, `screen_out`, `FLAG_OF_RULE`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db import transaction

from listening.analysis.tables import Results
from listening.models import Analysis, ExclusionRule, Flag, Study
from listening.monitor.coverage import standing_exclusion
from listening.monitor.exclusions import create_rule
from listening.results.collecting import keys_of_sessions
from portal.jobs.services import NotPossible

# Rules of the analysis look at people, those of the monitor at sessions: what both look for has two flags.
FLAG_OF_RULE: Mapping[str, str] = {
    "disagrees": Flag.Kind.DISAGREES,
    "bridge-outlier": Flag.Kind.BRIDGE_OUTLIER,
    "vote-outliers": Flag.Kind.VOTE_OUTLIERS,
    "low-variance": Flag.Kind.EVEN_RATINGS,
    "gold-missed": Flag.Kind.CONTROLS_MISSED,
}
UNKNOWN = "No rule of that name can leave sessions out."


def write_flags(study: Study, results: Results) -> int:
    """Write down which sessions the screening rules of an analysis catch, and which no longer; how many it catches."""
    found = _caught(results)
    pks = keys_of_sessions(study)
    excluded = set(study.sessions.filter(standing_exclusion()).values_list("pk", flat=True))
    looked_at = {pks[key] for key, _ in found if key in pks} - excluded
    caught = {(pks[key], flag): data for (key, flag), data in found.items() if data and pks.get(key) in looked_at}
    kept = Flag.objects.filter(session__study=study, kind__in=Flag.FOUND_BY_ANALYSIS, session__in=looked_at)
    standing = {(one.session_id, one.kind): one for one in kept}
    for place, flag in standing.items():
        flag.data = caught.get(place, flag.data) | {"holds": place in caught}
    new = [
        Flag(session_id=session, kind=kind, data=data | {"holds": True})
        for (session, kind), data in caught.items()
        if (session, kind) not in standing
    ]
    Flag.objects.bulk_update(standing.values(), ["data"])
    Flag.objects.bulk_create(new, ignore_conflicts=True)
    return len(caught)


@transaction.atomic
def screen_out(*, study: Study, by: Any, rule: str, reason: str) -> tuple[ExclusionRule, Analysis]:
    """Leave out, reversibly, whom a screening rule catches in the newest analysis, and start the next analysis.

    Args:
        rule: its name in the table ``screening``.

    Raises:
        NotPossible: there is no such rule, no reason is given, it stands already, or the study is being analysed.
    """
    from listening.results.analysing import start_analysis
    from listening.results.selectors import current_analysis

    if rule not in FLAG_OF_RULE:
        raise NotPossible(UNKNOWN)
    before = current_analysis(study)
    made = create_rule(study=study, by=by, reason=reason, flag=FLAG_OF_RULE[rule], offers_block_again=False)
    return made, start_analysis(study, by, before.chosen if before is not None else None)


def _caught(results: Results) -> dict[tuple[str, str], dict[str, Any]]:
    """By session and flag what the rule found; empty where it looked and did not catch."""
    table = results.table("common", "screening")
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for row in table.records() if table is not None else ():
        flag = FLAG_OF_RULE.get(str(row["rule"]))
        if flag is None:
            continue
        data = {name: row[name] for name in ("rule", "task", "value", "limit") if row[name] is not None}
        for session in str(row["session"] or "").split():
            place = session, flag
            found[place] = data if row["is_caught"] else found.get(place, {})
    return found
