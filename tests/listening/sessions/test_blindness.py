"""Criterion 12: nothing that an evaluator's browser receives tells what is heard, from whom, or why."""

import re
from functools import partial

import pytest
from django.db import transaction
from django.utils import timezone

from listening.app.models import Presentation, Session, Study
from listening.app.sessions.block_leases import end_session
from listening.app.sessions.clip_urls import clip_address
from listening.app.studies import designing, services
from listening.app.studies.services import best_sets
from portal.jobs.models import Job, JobState
from portal.jobs.runner import execute
from portal.submissions.models import Submission, SubmittedFile
from tests.listening.comparing_factories import make_comparing_study
from tests.listening.crawling import Crawler, found_in, names_of
from tests.listening.edition_factories import TOLD
from tests.listening.factories import make_session
from tests.listening.form_factories import make_board_study, make_transcription_study
from tests.portal.factories import make_corpus, make_edition, make_organizer, make_team, make_team_system, store_tone

pytestmark = pytest.mark.django_db(transaction=True)

KEYS_OF_TRIAL = {"position", "is_practice", "tasks", "usual_s", "samples", "answered", "place"}
KEYS_OF_SAMPLE = {"slot", "address", "seconds"}


@pytest.fixture
def study(once):
    return once(launched_study)


def launched_study():
    """A launched study with practice, gold and bridge trials whose every name is like no other word."""
    organizer = make_organizer(email="quokkaperson@test.example")
    corpus = make_corpus("wombatcorpus", speakers=8, utterances=8)
    edition = make_edition(corpus, organizers=[organizer], name="narwhal-edition", title="Narwhalchallenge 1999")
    for number, (name, place) in enumerate({"Axolotlteam": "Okapi University", "Pangolinteam": "Tapir Labs"}.items()):
        team = make_team(edition, name=name, affiliation=place, contact="Capybara Contact")
        _submit(make_team_system(team, title=f"Mongoosesystem {number}"), hertz=300 + 10 * number)
    study = services.create_study(
        edition=edition,
        by=organizer,
        systems=Submission.objects.filter(system__edition=edition),
        data_sets=best_sets(edition),
        name="platypus-study",
        title="Platypusstudy",
        evaluators=4,
        trials_per_evaluator=8,
        originals_per_evaluator=4,
        practice_trials=2,
        gold_trials=2,
        bridge_trials=1,
        languages=["en", "fr"],
        screening={"sound": True, "headphones": "both", "headphones_gate": "flag", "headphones_attempts": 1},
        seed=2022,
        **TOLD,
    )
    designing.make_design(study, organizer)
    job = services.prepare_study(study, organizer)
    assert execute(job.pk).state == JobState.SUCCEEDED, Job.objects.get(pk=job.pk).failure
    study.refresh_from_db()
    return services.launch_study(study=study, by=organizer, now=timezone.now())


def _submit(system, *, hertz):
    submission = system.submissions.create(version=1, state=Submission.State.EVALUATED)
    audio = {"audio": store_tone(hertz), "samples": 9600, "rate_hz": 16000}
    for data_set in system.corpus.data_sets.filter(role="trial"):
        for utterance in data_set.utterances.all():
            SubmittedFile.objects.create(submission=submission, data_set=data_set, utterance=utterance, **audio)


@pytest.fixture
def visit(live_server):
    crawlers = []

    def begin():
        crawlers.append(Crawler(live_server.url))
        return crawlers[-1]

    yield begin
    for crawler in crawlers:
        crawler.client.close()


