"""Places and codes cannot be had in bulk, nor by what is no listening; honest people still find theirs."""

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from listening.app.models import Block, Session
from listening.app.sessions.block_leases import end_session, expire_silent, forget_networks
from listening.app.sessions.platforms import network_key, way_back
from listening.app.sessions.services import FEWEST_STARTS
from tests.listening.factories import make_session, make_study
from tests.listening.visits import PERSON, PLAIN, WORKER, Visit, link_of, mturk_id, prolific_id, text_of, to_trials

pytestmark = pytest.mark.django_db
CODES = {"codes": {"complete": "C0MPLETE"}}
ELSEWHERE = "192.0.2.7"


def make_prolific(**fields):
    return make_study(**{"platform": "prolific", "platform_settings": CODES, "screening": PLAIN} | fields)


def person(number):
    return PERSON | {"PROLIFIC_PID": prolific_id(f"pid-{number}"), "SESSION_ID": prolific_id(f"submission-{number}")}


def held(study):
    return study.blocks.exclude(holder=None).count()


def shift(study, **times):
    """Move times of all sessions of a study into the past."""
    for one in study.sessions.all():
        Session.objects.filter(pk=one.pk).update(**{name: getattr(one, name) - by for name, by in times.items()})


def test_place_is_taken_with_the_first_trial_and_not_before():
    study = make_study(screening=PLAIN, evaluators=1)
    visit, other = Visit(study), Visit(study)
    visit.consent()
    assert (other.consent().status_code, held(study)) == (302, 0)
    visit.post("role-play")
    assert (visit.session.step, visit.session.block.holder, held(study)) == ("trials", visit.session, 1)
    late = other.post("role-play")
    assert (late.status_code, other.session.step, other.session.state) == (409, "role-play", "active")
    assert "All places are taken just now" in text_of(late)
    end_session(visit.session, "withdrawn", timezone.now())
    other.post("role-play")
    assert (other.session.step, other.session.block.holder) == ("trials", other.session)


def test_nobody_is_told_to_come_back_to_a_study_whose_blocks_are_all_finished(client):
    """They read it before the consent; and those who were in the middle read it at their next step."""
    complete = "This study has all the answers that it needs."
    study = make_study(screening=PLAIN, evaluators=1)
    late, known = Visit(study), Visit(study)
    late.consent()
    done = to_trials(study)
    assert "All places are taken just now" in text_of(late.post("role-play"))
    end_session(done.session, "finished", timezone.now())
    refused = late.post("role-play")
    said = text_of(refused)
    assert (refused.status_code, complete in said, "with the same link" in said) == (409, True, False)
    assert complete in text_of(known.consent())
    assert "I have read this and agree" not in text_of(known.consent()), "there is nothing to agree to"
    study.refresh_from_db()
    assert study.refusals["full"]["count"] == 1, "nobody has to make room for them"
    welcome = client.get(link_of(study))
    assert (complete[:-1] in text_of(welcome), "Begin" in text_of(welcome)) == (True, False)
    sessions = study.sessions.count()
    assert complete in text_of(client.post(link_of(study)))
    assert study.sessions.count() == sessions


def test_criterion_32_two_hundred_bots_hold_no_more_than_the_share_of_one_address():
    study = make_prolific(evaluators=12)
    tried = [Client().get(link_of(study), person(number)) for number in range(200)]
    assert [one.status_code for one in tried].count(429) == 197
    assert "Too many people have begun this test from your network" in text_of(tried[-1])
    for one in study.sessions.all():
        for step in ("consent", "role-play"):
            Client().post(f"{one.get_absolute_url()}step/{step}/", {"agrees": "on"})
    assert (held(study), study.sessions.count(), study.participants.count()) == (3, 3, 3)
    honest = Client(REMOTE_ADDR=ELSEWHERE)
    came = honest.get(link_of(study), person("honest")).url
    for step in ("consent", "role-play"):
        honest.post(f"{came}step/{step}/", {"agrees": "on"})
    assert held(study) == 4


@pytest.mark.postgres
def test_one_address_holds_its_share_at_most_however_slowly_it_comes():
    study = make_study(screening=PLAIN, evaluators=8)
    for _ in range(3):
        to_trials(study)
    shift(study, started_at=timedelta(minutes=61))
    visit = to_trials(study)
    assert (visit.session.step, held(study)) == ("consent", 3)
    assert "from your network" in text_of(visit.consent()), "told before the sound checks"
    end_session(study.blocks.exclude(holder=None).first().holder, "finished", timezone.now())
    visit.consent()
    to_trials(study)
    assert "from your network" in text_of(visit.post("role-play"))
    end_session(study.blocks.filter(is_finished=False).exclude(holder=None).first().holder, "finished", timezone.now())
    visit.post("role-play")
    assert visit.session.step == "trials"


