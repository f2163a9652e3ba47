"""What the page shows that uploads an archive."""

from __future__ import annotations

import re
from shlex import quote
from typing import Any
from urllib.parse import urlencode

from django.http import Http404, HttpRequest
from django.urls import reverse
from django.utils import timezone

from portal.challenges.models import Edition
from portal.challenges.rules import Phase, submission_phase
from portal.submissions.models import System, Upload
from portal.submissions.rules import ARCHIVE_ENDINGS, archive_words
from portal.submissions.uploads import submission_refusal, unfinished_uploads, used_submissions
from portal.teams.models import Team
from portal.teams.selectors import team_of, teams_for


def upload_page(request: HttpRequest, edition: Edition) -> dict[str, Any]:
    """For a member their team; an organizer chooses one, or none for a baseline."""
    user = request.user
    is_organizer = edition.organizers.filter(pk=user.pk).exists()
    team = _chosen_team(request, edition)
    context = {"edition": edition, "team": team, "is_organizer": is_organizer}
    if team is None and not is_organizer:
        return context | {"is_stranger": True}
    now = timezone.now()
    systems = (
        System.objects.filter(edition=edition, team=team).order_by("-kind", "label").prefetch_related("submissions")
    )
    wanted = next((one for one in systems if one.name == request.GET.get("system")), None)
    return context | {
        "teams": teams_for(user).filter(edition=edition, state=Team.State.APPROVED) if is_organizer else [],
        "refusal": submission_refusal(edition, team, by=user, now=now),
        "is_late": team is not None and submission_phase(edition, now) in {Phase.LATE, Phase.CLOSED},
        "systems": [(system, _versions(system)) for system in systems],
        "wanted": wanted.name if wanted else "",
        "terminal": _terminal(request, edition, team, wanted or next(iter(systems), None)),
        "uploads": unfinished_uploads(edition, team),
        "used": used_submissions(team) if team is not None else None,
        "endings": ",".join(ARCHIVE_ENDINGS),
        "formats": archive_words(),
        "no_upload": "00000000-0000-0000-0000-000000000000",
    }


def _terminal(request: HttpRequest, edition: Edition, team: Team | None, system: System | None) -> dict[str, Any]:
    """The lines for a shell: a further version of the system that is offered first, or else a new one.

    `expected`: where the file for `vp verify` without a connection lies; empty while the team is not approved.
    """
    is_named = team is not None and "team" in request.GET and team != team_of(request.user, edition)
    sender = f" --team {team.label}" if team is not None and is_named else ""
    archive = f"archive.zip --edition {edition.name}"
    new = " --title NAME" if team is None else " --kind primary" if system else ""
    verified = f" --system {quote(str(system))}" if system else ""
    lines = [
        f"vp login --server {request.build_absolute_uri('/').rstrip('/')}",
        f"vp verify {archive}{verified}",
        f"vp upload {archive}{sender}{verified or new}",
    ]
    is_told = team is None or team.state == Team.State.APPROVED
    query = f"?{urlencode({'system': system.name})}" if system else ""
    return {
        "lines": lines,
        "system": system,
        "another": f"vp upload {archive}{sender}{new}" if system else "",
        "expected": f"{reverse('api:expected', args=[edition.name])}{query}" if is_told else "",
    }


def address_of_page(upload: Upload) -> str:
    """The page on which an unfinished upload stands."""
    address = reverse("submissions:new", args=[upload.edition.name])
    return f"{address}?{urlencode({'team': upload.team_id})}" if upload.team_id else f"{address}?team=none"


def _chosen_team(request: HttpRequest, edition: Edition) -> Team | None:
    wanted = request.GET.get("team", "")
    if wanted == "none":
        return None
    if not wanted:
        return team_of(request.user, edition)
    teams = teams_for(request.user).filter(edition=edition)
    found = teams.filter(pk=int(wanted)).first() if re.fullmatch(r"[0-9]{1,9}", wanted) else None
    if found is None:
        raise Http404
    return found


def _versions(system: System) -> str:
    count = len(system.submissions.all())
    return "nothing submitted yet" if not count else f"{count} version{'' if count == 1 else 's'} so far"
