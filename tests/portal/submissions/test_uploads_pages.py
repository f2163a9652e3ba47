"""The upload page by role, and the actions it offers for unfinished uploads."""

import re
from datetime import timedelta
from html import unescape

import pytest
from django.urls import reverse
from django.utils import timezone
from django.utils.html import strip_tags

from portal.client.main import _parser
from portal.submissions.models import Submission, Upload
from portal.submissions.resumable_uploads import upload_path
from portal.teams.models import Team
from tests.pages import read_page
from tests.portal.factories import make_edition, make_organizer, make_submission, make_team, make_team_system

pytestmark = pytest.mark.django_db
PAGE = "/editions/vpc/submit/"


@pytest.fixture
def organizer():
    return make_organizer()


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


def test_page_and_api_say_that_numbers_are_public_at_once(client, team, edition):
    told = "numbers are public as soon as they are computed. From then on, only the organizer can withdraw"
    owner = owner_of(team)
    said = []
    for fields in ({}, {"published_at": timezone.now()}, {"holds_evaluations": True}):
        type(edition).objects.filter(pk=edition.pk).update(**fields)
        said.append(told in " ".join(page(client, owner).split()))
        assert client.get("/api/editions/vpc/").json()["public_at_once"] is said[-1]
    assert said == [False, True, False]


def commands(text):
    return [unescape(strip_tags(line)) for line in re.findall(r'<div class="command"><code>(.+?)</code>', text)]


def test_terminal_lines_for_a_correction_name_the_system(client, team, organizer):
    for label in ("p1", "c1"):
        make_submission(make_team_system(team, label=label))
    system = team.systems.get(label="T11-c1")
    text = page(client, owner_of(team), f"{PAGE}?system={system.name}")
    assert commands(text)[2:] == [
        "vp pack vpc --system T11-c1",
        "vp submit vpc/vpc.zip --edition vpc --system T11-c1",
        "vp submit vpc/vpc.zip --edition vpc --kind primary",
    ]
    expected = f"{reverse('api:expected', args=['vpc'])}?system={system.name}"
    assert expected in text
    assert client.get(expected).json()["inherited"]["system"] == "T11-c1"
    text = page(client, organizer, f"{PAGE}?team={team.pk}&system={system.name}")
    assert commands(text)[3] == "vp submit vpc/vpc.zip --edition vpc --team T11 --system T11-c1"


def test_terminal_lines_are_what_vp_understands(client, team):
    """Every word of them is an argument of the program."""
    make_submission(make_team_system(team))
    for line in commands(page(client, owner_of(team))):
        if not line.startswith("vp "):
            continue
        words = line.split()[1:]
        assert _parser(words).parse_args(words).run


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


def test_discarded_upload_is_gone_from_the_page(client, team, django_capture_on_commit_callbacks):
    upload = upload_of(team)
    client.force_login(owner_of(team))
    with django_capture_on_commit_callbacks(execute=True):
        answer = client.post(reverse("submissions:discard-upload", args=[upload.pk]), follow=True)
    assert "The upload of voices.zip is discarded." in answer.content.decode()
    assert "Unfinished uploads" not in answer.content.decode()
    assert not upload_path(upload).exists()