def test_organizer_sets_how_many_places_one_address_may_take():
    study = make_study(screening=PLAIN, evaluators=12, places_per_network=5)
    assert [Visit(study).joined.status_code for _ in range(6)] == [302] * 5 + [429]


def test_organizer_is_told_who_was_turned_away_and_why():
    study = make_study(screening=PLAIN, evaluators=1, places_per_network=2)
    first, second = to_trials(study), Visit(study)
    assert (first.session.step, Visit(study).joined.status_code, second.consent().status_code) == ("trials", 429, 409)
    organizer = Client()
    organizer.force_login(study.edition.organizers.first())
    told = text_of(organizer.get(f"/studies/{study.name}/monitor/"))
    assert "1 time because too many came from one network address, last on" in told
    assert "1 time because all places were taken, last on" in told
    assert "One network address may hold the only place, and 2 people may begin from it within an hour." in told


@pytest.mark.postgres
def test_starts_from_many_addresses_are_counted_for_the_study():
    study = make_prolific(evaluators=2)
    people = [study.participants.create(person_key=f"bot{number}") for number in range(FEWEST_STARTS)]
    Session.objects.bulk_create(Session(study=study, participant=one) for one in people)
    refused = Client().get(link_of(study), PERSON)
    assert (refused.status_code, "Very many people are beginning" in text_of(refused)) == (429, True)
    shift(study, started_at=timedelta(minutes=10))
    assert Client().get(link_of(study), PERSON).status_code == 302


def test_known_person_comes_back_however_many_came_from_their_address():
    study = make_prolific(evaluators=12)
    first = Visit(study, person(1))
    tried = [Client().get(link_of(study), person(number)).status_code for number in range(2, 5)]
    assert tried == [302, 302, 429]
    assert Visit(study, person(1)).address == first.address


def test_beginning_again_is_counted_as_well():
    study = make_study(screening=PLAIN)
    visit = to_trials(study)
    for _ in range(2):
        Session.objects.filter(token=visit.token).update(state="expired", step="end")
        visit.address = visit.post("again").url
    Session.objects.filter(token=visit.token).update(state="expired", step="end")
    assert visit.post("again").status_code == 429


def test_address_is_known_by_a_hash_of_its_line_in_this_study():
    study, other = make_study(), make_study()
    assert network_key(study, "192.0.2.7") != network_key(other, "192.0.2.7") != network_key(other, "192.0.2.8")
    assert network_key(study, "2001:db8::1") == network_key(study, "2001:db8::ffff:2")
    assert network_key(study, "2001:db8::1") != network_key(study, "2001:db8:0:1::1")
    assert (len(network_key(study, "what the proxy says")), network_key(study, "")) == (64, "")


def test_ipv4_addresses_that_come_within_ipv6_are_told_apart():
    """As a server that listens to both kinds is told them: they share one /64."""
    study = make_prolific(evaluators=12)
    came = [Client(REMOTE_ADDR=f"::ffff:192.0.2.{n}").get(link_of(study), person(n)).status_code for n in range(6)]
    assert came == [302] * 6
    assert Client(REMOTE_ADDR="192.0.2.5").get(link_of(study), person(5)).status_code == 302
    assert study.sessions.order_by("pk").last().network == network_key(study, "192.0.2.5")


def test_address_is_forgotten_after_a_day_but_not_while_it_holds_a_place():
    study = make_study(screening=PLAIN)
    holding, waiting = to_trials(study), Visit(study)
    now = timezone.now()
    assert forget_networks(now + timedelta(hours=23)) == 0
    assert forget_networks(now + timedelta(hours=25)) == 1
    assert (bool(holding.session.network), waiting.session.network) == (True, "")


def test_who_is_silent_before_the_first_trial_is_ended_and_who_has_not_consented_may_come_back():
    study = make_study(screening=PLAIN, evaluators=3)
    listening, silent, waiting = to_trials(study), Visit(study), Visit(study)
    silent.consent()
    assert expire_silent(timezone.now() + timedelta(minutes=44)) == 0
    assert expire_silent(timezone.now() + timedelta(minutes=46)) == 1
    assert [one.session.state for one in (listening, silent, waiting)] == ["active", "expired", "active"]
    assert "You were away for too long" in silent.text()


