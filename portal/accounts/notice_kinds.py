"""The kinds of mail that a member of a team or an organizer gets, and which of them can be declined."""

from __future__ import annotations

from enum import StrEnum


class NoticeKind(StrEnum):
    """What a notice is about; its value stands in `User.unwanted_notices` of whoever declined it."""

    VALIDATED = "validated"
    REFUSED = "refused"
    FAILED = "failed"
    FINISHED = "finished"
    PUBLISHED = "published"
    HEARD = "heard"
    REGISTERED = "registered"  # to organizers, as the next
    CHECKED = "checked"
    MEMBERSHIP = "membership"  # always sent: who belongs to a team must know


ALWAYS_SENT = frozenset({NoticeKind.MEMBERSHIP})
TO_ORGANIZERS = frozenset({NoticeKind.REGISTERED, NoticeKind.CHECKED})
# Each kind that can be declined, as the end of the sentence "Mail me when …".
DECLINABLE = {
    NoticeKind.VALIDATED: "an archive of my team has passed its examination",
    NoticeKind.REFUSED: "an archive of my team is refused, with the report of what is wrong",
    NoticeKind.FAILED: "the evaluation of a submission fails",
    NoticeKind.FINISHED: "the numbers of a submission are ready",
    NoticeKind.PUBLISHED: "the board of an edition is published",
    NoticeKind.HEARD: "the results of a listening test with a system of my team are published",
    NoticeKind.REGISTERED: "a team registers for an edition that I organise",
    NoticeKind.CHECKED: "an archive of a team was checked in an edition that I organise",
}
