"""The page that uploads an archive, and what can be done with unfinished uploads there; the bytes come by tus."""

from __future__ import annotations

from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from portal.accounts.access import member_page
from portal.challenges.selectors import edition_for
from portal.submissions.receiving import UploadError
from portal.submissions.selectors import upload_for
from portal.submissions.upload_pages import address_of_page, upload_page
from portal.submissions.uploads import abandon_upload, submit_again


@require_safe
@member_page
def new_submission(request: HttpRequest, edition: str) -> HttpResponse:
    """Upload an archive for a team, or as a baseline."""
    chosen = edition_for(request.user, edition)
    return render(request, "submissions/new.html", upload_page(request, chosen))


@member_page
@require_POST
def submit_upload_again(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Make the submission that was refused when the upload was complete."""
    upload = upload_for(request.user, pk)
    try:
        return redirect(submit_again(upload=upload, now=timezone.now(), by=request.user).submission)
    except UploadError as fault:
        messages.error(request, fault.sentence)
    return redirect(address_of_page(upload))


@member_page
@require_POST
def discard_upload(request: HttpRequest, pk: UUID) -> HttpResponse:
    upload = upload_for(request.user, pk)
    try:
        abandon_upload(upload=upload, by=request.user)
        messages.success(request, f"The upload of {upload.file_name} is discarded.")
    except UploadError as fault:
        messages.error(request, fault.sentence)
    return redirect(address_of_page(upload))