# Another submission under the same name -----------------------------------------------------------------


def test_criterion_32_another_submission_never_opens_the_session_of_somebody_who_listens():
    study = make_prolific(evaluators=4)
    first = to_trials(study, PERSON)
    other = Client().get(link_of(study), PERSON | {"SESSION_ID": prolific_id("submission-2")}, follow=True)
    assert (other.status_code, first.token in other.content.decode()) == (403, False)
    assert "in another submission" in text_of(other)
    assert (first.session.state, Session.objects.count()) == ("active", 1)
    assert Visit(study, PERSON).address == first.address


@pytest.mark.parametrize(
    ("platform", "query", "other"),
    [
        ("prolific", PERSON, {"SESSION_ID": prolific_id("submission-2")}),
        ("mturk", WORKER, {"assignmentId": mturk_id("A2")}),
    ],
)
def test_criterion_32_another_submission_begins_anew_once_the_first_is_left(platform, query, other):
    study = make_study(platform=platform, platform_settings=CODES if platform == "prolific" else {}, screening=PLAIN)
    first = to_trials(study, query)
    shift(study, last_seen_at=timedelta(minutes=46))
    second = Visit(study, query | other)
    assert second.address != first.address
    assert (second.session.step, second.session.consented_at, second.session.block) == ("consent", None, None)
    assert second.session.participant == first.session.participant
    assert second.session.platform_data["session"] == next(iter(other.values()))
    assert (first.session.state, held(study)) == ("expired", 0)


def test_who_took_the_task_again_before_consent_loses_nothing_and_waits_for_nothing():
    study = make_study(platform="mturk", screening=PLAIN)
    first, second = Visit(study, WORKER), Visit(study, WORKER | {"assignmentId": mturk_id("A2")})
    assert (first.session.state, second.session.state, second.session.step) == ("expired", "active", "consent")
    assert second.session.platform_data["session"] == mturk_id("A2")


def test_another_submission_does_not_show_how_the_first_one_ended():
    study = make_prolific()
    first = to_trials(study, PERSON)
    for state in ("finished", "screened-out", "failed-attention"):
        Session.objects.update(state=state, step="end", completion_code="C0MPLETE")
        page = Client().get(link_of(study), PERSON | {"SESSION_ID": prolific_id("submission-2")}, follow=True)
        assert (page.status_code, "already taken part" in text_of(page)) == (403, True)
        told = page.content.decode()
        assert [one for one in ("C0MPLETE", first.token, first.session.withdrawal_code) if one in told] == []


# Codes of ends that are no completed test ---------------------------------------------------------------


@pytest.mark.parametrize("platform", ["own", "mturk"])
@pytest.mark.parametrize(
    ("state", "prefix"),
    [
        ("finished", ""),
        ("failed-attention", "CHECK-"),
        ("technical", "TECH-"),
        ("expired", "PART-"),
    ],
)
def test_criterion_32_code_tells_what_is_no_completed_test(platform, state, prefix):
    session = make_session(make_study(platform=platform))
    session.answers.create(trial=session.block.trials.first(), task="naturalness", rating=5, received_at=timezone.now())
    end_session(session, state, timezone.now())
    code = session.completion_code
    assert code.startswith(prefix)
    assert (len(code) - len(prefix), code.count("-")) == (11, 1 + prefix.count("-"))


@pytest.mark.parametrize("platform", ["own", "mturk"])
def test_criterion_32_failing_the_sound_test_gives_no_code(platform):
    visit = Visit(
        make_study(platform=platform, screening=PLAIN | {"sound": True}), WORKER if platform == "mturk" else None
    )
    visit.consent()
    for _ in range(3):
        visit.answer_test("sound", right=False)
    assert (visit.session.state, visit.session.completion_code) == ("screened-out", "")
    assert "Your completion code" not in visit.text()


@pytest.mark.parametrize(("state", "prefix"), [("technical", "TECH-"), ("expired", "PART-")])
def test_reference_is_no_code_of_prolific_and_leads_back_to_nothing(state, prefix):
    session = make_session(make_prolific())
    session.answers.create(trial=session.block.trials.first(), task="naturalness", rating=5, received_at=timezone.now())
    end_session(session, state, timezone.now())
    assert (session.completion_code.startswith(prefix), way_back(session)) == (True, "")
    session.completion_code = "TECH-OF-OURS"
    assert way_back(session).endswith("cc=TECH-OF-OURS")
    assert Block.objects.exclude(holder=None).count() == 0
