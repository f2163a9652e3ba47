"""Taking part ends and everything that was answered is deleted: from any page, or afterwards by code.

What remains is that there was a session, in which language, when it and its trials began and ended, at which step and
after how many trials it was left, and its codes; nothing in it leads to a person or an answer.
The hash of its network address stays for the rest of its day, or places could be had in bulk by withdrawing.
In the same transaction every analysis of the study is marked, and from then on nothing of single people is shown of it.
Published results that would rest on fewer people than protect each other are taken back with it.
Right after, its inputs go, and its tables and figures about listeners and about utterances, since an utterance may have
been rated by one person alone; figures over many people stay, as they may be published, those over few go too.
The files are deleted at once,
or by the scheduler where that failed; the audit log then tells which ones.
"""

from __future__ import annotations

import logging
import secrets
from dataclasses import replace
from datetime import datetime
from typing import Any

from django.core.files.storage import default_storage
from django.core.mail import EmailMessage
from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from listening.analysis.figures import list_figures
from listening.analysis.tables import ABOUT_LISTENERS, ABOUT_UTTERANCES, Results
from listening.app.models import Analysis, Flag, Participant, Session, Study, read_withdrawal_code
from listening.app.results.inputs import compute_basis
from listening.app.results.rules import FEWEST_PEOPLE, notes_on_nobody, rows_for_everybody
from listening.app.results.services import delete_unused_files, take_back_of_few
from listening.app.sessions.block_leases import end_session
from listening.app.studies.rules import kept_until
from listening.app.studies.selectors import knows_people, lock_study, organizers_of
from portal.core import audit
from portal.core.mail import absolute, render_mail
from portal.core.models import AuditEvent
from portal.core.storage import store_bytes

log = logging.getLogger(__name__)
DELETED_WITH_A_SESSION = ("answers", "plays", "serves", "events", "screening_results", "flags")
ABOUT_SINGLES = ABOUT_LISTENERS | ABOUT_UTTERANCES
NOTE = (
    "Somebody withdrew after this was computed. Their answers are deleted, and with them everything about single "
    "listeners and utterances. The figures over all listeners were computed before that."
)
NOTE_OF_FEW = (
    "Somebody withdrew after this was computed. Their answers are deleted, and with them all figures, since these "
    "rested on too few people."
)


def withdraw(session: Session, now: datetime) -> int:
    """Delete what this person answered in the study and free their block; how many answers there were."""
    with transaction.atomic():
        # First, as everywhere: results are not published meanwhile.
        study = Study.objects.select_for_update(no_key=True, of=("self",)).get(pk=session.study_id)
        participant = Participant.objects.select_for_update(no_key=True).get(pk=session.participant_id)
        locked = participant.sessions.select_for_update(no_key=True, of=("self",)).select_related("study", "block")
        mine = list(locked.filter(is_preview=session.is_preview).order_by("pk"))
        deleted = sum(_empty(one, now) for one in mine)
        participant.platform_id, participant.person_key = "", f"withdrawn-{secrets.token_hex(24)}"
        participant.save(update_fields=["platform_id", "person_key"])
        audit.record("study.session_withdrawn", session.study, session=session.pk, answers=deleted)
        if deleted and not session.is_preview:
            erase_answers(study)
            take_back_of_few(study)
    session.refresh_from_db()
    return deleted


def withdraw_by_code(code: str, now: datetime) -> Session | None:
    """Withdraw whose code this is, however it is typed; None where it is nobody's."""
    session = Session.objects.select_related("study").filter(withdrawal_code=read_withdrawal_code(code)).first()
    if session is not None and session.state != Session.State.WITHDRAWN:
        withdraw(session, now)
    return session


def _empty(session: Session, now: datetime) -> int:
    answers = session.answers.count()
    trials = session.answers.filter(task=session.study.last_asked_key).count()  # where people stop is counted by it
    for name in DELETED_WITH_A_SESSION:
        getattr(session, name).all().delete()
    end_session(session, Session.State.WITHDRAWN, now, trials=trials)
    # Its code stays: who finished and was promised pay is paid, and a random code names nobody.
    session.questionnaire, session.platform_data, session.device, session.texts = {}, {}, {}, {}
    session.tab, session.skips = "", []
    session.block = session.consented_at = session.heard_until = None
    told = ("questionnaire", "platform_data", "device", "texts", "tab", "skips")
    session.save(update_fields=[*told, "block", "consented_at", "heard_until"])
    return answers


