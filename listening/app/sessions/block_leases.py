"""Who holds which block: one is assigned whole to one session for the time of a lease, and again whole when it is lost.

**Assignment.** A session gets its block with its first trial. One network address holds at most its share of them at
the same time.

**Leases.** The row of the block is the truth: `holder` has it until `lease_expires_at`, and permanently once it is
finished. A heartbeat extends a lease; what is overdue is expired by the scheduler each minute and whenever somebody
needs a block. The end of a session frees or finishes its block and releases its completion code.

**Locks** are always taken in this order: the study (who assigns), a session, a block.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Case, Exists, F, IntegerField, OuterRef, Q, QuerySet, Value, When
from django.db.models.functions import Coalesce

from listening.app.models import Block, Session, SessionEvent, Study
from listening.app.sessions.platforms import release_code
from listening.app.studies.rules import places_for_one_network

# A lease is written again at most this often, however many answers come in.
EXTENDED_EVERY = timedelta(minutes=1)
# So many times the length of a lease an open page extends it without an answer; then the last one runs out.
LEASES_WITHOUT_ANSWER = 2
MOST_OF_A_KIND = 1000
NETWORK_KEPT = timedelta(days=1)
# Why a place was lost, where nobody was away for too long.
CLOSED, OTHER_SUBMISSION = "closed", "other-submission"


@transaction.atomic
def assign_block(session: Session, now: datetime) -> Block | None:
    """Give the session a block of its own; the one that it holds already, if it does; None while all are taken.

    Blocks that somebody has lost come first, then the waves in their order; a block that the same person has held
    before comes last of all. A preview gets the first block to look at and holds nothing.
    """
    if session.is_preview:
        return _take(session, session.block or session.study.blocks.first())
    study = Study.objects.select_for_update(no_key=True).get(pk=session.study_id)
    held = Block.objects.filter(holder=session).first()
    if held is not None:
        return _take(session, held)
    is_active = Session.objects.filter(pk=session.pk, state=Session.State.ACTIVE).exists()
    if study.state != Study.State.OPEN or not is_active:
        return None
    expire_leases(now, study=study, but=session)
    block = _in_order(study, session).first()
    if block is None:
        return None
    block.holder, block.lease_expires_at = session, now + _length(study)
    block.offers += 1
    block.save(update_fields=["holder", "lease_expires_at", "offers"])
    return _take(session, block)


def has_free_block(study: Study, now: datetime) -> bool:
    """Return whether somebody who came to the trials now would get a block."""
    return study.blocks.filter(Q(holder=None) | Q(lease_expires_at__lte=now), is_finished=False).exists()


def is_complete(study: Study) -> bool:
    """Return whether every block is finished: nobody can get one any more."""
    return not study.blocks.filter(is_finished=False).exists() and study.blocks.exists()


def network_share(study: Study) -> int:
    """Return how many places one network address may hold at once: as the study says, else a quarter of them."""
    return places_for_one_network(study, study.blocks.count())


def is_share_taken(study: Study, network: str, now: datetime) -> bool:
    """Return whether those who came from this address hold all places that it may have."""
    held = study.blocks.filter(holder__network=network, is_finished=False, lease_expires_at__gt=now)
    return bool(network) and held.count() >= network_share(study)


def is_silent(session: Session, now: datetime) -> bool:
    """Return whether nothing was heard of the session for the length of a lease."""
    return now - (session.last_seen_at or session.started_at) >= _length(session.study)


def extend_lease(session: Session, now: datetime) -> None:
    """Let the session keep its block for the whole length of a lease from now; once a minute that is written down.

    In a closed study nobody's lease grows: who is in the middle may finish within the one they have.
    """
    block = session.block
    if block is None or block.holder_id != session.pk or block.is_finished or block.lease_expires_at is None:
        return
    until = now + _length(session.study)
    if session.study.state == Study.State.CLOSED or until - block.lease_expires_at < EXTENDED_EVERY:
        return
    block.lease_expires_at = until
    Block.objects.filter(pk=block.pk, holder=session, is_finished=False).update(lease_expires_at=until)


def is_extension_due(seen_before: datetime | None, now: datetime) -> bool:
    """Return whether a new minute has begun since the session was seen last: then its lease may be extended."""
    return seen_before is None or seen_before.replace(second=0, microsecond=0) != now.replace(second=0, microsecond=0)


def extend_lease_of_open_page(session: Session, now: datetime) -> None:
    """Extend it for a page that says it is still open, unless nothing was answered there for very long."""
    begun = session.heard_until or session.trials_started_at or session.consented_at or session.started_at
    if now - begun < LEASES_WITHOUT_ANSWER * _length(session.study):
        extend_lease(session, now)


def release_block(session: Session, *, finished: bool) -> None:
    """End the session's hold on its block: finished, or whole for the next one. Idempotent.

    In a closed study there is no next one: a block that was finished by then stays so, and with it the count of then.
    """
    held = Block.objects.filter(holder=session)
    if finished:
        held.update(is_finished=True, lease_expires_at=None)
    else:
        held.exclude(study__state=Study.State.CLOSED).update(is_finished=False)
        held.update(holder=None, lease_expires_at=None)


def give_time_back(*, since: datetime, now: datetime) -> None:
    """Let nobody lose a place for the time in which the portal answered nobody."""
    lost = now - since
    held = Block.objects.filter(lease_expires_at__gt=since, is_finished=False, holder__isnull=False)
    held.update(lease_expires_at=F("lease_expires_at") + lost)
    waiting = Session.objects.filter(state=Session.State.ACTIVE, held_block=None, block=None)
    waiting.update(last_seen_at=Coalesce("last_seen_at", "started_at") + lost)


def expire_leases(now: datetime, *, study: Study | None = None, but: Session | None = None) -> int:
    """End the sessions whose lease is over and offer their blocks again; how many. Their answers stay, as partial.

    A session that is just being answered is left for the next time: its answer extends the lease.
    """
    overdue = Block.objects.filter(lease_expires_at__lte=now, is_finished=False, holder__isnull=False)
    if study is not None:
        overdue = overdue.filter(study=study)
    if but is not None:
        overdue = overdue.exclude(holder=but)
    expired = 0
    for block_pk, holder_pk in overdue.values_list("pk", "holder_id"):
        with transaction.atomic():
            # of the session alone: locking what it is joined to would take locks out of their order
            locked = Session.objects.select_for_update(skip_locked=True, of=("self",), no_key=True)
            session = locked.select_related("study").filter(pk=holder_pk).first()
            still = overdue.filter(pk=block_pk, holder=holder_pk).exists()
            if session is None or not still:
                continue
            end_session(session, Session.State.EXPIRED, now)
            release_block(session, finished=False)  # of a session that had ended before, too
            expired += 1
    return expired


def expire_silent(now: datetime) -> int:
    """End the sessions that were left before they had a place; how many. Who has not consented may come back."""
    waiting = Session.objects.filter(state=Session.State.ACTIVE, is_preview=False, consented_at__isnull=False)
    expired = 0
    for found in waiting.filter(held_block=None, block=None).select_related("study"):
        if not is_silent(found, now):
            continue
        with transaction.atomic():
            locked = waiting.select_for_update(skip_locked=True, of=("self",), no_key=True)
            session = locked.filter(pk=found.pk, block=None).first()
            if session is not None and is_silent(session, now):
                end_session(session, Session.State.EXPIRED, now)
                expired += 1
    return expired


def end_sessions(*, study: Study, now: datetime, with_places: bool) -> int:
    """End the sessions of a study that is closed: those without a place, and `with_places` all others; how many."""
    active = Session.objects.filter(study=study, state=Session.State.ACTIVE, is_preview=False)
    ended = active if with_places else active.filter(held_block=None)
    locked = ended.select_for_update(of=("self",), no_key=True).select_related("study").order_by("pk")
    for session in (found := list(locked)):
        end_session(session, Session.State.EXPIRED, now, reason=CLOSED)
    return len(found)


def forget_networks(now: datetime) -> int:
    """Forget where sessions of more than a day ago were begun from, but while they hold a place; of how many."""
    old = Session.objects.filter(started_at__lte=now - NETWORK_KEPT).exclude(network="")
    return old.exclude(state=Session.State.ACTIVE, held_block__isnull=False).update(network="")


# The end of a session --------------------------------------------------------------------------------


def end_session(session: Session, state: str, now: datetime, **told: Any) -> None:
    """End it in this state: finish its block, or free it for the next one, and release the code of its outcome.

    Only a finished session finishes its block. One that is over already can still be withdrawn, which frees its block
    as well; no other end changes an end. `told`: more for its event. The caller holds the session's row in a
    transaction.
    """
    if session.state != Session.State.ACTIVE and state != Session.State.WITHDRAWN:
        return
    left_at = session.step
    session.state, session.step = state, Session.Step.END
    session.ended_at = session.ended_at or now
    session.save(update_fields=["state", "step", "ended_at"])
    release_block(session, finished=state == Session.State.FINISHED)
    note(session, f"ended-{state}", step=left_at, **told)
    release_code(session)


def take_over(session: Session, tab: str) -> None:
    """Let this browser tab write from now on; the one that did so far is told with its next request."""
    if session.tab != tab:
        if session.tab:
            note(session, "taken-over")
        session.tab = tab
        session.save(update_fields=["tab"])


def note(session: Session, kind: str, **data: Any) -> None:
    """Write down something that happened, as the server saw it; what happens without end, only so often."""
    if session.events.filter(kind=kind, is_told=False).count() < MOST_OF_A_KIND:
        SessionEvent.objects.create(session=session, kind=kind, data=data)


def _length(study: Study) -> timedelta:
    return timedelta(minutes=study.lease_minutes)


def _in_order(study: Study, session: Session) -> QuerySet[Block]:
    held_before = Session.objects.filter(participant=session.participant_id, block=OuterRef("pk"))
    first_offer = Case(When(offers=0, then=Value(1)), default=Value(0), output_field=IntegerField())
    return (
        study.blocks.filter(holder=None, is_finished=False)
        .annotate(was_theirs=Exists(held_before), first_offer=first_offer)
        .order_by("was_theirs", "first_offer", "wave", F("number"))
    )


def _take(session: Session, block: Block | None) -> Block | None:
    if block is not None:
        is_other, session.block = session.block_id != block.pk, block
        if is_other:
            session.save(update_fields=["block"])
    return block
