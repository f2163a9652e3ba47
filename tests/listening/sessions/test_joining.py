"""From a link to a session: once for each person, from all platforms, without cookies."""

from concurrent.futures import ThreadPoolExecutor
from itertools import product

import pytest
from django.db import connection
from django.test import Client
from django.urls import reverse

from listening.app.models import Block, Participant, Session
from tests.listening.factories import make_study
from tests.listening.visits import PERSON, PLAIN, WORKER, Visit, link_of, prolific_id, text_of, to_trials

pytestmark = pytest.mark.django_db


def make_prolific(**fields):
    codes = {"codes": {"complete": "C0MPLETE"}}
    return make_study(**{"platform": "prolific", "platform_settings": codes, "screening": PLAIN} | fields)


def test_own_link_makes_a_session_by_a_tap_only():
    study = make_study(screening=PLAIN)
    looked = Client().get(link_of(study))
    assert (looked.status_code, Session.objects.count()) == (200, 0)
    visit = Visit(study)
    assert (visit.joined.status_code, visit.session.step, visit.session.block) == (302, "consent", None)
    assert visit.session.participant.platform_id == ""


def test_programs_that_look_at_links_make_no_session():
    study = make_prolific()
    assert Client().head(link_of(study), PERSON).status_code == 200
    assert Session.objects.count() == 0
    assert Client().get(link_of(study), PERSON).status_code == 302


def test_own_link_remembers_its_session_where_cookies_are_allowed():
    study = make_study(screening=PLAIN)
    client = Client()
    first = client.post(link_of(study))
    again = client.get(link_of(study))
    assert (again.status_code, again.url, Session.objects.count()) == (302, first.url, 1)
    cookie = first.cookies[f"listening-{study.pk}"]
    assert (cookie["httponly"], cookie["samesite"]) == (True, "Lax")


def test_browser_is_kept_and_no_cookie_is_set_after_joining():
    visit = Visit(make_study(screening=PLAIN), **{"User-Agent": "Mozilla/5.0 (X11)"})
    assert visit.session.device == {"agent": "Mozilla/5.0 (X11)"}
    for response in (visit.page(), visit.consent(), visit.post("role-play")):
        assert (response.cookies, response["Cache-Control"]) == ({}, "private, no-store")
        assert "Cookie" not in response.get("Vary", "")


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("platform", ["prolific", "own"])
def test_criterion_16_same_person_opening_ten_links_at_once_gets_one_session(platform):
    settings = {"codes": {"complete": "C0MPLETE"}} if platform == "prolific" else {}
    study = make_study(platform=platform, platform_settings=settings, screening=PLAIN, evaluators=4)
    query = PERSON if platform == "prolific" else {"person": "anna"}

    def begin(_):
        try:
            visit = Visit(study, query)
            return visit.address, visit.consent().status_code, visit.post("role-play").status_code
        finally:
            connection.close()

    with ThreadPoolExecutor(10) as pool:
        found = list(pool.map(begin, range(10)))
    assert len({address for address, _, _ in found}) == 1
    assert {status for _, *both in found for status in both} == {302}
    assert (Session.objects.count(), Participant.objects.count()) == (1, 1)
    assert Block.objects.exclude(holder=None).count() == 1


def test_prolific_joins_by_its_parameters_and_keeps_them_apart_from_the_hash():
    visit = Visit(make_prolific(), PERSON)
    session = visit.session
    assert session.platform_data == {"study": PERSON["STUDY_ID"], "session": PERSON["SESSION_ID"]}
    assert session.participant.platform_id == PERSON["PROLIFIC_PID"]
    assert len(session.participant.person_key) == 64
    assert PERSON["PROLIFIC_PID"] not in visit.page().content.decode()


def test_parameters_of_prolific_may_have_other_names():
    names = {"person": "who", "study": "what", "session": "which"}
    study = make_prolific(platform_settings={"codes": {"complete": "C"}, "parameters": names})
    visit = Visit(study, dict(zip(("who", "what", "which"), PERSON.values(), strict=True)))
    assert visit.session.participant.platform_id == PERSON["PROLIFIC_PID"]


NO_IDS = [
    *("", " ", "undefined", "null", "test"),
    *(
        "{{%PROLIFIC_PID%}}",
        "<script>",
        "a b",
        "ASSIGNMENT_ID_NOT_AVAILABLE",
        "anna@uni.example",
        "-" * 24,
    ),
]


def test_what_cannot_be_an_id_of_prolific_begins_no_session():
    study = make_prolific()
    values = [*NO_IDS, PERSON["PROLIFIC_PID"][1:], PERSON["STUDY_ID"], "0" * 24, "a" * 24]
    for value, part in product(values, ("PROLIFIC_PID", "SESSION_ID")):
        response = Client().get(link_of(study), PERSON | {part: value})
        assert (response.status_code, Session.objects.count()) == (400, 0), value
        assert "This link is not complete. Open the study again from the platform" in text_of(response)
        assert b"<script>" not in response.content


