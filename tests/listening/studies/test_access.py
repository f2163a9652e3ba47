"""A study belongs to the organizers of its edition, or without one to who made it; for everybody else it looks as if
there were no such study.

Every address under /studies/ that names a study is read and written to by everybody else.
"""

import pytest
from django.test import Client
from django.urls import reverse

from listening.app.models import Study
from tests.listening.edition_factories import add_system, make_edition_with_speech, make_prepared
from tests.listening.factories import make_session
from tests.listening.own_factories import make_own_prepared
from tests.portal.factories import make_operator, make_organizer, make_team, make_user
from tests.portal.test_nobody_else import READ_AND_WRITE, ask, patterns, seen

pytestmark = pytest.mark.django_db

NOT_OF_ONE_STUDY = {"studies:list", "studies:new", "studies:own", "studies:repeat", "studies:import"}
# What there is only once the study is analysed: tests/listening/results/test_result_pages.
OF_RESULTS = {
    "studies:results-listeners",
    "studies:results-system",
    "studies:results-csv",
    "studies:results-json",
    "studies:results-latex",
    "studies:results-figure",
    "studies:results-bundle",
}
SECRETS = ("Unheard voices", "unheard-voices", "T01-p1")


class Place:
    """A study with a session and a rule, its organizer, and everybody else."""

    def __init__(self, kind):
        self.organizer, self.rival, self.owner = make_organizer(), make_organizer(), make_user()
        edition = self.edition = make_edition_with_speech(organizer=self.organizer)
        make_team(edition, owner=self.owner)
        add_system(make_edition_with_speech(organizer=self.rival, systems=0), "T99-p9")
        told = {"name": "unheard-voices", "title": "Unheard voices", "languages": ["en", "ar"]}
        is_own = kind == "own recordings"
        self.study = make_own_prepared(self.organizer, **told) if is_own else make_prepared(edition, **told)
        self.session = make_session(self.study)
        self.rule = self.study.exclusion_rules.create(session=self.session, reason="to be revoked")

    def addresses(self):
        """Every address of the study, as it is and as it would be of a study that does not exist."""
        real = {"study": self.study.name, "session": self.session.pk, "rule": self.rule.pk, "table": "trials"}
        real |= {"language": "ar"}
        real |= {"system": "T01-p1", "scores": "raw", "figure": "violin-naturalness", "extension": "svg"}
        unknown = real | {"study": "nothing-here"}
        return {
            name: tuple(reverse(name, kwargs={part: names[part] for part in parts}) for names in (real, unknown))
            for name, parts in patterns()
            if name.startswith("studies:") and name not in NOT_OF_ONE_STUDY
        }

    def others(self):
        people = {
            "organizer of another edition": self.rival,
            "team": self.owner,
            "member": make_user(),
            "operator": make_operator(),
        }
        yield "visitor", Client(raise_request_exception=False)
        for who, person in people.items():
            client = Client(raise_request_exception=False)
            client.force_login(person)
            yield who, client


@pytest.fixture(params=["systems of an edition", "own recordings"])
def place(request):
    return Place(request.param)


def test_every_address_of_a_study_looks_to_others_as_if_it_were_not(place):
    before = Study.objects.values().get(pk=place.study.pk)
    addresses = place.addresses()
    assert len(addresses) > 20
    for who, client in place.others():
        for name, (there, nowhere) in addresses.items():
            for method in READ_AND_WRITE:
                first, second = ask(client, method, there), ask(client, method, nowhere)
                assert seen(first, there) == seen(second, nowhere), f"{who}: {method} {name}"
                assert first.status_code in {302, 404, 405}, f"{who}: {method} {name}"
    assert Study.objects.values().get(pk=place.study.pk) == before


def test_its_organizer_meets_every_page(place):
    """The walk would prove nothing if nobody got through."""
    client = Client()
    client.force_login(place.organizer)
    found = {name: client.get(there).status_code for name, (there, _) in place.addresses().items()}
    only_to_do = {"prepare", "preview", "pause", "resume", "revoke", "results-screen"}
    assert {name for name, status in found.items() if status == 405} == {f"studies:{action}" for action in only_to_do}
    of_others = set() if place.study.edition is None else {"studies:test-file"}
    assert {name for name, status in found.items() if status == 404} == OF_RESULTS | of_others
    assert {status for status in found.values() if status not in (404, 405)} == {200}, found


def test_lists_hold_nothing_of_studies_of_others(place):
    for who, client in place.others():
        for address in (
            "/studies/",
            "/studies/new/",
            f"/studies/?edition={place.edition.name}",
            "/studies/import/",
            "/jobs/",
        ):
            text = client.get(address, follow=True).content.decode()
            assert [word for word in SECRETS if word in text] == [], f"{who}: {address}"


@pytest.mark.parametrize("place", ["systems of an edition"], indirect=True)
def test_an_organizer_of_an_edition_without_the_role_reaches_its_studies(place):
    guest = make_user()
    place.study.edition.organizers.add(guest)
    client = Client()
    client.force_login(guest)
    assert "Unheard voices" in client.get("/studies/").content.decode()
    assert client.get(place.study.get_absolute_url()).status_code == 200


def test_an_organizer_without_an_edition_is_led_to_a_new_challenge(client):
    client.force_login(make_organizer())
    for address in ("/studies/new/", "/studies/import/"):
        text = client.get(address).content.decode()
        assert "A listening test of systems needs an edition" in text, address
        assert '<a class="button" href="/editions/new/">New challenge</a>' in text, address
        assert 'type="submit"' not in text.partition("<main")[2], address


def test_an_organizer_without_an_edition_is_led_to_a_test_of_own_recordings(client):
    client.force_login(make_organizer())
    shown = client.get("/studies/").content.decode()
    assert '<a class="button" href="/studies/new/recordings/">Test your own recordings</a>' in shown


def test_names_with_a_nul_are_not_found(place):
    client = Client()
    client.force_login(place.organizer)
    for address in ("/studies/", "/studies/new/"):
        assert client.get(f"{address}?edition=a%00b").status_code == 404
