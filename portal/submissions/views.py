"""Pages of submissions: the list of an edition, one with its progress and report, what differs between two; uploads.

The page that uploads an archive is one of them, and what can be done with unfinished uploads there; the bytes come by
tus (`portal.api.tus`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast
from uuid import UUID

from django.contrib import messages
from django.http import FileResponse, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone

from common.errors import NotPossible
from portal.accounts.access import member_action, member_page, member_read, organizer_read
from portal.challenges.selectors import edition_for
from portal.core.downloads import as_download, csv_response
from portal.core.signed_urls import open_stored
from portal.jobs.pages import reload_page
from portal.submissions import pages, services
from portal.submissions.diff import compare_submissions, difference_rows
from portal.submissions.models import Submission, SubmittedDocument
from portal.submissions.pages import address_of_page, upload_page
from portal.submissions.resumable_uploads import abandon_upload, find_import, submit_again
from portal.submissions.selectors import (
    document_for,
    load_report,
    load_stored_report,
    managed_submission_for,
    relation_to,
    submission_for,
    upload_for,
)


@member_read
def submission_list(request: HttpRequest, edition: str) -> HttpResponse:
    """Show what was submitted to an edition: everything for its organizers, their own for a team."""
    chosen = edition_for(request.user, edition)
    return render(request, "submissions/list.html", pages.list_page(request, chosen))


@member_read
def submission_detail(request: HttpRequest, pk: int) -> HttpResponse:
    submission = submission_for(request.user, pk)
    return render(request, "submissions/detail.html", pages.detail_page(request, submission))


@member_read
def submission_progress(request: HttpRequest, pk: int) -> HttpResponse:
    """Show the live part of `submission_detail`; when check or all work has ended, the whole page loads again."""
    submission = submission_for(request.user, pk)
    progress = pages.summarize_progress(submission)
    has_checked = request.GET.get("of") == "check" and progress.check is None
    if progress.is_active and not has_checked:
        return render(request, "submissions/_progress.html", {"submission": submission, "progress": progress})
    return reload_page()


@member_read
def report_csv(request: HttpRequest, pk: int) -> HttpResponse:
    submission = submission_for(request.user, pk)
    return csv_response(f"{file_stem(submission)}-report.csv", load_report(submission).csv_rows())


@member_read
def report_json(request: HttpRequest, pk: int) -> HttpResponse:
    submission = submission_for(request.user, pk)
    response = HttpResponse(load_stored_report(submission), content_type="application/json")
    return as_download(response, f"{file_stem(submission)}-report.json")


@member_read
def submission_diff(request: HttpRequest, pk: int, other: int) -> HttpResponse:
    """Show what differs between any two submissions that this person may see."""
    both = submission_for(request.user, pk), submission_for(request.user, other)
    return render(request, "submissions/diff.html", pages.diff_page(*both))


@member_read
def diff_csv(request: HttpRequest, pk: int, other: int) -> HttpResponse:
    before, after = submission_for(request.user, pk), submission_for(request.user, other)
    rows = difference_rows(compare_submissions(before, after))
    return csv_response(f"{file_stem(before)}-to-{file_stem(after)}.csv", rows)


@member_read
def document(request: HttpRequest, pk: int, document: int) -> HttpResponse:
    """Send a document as it was sent: to be saved, never shown, because a stranger wrote it."""
    return send_document(document_for(request.user, pk, document))


def send_document(chosen: SubmittedDocument) -> HttpResponse:
    """Send the file of a document as an answer that no browser shows or guesses at."""
    response = FileResponse(
        open_stored(chosen.key),
        as_attachment=True,
        filename=file_name(chosen),
        content_type="application/octet-stream",
    )
    response["X-Content-Type-Options"] = "nosniff"
    return cast("HttpResponse", response)


def file_name(chosen: SubmittedDocument) -> str:
    """Return the name under which a document is saved: that of a description says of which system, such as T02-p1."""
    if chosen.kind == SubmittedDocument.Kind.DESCRIPTION:
        return f"{chosen.submission.system}-description.pdf"
    return chosen.path.rpartition("/")[2]


@member_page
def withdraw(request: HttpRequest, pk: int) -> HttpResponse:
    """Show what goes with a withdrawal, and why it is not possible; withdraw."""
    submission = submission_for(request.user, pk)
    relation = relation_to(request.user, submission.system)
    if request.method != "POST":
        return pages.ask_to_withdraw(request, submission, relation)
    return _act(request, submission, services.withdraw, f"{submission} is withdrawn.", relation=relation)


@member_action
def check_again(request: HttpRequest, pk: int) -> HttpResponse:
    return _act(request, managed_submission_for(request.user, pk), services.check_again)


@member_action
def evaluate_again(request: HttpRequest, pk: int) -> HttpResponse:
    return _act(request, managed_submission_for(request.user, pk), services.evaluate_again)


@member_action
def release(request: HttpRequest, pk: int) -> HttpResponse:
    return _act(request, managed_submission_for(request.user, pk), services.release)


def _act(
    request: HttpRequest, submission: Submission, service: Callable[..., Any], said: str = "", **given: Any
) -> HttpResponse:
    """Change a submission; its page then shows the state it has come to."""
    try:
        service(submission=submission, by=request.user, **given)
        if said:
            messages.success(request, said)
    except NotPossible as reason:
        messages.error(request, str(reason))
    return redirect(submission)


def file_stem(submission: Submission) -> str:
    """Return the beginning of the names of files about a submission, such as ``vpc2022-t11-p1-v2``."""
    return f"{submission.system.name}-v{submission.version}"


@member_read
def new_submission(request: HttpRequest, edition: str) -> HttpResponse:
    """Submit an archive for a team, or as a baseline."""
    chosen = edition_for(request.user, edition)
    return render(request, "submissions/new.html", upload_page(request, chosen))


@organizer_read
def upload_corpus(request: HttpRequest) -> HttpResponse:
    """Upload the archive of a corpus; its import is a job."""
    return render(request, "corpora/upload.html", pages.upload_corpus_page(request))


@member_action
def submit_upload_again(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Make the submission, or start the import, that was refused when the upload was complete."""
    upload = upload_for(request.user, pk)
    try:
        done = submit_again(upload=upload, now=timezone.now(), by=request.user)
        return redirect(done.submission if done.edition_id else find_import(done) or "jobs:list")
    except NotPossible as error:
        messages.error(request, str(error))
    return redirect(address_of_page(upload))


@member_action
def discard_upload(request: HttpRequest, pk: UUID) -> HttpResponse:
    upload = upload_for(request.user, pk)
    try:
        abandon_upload(upload=upload, by=request.user)
        messages.success(request, f"The upload of {upload.file_name} is discarded.")
    except NotPossible as error:
        messages.error(request, str(error))
    return redirect(address_of_page(upload))