def whole_visit(crawler, study):
    """A session from the link to the code, with everything asked for that is refused on the way. Its own words told."""
    crawler.join(study)
    assert "listen" in crawler.address
    crawler.ask("GET", f"{crawler.address}state")
    crawler.ask("GET", f"{crawler.address}clips/{'x' * 24}")
    crawler.walk_to_trials()
    crawler.ask("POST", f"{crawler.address}language/", data={"language": "fr"})
    crawler.page()
    crawler.ask("POST", f"{crawler.address}language/", data={"language": "en"})
    for body in ("", "{", "[]", {"tab": "one", "position": 99, "answers": {"beauty": 11}}, {"tab": "one"}):
        crawler.tell("answers", body)
    crawler.answer(3, study.asked_keys)  # out of order
    crawler.answer(1, study.asked_keys, tab="two")
    crawler.ask("GET", f"{crawler.address}clips/{'x' * 24}")
    crawler.ask("GET", f"{crawler.address}answers")
    crawler.ask("GET", f"{crawler.address}withdraw/")
    told = crawler.answer_all()
    ending = {"tab": "one", "position": 1, "slot": "a", "what": "clip"}
    for what in ("answers", "alive", "take-over", "report"):
        crawler.tell(what, {"tab": "one"} | (ending if what == "report" else {}))
    crawler.state()
    for sample in told[0]["trials"][0]["samples"]:
        crawler.ask("GET", sample["address"])
    crawler.page()
    crawler.ask("GET", "/listen/withdraw/")
    crawler.ask("POST", "/listen/withdraw/", data={"code": "nobody-has-this"})
    crawler.ask("GET", "/listen/no-such-token/")
    crawler.ask("GET", "/listen/no-such-token/state")
    crawler.ask("GET", f"{crawler.address}no-such-page")
    return told


def test_criterion_12_no_byte_of_a_session_names_what_is_heard(study, visit):
    names = names_of(study)
    crawler = visit()
    told = whole_visit(crawler, study)
    assert crawler.session.state == Session.State.FINISHED
    statuses = {one.status for one in crawler.received}
    assert statuses >= {200, 206, 302, 404, 405, 409, 410, 416, 422, 425}
    kinds = {one.kind.partition(";")[0] for one in crawler.received}
    assert kinds >= {"text/html", "application/json", "text/css", "audio/wav", "text/javascript"}
    assert {purpose for (purpose,) in study.presentations.values_list("purpose")} == set(Presentation.Purpose.values)
    assert len(names) > 300
    assert found_in(crawler.received, names) == []
    assert crawler.session.block.trials.count() == len(told) - 1 == 13
    assert_trials_are_told_alike(told)
    clips = [one for one in crawler.received if "/clips/" in one.address and one.status == 200]
    headers = {re.sub(rb"(?im)^(content-length|date): .*$", b"", one.headers) for one in clips}
    assert len(headers) == 1


def assert_trials_are_told_alike(told):
    """Whatever a trial is for; practice alone is known to be that."""
    trials = told_trials(told)
    assert {frozenset(trial) for trial in trials} == {frozenset(KEYS_OF_TRIAL)}
    assert {frozenset(sample) for trial in trials for sample in trial["samples"]} == {frozenset(KEYS_OF_SAMPLE)}
    assert len({tuple(trial["tasks"]) for trial in trials}) == 1
    assert {tuple(sample["slot"] for sample in trial["samples"]) for trial in trials} == {("a", "b")}
    assert {trial["position"] for trial in trials if trial["is_practice"]} == {1, 2}


def test_criterion_12_crawl_would_find_a_name(study, visit):
    """The check itself: what is put into a page, a header or the code is found."""
    crawler = visit()
    names = names_of(study)
    crawler.join(study)
    item = study.presentations.filter(purpose="gold").first()
    study.texts.filter(kind="consent", language="en").update(text=f"Axolotlteam brings you {item.key}.")
    crawler.page()
    found = found_in(crawler.received, names)
    assert any(line.startswith("axolotlteam in 200") for line in found)
    assert any(line.startswith(item.key.lower()) for line in found)
    assert any(line.startswith("gold in 200") for line in found)


def told_trials(told):
    return [trial for reply in told for trial in reply.get("trials", reply.get("ahead", []))]