def test_what_cannot_be_an_id_of_mechanical_turk_begins_no_session():
    study = make_study(platform="mturk", screening=PLAIN)
    values = [*NO_IDS[2:-3], "ANONYMOUS", WORKER["hitId"].lower(), WORKER["hitId"]]
    for value, part in product(values, ("workerId", "assignmentId")):
        response = Client().get(link_of(study), WORKER | {part: value})
        assert (response.status_code, Session.objects.count()) == (400, 0), value


NAMELESS = [
    *(one for one in NO_IDS[:-5] if one != "test"),
    *("ASSIGNMENT_ID_NOT_AVAILABLE", "--", "N/A", "anna\x00", "an\u200cna", "a" * 121, "PERSON_ID", "your-id"),
]


def test_own_link_that_names_nobody_says_which_signs_an_id_has():
    study = make_study(screening=PLAIN)
    signs = "names nobody. Expected an ID of your own, of at most 120 letters, digits, spaces and . _ - + @"
    for value in NAMELESS:
        response = Client().post(link_of(study), query_params={"person": value})
        assert (response.status_code, Session.objects.count()) == (400, 0), value
        assert signs in text_of(response)
        assert "platform" not in text_of(response)


PEOPLE = {
    "anna+test@uni.example": "anna+test@uni.example",
    "Zm9v/+=": "Zm9v/+=",
    " Anna   M\u0075\u0308ller ": "Anna Müller",
    "مهدی\u200cزاده": "مهدی\u200cزاده",
}


def test_own_link_takes_addresses_random_ids_and_names():
    study = make_study(screening=PLAIN, evaluators=40, places_per_network=40)
    for value, person in PEOPLE.items():
        visits = [Visit(study, {"person": given}) for given in (value, person)]
        assert [visit.session.participant.platform_id for visit in visits] == [person, person]
        assert visits[0].address == visits[1].address


def test_same_name_in_two_studies_has_two_hashes():
    first, second = (Visit(make_prolific(), PERSON).session.participant for _ in range(2))
    assert first.platform_id == second.platform_id
    assert first.person_key != second.person_key


def test_study_that_takes_nobody_says_so_but_lets_its_people_in():
    study = make_prolific()
    known = Visit(study, PERSON)
    study.state = "closed"
    study.save()
    stranger = Client().get(link_of(study), PERSON | {"PROLIFIC_PID": prolific_id("pid-2")})
    assert stranger.status_code == 403
    assert "has ended" in text_of(stranger)
    assert Visit(study, PERSON).address == known.address
    assert Session.objects.count() == 1


def test_study_that_was_never_launched_is_not_found():
    study = make_study(launched_at=None, state="draft")
    assert Client().get(link_of(study)).status_code == 404
    assert Client().get(reverse("listen:join", args=["nonsense"])).status_code == 404


def test_who_has_ended_comes_back_to_the_end_and_gets_no_second_block():
    study = make_prolific()
    visit = to_trials(study, PERSON)
    Session.objects.filter(token=visit.token).update(state="screened-out", step="end")
    again = Visit(study, PERSON)
    assert again.address == visit.address
    assert again.post("again").status_code == 403


def test_criterion_18_who_lost_the_block_is_told_and_may_begin_anew():
    study = make_prolific(evaluators=1)
    visit = to_trials(study, PERSON)
    lost = visit.session
    Session.objects.filter(pk=lost.pk).update(state="expired", step="end")
    study.blocks.update(holder=None)
    page = visit.page()
    assert "Your place was given to somebody else" in text_of(page)
    assert lost.trials_started_at is not None
    first = visit.post("again")
    second = visit.post("again")
    assert first.url == second.url != visit.address
    anew = Session.objects.get(token=first.url.strip("/").rpartition("/")[2])
    assert (anew.participant, anew.step, anew.consented_at) == (lost.participant, "consent", None)
    assert Visit(study, PERSON).address == first.url


def test_own_link_leads_to_the_session_begun_anew():
    study = make_study(screening=PLAIN)
    client = Client()
    lost = client.post(link_of(study)).url
    Session.objects.update(state="expired", step="end")
    anew = client.post(f"{lost}step/again/").url
    assert anew != lost
    assert client.get(link_of(study)).url == anew


def test_language_is_asked_for_or_the_browsers_and_else_the_studys_first():
    study = make_study(screening=PLAIN, languages=["en", "fr"])
    client = Client()
    found = [
        client.get(link_of(study), {"lang": "fr"}),
        client.get(link_of(study), headers={"Accept-Language": "fr-CA"}),
    ]
    assert all('lang="fr"' in one.content.decode().partition("<head>")[0] for one in found)
    other = client.get(link_of(study), headers={"Accept-Language": "de"})
    assert 'lang="en"' in other.content.decode().partition("<head>")[0]
    assert Visit(study, **{"Accept-Language": "fr"}).session.language == "fr"


def test_nonsense_in_a_cookie_or_an_address_is_nobodys_session():
    study = make_study(screening=PLAIN)
    client = Client(headers={"Cookie": f"listening-{study.pk}=a b"})
    assert client.get(link_of(study)).status_code == 200
    for address in ("/listen/%00/", "/listen/a%20b/", "/listen/join/%00/", f"/listen/{'x' * 5000}/"):
        assert client.get(address).status_code == 404
