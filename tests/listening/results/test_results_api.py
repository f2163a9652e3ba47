"""What listeners said by the API: what each address answers, and to whom."""

import csv
import io

import pytest
from django.utils import timezone

from listening.analysis.tables import ABOUT_LISTENERS, ABOUT_UTTERANCES, BY_SCORES, COMMON
from listening.app.models import Study
from portal.submissions.models import Submission
from tests.listening.results.published import make_heard_study
from tests.portal.api.calls import Api
from tests.portal.factories import make_operator, make_organizer, make_user
from tests.portal.leaderboards import make_leaderboard

pytestmark = pytest.mark.django_db
PUBLIC = {one.name for one in (*BY_SCORES, *COMMON)} - ABOUT_LISTENERS - ABOUT_UTTERANCES


@pytest.fixture
def organizer():
    return make_organizer()


@pytest.fixture
def edition(organizer):
    return make_leaderboard(organizers=[organizer], published_at=timezone.now(), is_listed=True, name="vpc")


@pytest.fixture
def submissions(edition):
    found = Submission.objects.filter(system__edition=edition, system__team__isnull=False).select_related("system")
    return list(found.order_by("system__label"))


@pytest.fixture
def member(submissions):
    """Of the team of the first two systems."""
    return submissions[0].system.team.memberships.first().user


def names_in(tables):
    return {path.partition("/")[2] for path in tables}


def test_results_hold_the_tables_that_each_role_may_see(edition, organizer, member, submissions):
    make_heard_study(edition, submissions, name="heard")
    content = {
        who: Api(user).get("studies/heard/results").json()
        for who, user in {
            "visitor": None,
            "member": member,
            "organizer": organizer,
        }.items()
    }
    assert names_in(content["visitor"]["tables"]) == PUBLIC
    assert names_in(content["member"]["tables"]) == PUBLIC | ABOUT_UTTERANCES
    assert names_in(content["organizer"]["tables"]) == PUBLIC | ABOUT_UTTERANCES | ABOUT_LISTENERS
    table = content["member"]["tables"]["raw/utterances"]
    place = table["columns"].index("system")
    assert {row[place] for row in table["rows"]} == {"T01-c1", "T01-p1"}


def test_unpublished_results_look_like_none_to_all_but_organizers(edition, organizer, member, submissions):
    make_heard_study(edition, submissions, name="hidden", is_published=False)
    for user in (member, make_user(), make_organizer(), make_operator()):
        for path in ("results", "results/raw/summary"):
            hidden, unknown = (Api(user).get(f"studies/{name}/{path}") for name in ("hidden", "no-such"))
            assert (hidden.status_code, hidden.json()) == (404, unknown.json())
    assert Api(None).get("studies/hidden/results").status_code == 401
    assert Api(organizer).get("studies/hidden/results").json()["study"]["name"] == "made-up"


def test_open_study_has_no_results_for_anybody(edition, organizer, submissions):
    study = make_heard_study(edition, submissions, name="open", is_published=False)
    Study.objects.filter(pk=study.pk).update(state=Study.State.OPEN)
    assert Api(organizer).get("studies/open/results").status_code == 404
    assert Api(organizer).get("editions/vpc/studies/").json()["count"] == 0


def test_table_comes_with_the_meaning_of_its_columns_and_as_csv(edition, submissions):
    make_heard_study(edition, submissions, name="heard")
    content = Api(None).get("studies/heard/results/normalised/detection").json()
    columns = {one["name"]: one["meaning"] for one in content["columns"]}
    assert columns["eer"] == "interpolated on the polygon of the DET curve"
    assert len(content["rows"][0]) == len(content["columns"])
    response = Api(None).get("studies/heard/results/normalised/detection?format=csv")
    assert response["Content-Type"].startswith("text/csv")
    rows = list(csv.DictReader(io.StringIO(response.content.decode())))
    place = list(columns).index("eer")
    assert [float(row["eer"]) for row in rows] == [row[place] for row in content["rows"]]