def erase_answers(study: Study) -> None:
    """Mark the analyses of a study of which somebody withdrew; in the transaction of the withdrawal."""
    marked = study.analyses.filter(erased_at=None).update(erased_at=timezone.now())
    # An analysis that ended a moment ago may have flagged the person who withdraws; one that ends later finds itself
    # marked.
    gone = Flag.objects.filter(session__study=study, session__state=Session.State.WITHDRAWN)
    gone.filter(kind__in=Flag.FOUND_BY_ANALYSIS).delete()
    if marked:
        transaction.on_commit(lambda: finish_erasing(study), robust=True)


def finish_erasing(study: Study | None = None) -> int:
    """Delete what is left of erased analyses, of one study or of all; of how many."""
    pending = Analysis.objects.filter(~Q(inputs="") | ~Q(leftovers=[]), erased_at__isnull=False)
    found = list(pending.filter(study=study) if study else pending)
    for analysis in found:
        _strip(analysis.pk)
        _delete_leftovers(analysis.pk)
    return len(found)


@transaction.atomic
def _strip(pk: int) -> None:
    """Take from an analysis what is about single people; the files themselves are deleted later."""
    analysis = Analysis.objects.select_for_update(of=("self",)).get(pk=pk)
    before = {analysis.inputs, analysis.results, *analysis.figures.values()}
    if analysis.results and analysis.inputs:
        with default_storage.open(analysis.results) as stored:
            kept = _without_singles(Results.from_json(stored.read()))
        analysis.results = store_bytes(kept.as_json().encode(), ".json")
        names = {path for figure in list_figures(kept) for path in figure.files}
        analysis.figures = {name: key for name, key in analysis.figures.items() if name in names}
    analysis.inputs = ""
    after = {analysis.results, *analysis.figures.values()}
    analysis.leftovers = sorted({*analysis.leftovers, *filter(None, before - after)})
    analysis.save(update_fields=["inputs", "results", "figures", "leftovers"])


def _delete_leftovers(pk: int) -> None:
    analysis = Analysis.objects.select_related("study").get(pk=pk)
    gone = delete_unused_files(analysis.leftovers)
    with transaction.atomic():
        if Analysis.objects.filter(pk=pk, leftovers=analysis.leftovers).update(leftovers=[]) and analysis.leftovers:
            audit.record("study.analysis_erased", analysis.study, analysis=pk, files=gone)


def _without_singles(results: Results) -> Results:
    if results.counts.get("listeners", 0) < FEWEST_PEOPLE:
        return replace(results, tables={}, remarks=[NOTE_OF_FEW])
    kept = {path: one for path, one in results.tables.items() if one.name not in ABOUT_SINGLES}
    tables = {path: rows_for_everybody(one) for path, one in kept.items()}
    return replace(results, tables=tables, remarks=[*notes_on_nobody(results), NOTE])


@transaction.atomic
def forget_people(*, study: Study, by: Any) -> int:
    """Delete what leads to the evaluators of a closed study: names on platforms, devices, what a platform sent.

    Answers stay, those of one person still together, under a key that nothing leads back from. An analysis that
    fitted the study fits it afterwards. Returns how many sessions there were.

    Raises:
        NotPossible: the study is not closed.
    """
    study = lock_study(study, [Study.State.CLOSED], "emptied of personal data")
    before = compute_basis(study)
    for participant in study.participants.all():
        participant.platform_id, participant.person_key = "", f"anonymous-{secrets.token_hex(24)}"
        participant.save(update_fields=["platform_id", "person_key"])
    count = study.sessions.update(platform_data={}, device={}, network="", tab="")
    study.analyses.filter(basis=before).update(basis=compute_basis(study))
    audit.record("study.people_forgotten", study, actor=by, sessions=count)
    return count


def remind_of_people(now: datetime) -> int:
    """Mail the organizers of studies whose promised time is over and whose evaluators are still known; how many."""
    told = AuditEvent.objects.filter(action="study.keeping_over").values_list("subject_id", flat=True)
    closed = Study.objects.filter(state=Study.State.CLOSED, keep_months__isnull=False, imported="")
    due = [
        study
        for study in closed.exclude(pk__in=[int(pk) for pk in told]).select_related("edition")
        if (until := kept_until(study)) is not None and until <= now and knows_people(study)
    ]
    return sum(map(_remind, due))


def _remind(study: Study) -> bool:
    """Mail the organizers, and return whether that worked; if not, it is tried again with the next reminders."""
    readers = [person.email for person in organizers_of(study).filter(is_active=True)]
    if not readers:
        return False
    try:
        context = {"study": study, "until": kept_until(study), "address": absolute(study.get_absolute_url())}
        mail = render_mail("listening/mail/keeping_over.txt", context)
        EmailMessage(mail.subject, f"{mail.text}\n", bcc=readers).send()
    except Exception:
        log.exception("No reminder of the people in the listening test %s could be sent", study.name)
        return False
    audit.record("study.keeping_over", study)
    return True