def test_criterion_12_clips_have_unlinkable_addresses_bound_to_their_session_and_die_with_it(study, visit):
    """Practice comes first in every session, so that two sessions begin with the same recordings."""
    addresses, heard = [], []
    one, other = visit(), visit()
    for crawler in (one, other):
        crawler.join(study)
        crawler.walk_to_trials()
        trials = told_trials([crawler.state()])
        addresses.append([sample["address"] for trial in trials for sample in trial["samples"]])
        first = crawler.session.block.trials.filter(position__lte=3)
        heard.append(set(first.values_list("presentation__samples__stimulus", flat=True)))
    assert len(heard[0] & heard[1]) >= 4
    parts = [{part for address in told for part in address.split("/") if len(part) > 8} for told in addresses]
    assert len(parts[0]) == len(parts[1]) == 7  # the session and six clips
    assert not parts[0] & parts[1]
    address = addresses[0][0]
    clip = address.rpartition("/")[2]
    assert one.ask("GET", address).status_code == 200
    assert other.ask("GET", f"{other.address}clips/{clip}").status_code == 403
    later = one.session.block.trials.get(position=9)
    assert one.ask("GET", clip_address(one.session, later, "a")).status_code in {403, 404}
    one.ask("POST", f"{one.address}withdraw/")
    assert one.session.state == Session.State.WITHDRAWN
    assert one.ask("GET", address).status_code in {404, 410}
    one.page()
    other.tell("report", {"tab": "one", "position": 1, "slot": "a", "what": "clip"})
    assert found_in([*one.received, *other.received], names_of(study)) == []


@pytest.mark.parametrize(
    "make",
    [
        make_board_study,
        make_transcription_study,
        pytest.param(partial(make_comparing_study, "abx"), id="abx"),
        pytest.param(partial(make_comparing_study, "mushra"), id="mushra"),
    ],
)
def test_criterion_12_other_forms_name_nothing_either(make, visit):
    study = make()
    names = names_of(study)
    crawler = visit()
    session = make_session(study)
    crawler.address = session.get_absolute_url()
    crawler.page()
    crawler.tell("take-over", {"tab": "one"})
    for trial in crawler.state()["trials"]:
        crawler.fetch_clips(trial)
    for body in ({}, {"board": {"samples": {}}}, {"text": {"raw": ""}}, {"text": {"raw": "x"}}):
        crawler.tell("answers", {"tab": "one", "position": 1} | body)
    assert {one.status for one in crawler.received} >= {200, 206, 416, 422}
    assert found_in(crawler.received, names) == []


def test_criterion_12_pages_of_those_who_do_not_finish_name_nothing_either(study, visit):
    names = names_of(study)
    failing, expired, late = visit(), visit(), visit()
    study.screening = study.screening | {"headphones_gate": "gate"}
    study.save()
    failing.join(study)
    failing.walk_to_tests()
    while failing.session.state == Session.State.ACTIVE:
        failing.test(failing.session.step, right=failing.session.step == Session.Step.SOUND)
    assert failing.session.state == Session.State.SCREENED_OUT
    failing.page()
    expired.join(study)
    expired.walk_to_trials()
    for state in (Session.State.EXPIRED, Session.State.TECHNICAL, Session.State.FAILED_ATTENTION):
        with transaction.atomic():
            end_session(expired.session, state, timezone.now())
        expired.page()
        expired.tell("alive", {"tab": "one", "events": []})
        Session.objects.filter(token=expired.token).update(state=Session.State.ACTIVE)
    Study.objects.filter(pk=study.pk).update(state=Study.State.PAUSED)
    late.ask("GET", f"/listen/join/{study.link_key}/")
    late.ask("POST", f"/listen/join/{study.link_key}/")
    late.ask("GET", "/listen/join/no-such-study/")
    assert {403, 404, 410} <= {one.status for crawler in (expired, late) for one in crawler.received}
    assert found_in([*failing.received, *expired.received, *late.received], names) == []
