"""What listeners said by the API: what each address answers, and to whom."""

import csv
import io

import pytest
from django.utils import timezone

from listening.analysis.tables import ABOUT_LISTENERS, ABOUT_UTTERANCES, BY_SCORES, COMMON
from portal.submissions.models import Submission
from tests.listening.results.published import make_heard_study
from tests.portal.api.calls import Api
from tests.portal.factories import make_organizer
from tests.portal.leaderboards import make_leaderboard

pytestmark = pytest.mark.django_db
PUBLIC = {one.name for one in (*BY_SCORES, *COMMON)} - ABOUT_LISTENERS - ABOUT_UTTERANCES


@pytest.fixture
def edition():
    """A published one with the study `heard`."""
    edition = make_leaderboard(organizers=[make_organizer()], published_at=timezone.now(), is_listed=True)
    found = Submission.objects.filter(system__edition=edition, system__team__isnull=False).select_related("system")
    make_heard_study(edition, list(found.order_by("system__label")), name="heard")
    return edition


def names_in(tables):
    return {path.partition("/")[2] for path in tables}


def test_results_hold_the_tables_that_each_role_may_see(edition):
    member = edition.systems.get(label="T01-p1").team.memberships.first().user
    people = {"visitor": None, "member": member, "organizer": edition.organizers.get()}
    content = {who: Api(user).get("studies/heard/results").json() for who, user in people.items()}
    assert names_in(content["visitor"]["tables"]) == PUBLIC
    assert names_in(content["member"]["tables"]) == PUBLIC | ABOUT_UTTERANCES
    assert names_in(content["organizer"]["tables"]) == PUBLIC | ABOUT_UTTERANCES | ABOUT_LISTENERS
    table = content["member"]["tables"]["raw/utterances"]
    place = table["columns"].index("system")
    assert {row[place] for row in table["rows"]} == {"T01-c1", "T01-p1"}


def test_table_comes_with_the_meaning_of_its_columns_and_as_csv(edition):
    content = Api(None).get("studies/heard/results/normalised/detection").json()
    columns = {one["name"]: one["meaning"] for one in content["columns"]}
    assert columns["eer"] == "interpolated on the polygon of the DET curve"
    assert len(content["rows"][0]) == len(content["columns"])
    response = Api(None).get("studies/heard/results/normalised/detection?format=csv")
    assert response["Content-Type"].startswith("text/csv")
    rows = list(csv.DictReader(io.StringIO(response.content.decode())))
    place = list(columns).index("eer")
    assert [float(row["eer"]) for row in rows] == [row[place] for row in content["rows"]]
