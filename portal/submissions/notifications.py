"""What teams and organizers are told of a submission by mail; what is told of its numbers is with the evaluation."""

from __future__ import annotations

from typing import Any

from common.problems import Severity
from portal.accounts.rules import NotificationKind
from portal.core.mail import render_mail
from portal.submissions.models import Submission
from portal.teams.notifications import notify_organizers, notify_team

EXAMPLES_IN_MAIL = 10


def counts_in_words(submission: Submission) -> str:
    """Return counts such as ``2 errors, 1 warning, 14 notes.``"""
    counts = (("error", submission.errors), ("warning", submission.warnings), ("note", submission.notes))
    told = [f"{count:,} {word}{'' if count == 1 else 's'}" for word, count in counts if count]
    return f"{', '.join(told) or 'No problems'}."


def tell_checked(submission: Submission, state: Submission.State) -> None:
    """Tell the team and the organizers what the check of an archive found, by the state that it led to."""
    team = submission.system.team
    if team is None:
        return
    is_refused = state == Submission.State.REFUSED
    causes = [cause for cause in submission.report_summary if cause["severity"] == Severity.ERROR]
    context = {
        "submission": submission,
        "found": counts_in_words(submission),
        "is_refused": is_refused,
        "causes": causes[:EXAMPLES_IN_MAIL],
        "more": len(causes) - EXAMPLES_IN_MAIL,
    }
    url = submission.get_absolute_url()
    mail = render_mail(f"submissions/mail/{state}.txt", context)
    notify_team(
        team=team, kind=NotificationKind.REFUSED if is_refused else NotificationKind.VALIDATED, mail=mail, url=url
    )
    mail = render_mail("submissions/mail/checked.txt", context)
    notify_organizers(team=team, kind=NotificationKind.CHECKED, mail=mail, url=url, besides=submission.submitted_by)


def tell_withdrawn(submission: Submission, *, by: Any) -> None:
    """Tell the team and the organizers that a submission was taken back."""
    if (team := submission.system.team) is not None:
        mail = render_mail("submissions/mail/withdrawn.txt", {"submission": submission, "by": by or "The portal"})
        for notify in (notify_team, notify_organizers):
            url, kind = submission.get_absolute_url(), NotificationKind.WITHDRAWN
            notify(team=team, kind=kind, mail=mail, url=url, besides=by)


def tell_released(submission: Submission, what: str, *, by: Any) -> None:
    """Tell the team that its submission stands on the leaderboard, or what it offered is public."""
    if (team := submission.system.team) is not None:
        mail = render_mail(f"submissions/mail/{what}.txt", {"submission": submission})
        url = submission.system.get_absolute_url()
        notify_team(team=team, kind=NotificationKind.RELEASED, mail=mail, url=url, besides=by)


def tell_offered(submission: Submission, *, by: Any) -> None:
    """Tell the organizers that a team offers samples or its description to everybody."""
    system = submission.system
    if system.team is not None:
        mail = render_mail("submissions/mail/offered.txt", {"submission": submission})
        url = f"{system.get_absolute_url()}?version={submission.version}"
        notify_organizers(team=system.team, kind=NotificationKind.OFFERED, mail=mail, url=url, besides=by)
