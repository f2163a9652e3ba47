"""Names as long as they may be and without a place to break them: no page may scroll sideways for them."""

import pytest
from django.utils import timezone

from portal.accounts.tokens import create_token
from portal.submissions.models import Submission
from tests.portal.factories import make_corpus, make_edition, make_organizer, make_team, make_team_system, make_user
from tests.portal.submissions.test_pages import make_full

pytestmark = pytest.mark.django_db(transaction=True)
ADDRESSES = (
    "/",
    "/corpora/",
    "/systems/",
    "/account/tokens/",
    "/editions/{edition}/",
    "/editions/{edition}/teams/",
    "/editions/{edition}/submissions/",
    "/editions/{edition}/submit/?team={team}",
    "/editions/{edition}/audit/",
    "/teams/{team}/",
    "/submissions/{first}/",
    "/submissions/{first}/diff/{second}/",
)


@pytest.fixture
def organizer():
    return make_organizer(name="O" * 120)


@pytest.fixture
def names(organizer):
    corpus = make_corpus("c" * 50)
    edition = make_edition(
        corpus, organizers=[organizer], name="e" * 40, title="T" * 120, scores_required=False, description="D" * 500
    )
    team = make_team(edition, owner=make_user(name="N" * 120), name="W" * 80, affiliation="A" * 200, contact="C" * 120)
    make_team(edition, name="V" * 80, state="waiting", number=None)
    system = make_team_system(team, title="S" * 120)
    first, second = make_full(system), make_full(system, state=Submission.State.ACCEPTED)
    first.report_summary[0]["examples"] = ["F" * 400]
    first.save()
    second.documents.create(path=f"{'P' * 200}/{'Q' * 199}", kind="results", key="content/00/0.document", bytes=1)
    create_token(user=organizer, name="K" * 80, scopes=["read"], expires_at=timezone.now())
    return {"edition": edition.name, "team": team.pk, "first": first.pk, "second": second.pk}


def test_no_page_scrolls_sideways(new_page, organizer, names, check_page):
    page = new_page(organizer)
    for number, address in enumerate(ADDRESSES):
        page.goto(address.format(**names))
        check_page(page, f"long-names-{number}", schemes=("light",), with_axe=False)
