"""The upload page by role, and the actions it offers for unfinished uploads."""

import re
from datetime import timedelta
from html import unescape

import pytest
from django.urls import reverse
from django.utils import timezone
from django.utils.html import strip_tags

from portal.submissions.models import Submission, Upload
from portal.submissions.resumable_uploads import upload_path
from portal.teams.models import Team
from tests.command_line import read_words
from tests.pages import read_page
from tests.portal.factories import make_edition, make_submission, make_team, make_team_system

pytestmark = pytest.mark.django_db
PAGE = "/editions/vpc/submit/"


@pytest.fixture
def edition(organizer):
    return make_edition(name="vpc", organizers=[organizer])


@pytest.fixture
def team(edition):
    return make_team(edition, name="Quiet Voices", number=11)


def owner_of(team):
    return team.memberships.get(role="owner").user


def upload_of(team, **fields):
    defaults = {
        "edition": team.edition,
        "team": team,
        "file_name": "voices.zip",
        "size": 10,
        "offset": 4,
        "system_kind": "primary",
        "created_by": owner_of(team),
        "expires_at": timezone.now() + timedelta(days=1),
    }
    upload = Upload.objects.create(**defaults | fields)
    upload_path(upload).write_bytes(b"x" * upload.offset)
    return upload


def page(client, user, address=PAGE):
    client.force_login(user)
    answer = client.get(address)
    assert answer.status_code == 200
    return read_page(answer)


def test_member_meets_the_systems_and_uploads_of_the_own_team_only(client, team, edition):
    rival = make_team(edition, name="Loud Voices")
    for one in (team, rival):
        make_submission(make_team_system(one, title=f"System of {one}"))
        upload_of(one, file_name=f"{one}.zip")
    text = page(client, owner_of(team))
    assert "System of Quiet Voices" in text
    assert "Quiet Voices.zip" in text
    assert "Loud Voices" not in text
    assert client.get(f"{PAGE}?team={rival.pk}").status_code == 404
    assert client.get(f"{PAGE}?team=nonsense").status_code == 404


def commands(text):
    return [unescape(strip_tags(line)) for line in re.findall(r'<div class="command"><code>(.+?)</code>', text)]


def test_terminal_lines_are_what_vp_understands(client, team):
    """Every word of them is an argument of the program."""
    make_submission(make_team_system(team))
    for line in commands(page(client, owner_of(team))):
        if not line.startswith("vp "):
            continue
        words = line.split()[1:]
        assert read_words(words)


def test_complete_upload_is_submitted_once_its_reason_is_gone(client, team):
    upload = upload_of(team, offset=10, state="refused", refusal="The team has used all.")
    address = reverse("submissions:submit-upload", args=[upload.pk])
    Team.objects.update(state="withdrawn")
    client.force_login(owner_of(team))
    answer = client.post(address, follow=True)
    assert "is withdrawn and cannot send archives" in answer.content.decode()
    Team.objects.update(state="approved")
    answer = client.post(address)
    assert answer.url == Submission.objects.get().get_absolute_url()
