"""Pages of runs of anonymisers: the form that starts them, the page of a run, its voices, and who sees what."""

import re
from uuid import uuid4

import pytest
from django.utils import timezone

from anonymization.app.models import AnonymizationRun
from anonymization.methods.contract import Method
from anonymization.methods.registry import methods
from evaluation.app.models import EvaluationRun
from portal.jobs.models import Job, JobState
from portal.submissions.models import Submission, System
from portal.systems.anonymization import forms
from tests.pages import read_page
from tests.portal.factories import (
    make_corpus,
    make_edition,
    make_organizer,
    make_submission,
    make_system,
    make_team,
    make_team_system,
    make_user,
)
from tests.portal.measured_runs import make_anonymization_run, make_planned_run

pytestmark = pytest.mark.django_db
FORM = "/systems/new/tones/"
RUN = "/systems/b2-tones/runs/tones_trials_f/"


@pytest.fixture
def user():
    return make_organizer()


@pytest.fixture
def organizer(client, user):
    client.force_login(user)
    return client


@pytest.fixture
def corpus():
    return make_corpus("tones", speakers=4)


@pytest.fixture
def system(corpus):
    return make_system(corpus)


@pytest.fixture
def run(system):
    return make_planned_run(system, system.corpus.data_sets.get(name="tones_trials_f"), options={"level": "kept"})


def asked(corpus, **changes):
    """What a filled form sends."""
    sets = [data_set.pk for data_set in corpus.data_sets.all()]
    return {"method": "mcadams-2022", "seed": 7, "data_sets": sets} | changes


def errors_of(response):
    assert response.status_code == 422
    return {name: " ".join(found) for name, found in response.context["form"].errors.items()}


# The form ------------------------------------------------------------------------------------------


def test_methods_that_cannot_run_here_stand_in_one_line_with_the_reason(organizer, corpus, monkeypatch):
    def refuse(*_):
        raise AssertionError

    here, gpu = methods()[0], Method("far", "Far away", "1", "Nobody", refuse, needs_gpu=True)
    lacking = Method("lacking", "Lacking", "1", "Nobody", refuse, check=lambda: "Lacking needs a library: get it.")
    monkeypatch.setattr(forms, "methods", lambda: (lacking, here, gpu))
    response = organizer.get(FORM)
    page = read_page(response)
    assert "<summary>Methods that cannot run here, and what they lack</summary>" in page
    assert "<b>Lacking</b>: needs a library: get it." in page
    assert page.count("Needs a graphics card: it waits for a worker that has one.") == 1
    radios = re.findall(r'<input type="radio" name="method"[^>]*>', page)
    assert [re.search('value="([^"]*)"', radio)[1] for radio in radios] == [here.name, "far"]
    assert "checked" in radios[0]
    answer = organizer.post(FORM, asked(corpus, method="lacking"))
    assert errors_of(answer) == {"method": "Lacking needs a library: get it."}


def test_options_of_the_chosen_method_are_kept_with_the_runs(organizer, corpus):
    post = asked(
        corpus,
        name="mine",
        **{
            "mcadams-2022__level": "kept",
            "mcadams-2022__keep_digital_silence": "no",
            "pitch-shift-psola__level": "nonsense",
        },
    )
    assert organizer.post(FORM, post).headers["Location"] == "/systems/mine/"
    for run in AnonymizationRun.objects.all():
        assert (run.options["level"], run.options["keep_digital_silence"], run.options["tail"]) == (
            "kept",
            False,
            False,
        )
    page = read_page(organizer.get("/systems/mine/"))
    assert '<dt>Level</dt><dd>kept <span class="soft">(not the default)</span></dd>' in page


def test_level_is_that_of_the_role_or_the_one_that_was_chosen(organizer, corpus):
    corpus.data_sets.create(name="tones_train", role="training").utterances.set(corpus.utterances.all())
    organizer.post(FORM, asked(corpus, name="by-role"))
    organizer.post(FORM, asked(corpus, name="by-utterance", level="utterance"))
    levels = AnonymizationRun.objects.values_list("submission__system__name", "data_set__name", "level")
    assert {(name, "train" in data_set, level) for name, data_set, level in levels} == {
        ("by-role", False, "speaker"),
        ("by-role", True, "utterance"),
        ("by-utterance", False, "utterance"),
        ("by-utterance", True, "utterance"),
    }
    found = errors_of(organizer.post(FORM, asked(corpus, level="speaker")))
    assert found["level"].startswith("Training data is anonymised at utterance level only: tones_train.")
    assert set(errors_of(organizer.post(FORM, asked(corpus, level="village")))) == {"level"}


# The pace of methods -------------------------------------------------------------------------------


def test_trial_of_methods_of_unknown_pace_is_a_job_and_is_begun_once(organizer, corpus):
    for _ in range(2):
        assert organizer.post(FORM, {"try": "yes"}).headers["Location"] == FORM
    job = Job.objects.get(kind="try-anonymizers")
    assert set(job.parameters["methods"]) == {method.name for method in methods() if not method.missing()}
    page = read_page(organizer.get(FORM))
    assert f'<a href="{job.get_absolute_url()}">A trial on one utterance</a> is under way' in page
    assert System.objects.count() == 0


# An edition ----------------------------------------------------------------------------------------


def test_form_offers_the_editions_of_this_corpus_that_the_visitor_organises(organizer, user, corpus):
    own = make_edition(corpus, organizers=[user], name="own", title="My own")
    make_edition(corpus, name="others", title="Of others")
    make_edition(make_corpus("other"), organizers=[user], title="Elsewhere")
    response = organizer.get(FORM)
    assert response.context["form"].offer.editions == [own]
    page = read_page(response)
    assert ("My own" in page, "Of others" in page, "Elsewhere" in page) == (True, False, False)
    assert "Its teams submit tones_enrolls, tones_trials_f, tones_trials_m." in page
    others = System.objects.count()
    foreign = asked(corpus, edition=make_edition(corpus).pk, label="B2")
    assert errors_of(organizer.post(FORM, foreign)) == {"edition": "Choose an edition of this list."}
    assert set(errors_of(organizer.post(FORM, asked(corpus, edition=str(10**30), label="B2")))) == {"edition"}
    assert System.objects.count() == others


def test_baseline_of_an_edition_is_a_system_with_a_submission_like_those_of_teams(organizer, user, corpus):
    edition = make_edition(corpus, organizers=[user], name="vpc")
    post = asked(corpus, edition=edition.pk, label="B2.a", name="ignored name")
    assert organizer.post(FORM, post).headers["Location"] == "/systems/vpc-b2-a/"
    system = System.objects.get(name="vpc-b2-a")
    submission = system.submissions.get()
    assert (system.edition, system.team, system.is_baseline) == (edition, None, True)
    assert (submission.state, submission.submitted_by) == (Submission.State.RECEIVED, user)
    assert EvaluationRun.objects.count() == 0  # the acceptance begins them
    first, now = submission.anonymization_runs.order_by("pk").first().job, timezone.now()
    claimed = {"claim": uuid4(), "heartbeat_at": now, "started_at": now}
    Job.objects.filter(pk=first.pk).update(state=JobState.RUNNING, done=30, total=50, **claimed)
    page = read_page(organizer.get(submission.get_absolute_url()))
    assert "0 of 3 jobs have ended" in page
    assert '<progress max="100" value="20"' in page  # 60 % of a third
    assert '<h2 id="under-way">Anonymisation</h2>' in page
    assert "the portal itself, started by" in page
    assert "Received: The portal itself makes its files." in page
    assert "B2.a" in read_page(organizer.get("/editions/vpc/submissions/"))
    assert "How it was made" in read_page(organizer.get("/systems/vpc-b2-a/"))


def test_missing_data_sets_are_told_before_anything_starts(organizer, user, corpus):
    edition = make_edition(corpus, organizers=[user], title="Challenge")
    chosen = [corpus.data_sets.get(name="tones_enrolls").pk]
    post = asked(corpus, edition=edition.pk, label="B2", data_sets=chosen)
    response = organizer.post(FORM, post)
    assert errors_of(response)["data_sets"].startswith(
        "Challenge asks its teams for these, too: tones_trials_f, tones_trials_m."
    )
    assert (System.objects.count(), 'name="incomplete"' in read_page(response)) == (0, True)
    assert 'name="incomplete"' not in read_page(organizer.get(FORM))
    assert organizer.post(FORM, post | {"incomplete": "on"}).status_code == 302
    assert AnonymizationRun.objects.count() == 1


# The page of a run ---------------------------------------------------------------------------------


def test_numbers_of_a_published_leaderboard_open_no_run(client, corpus):
    edition = make_edition(corpus, published_at=timezone.now())
    system = make_team_system(make_team(edition))
    make_submission(system)
    make_planned_run(system, corpus.data_sets.get(name="tones_trials_f"))
    client.force_login(make_user())
    assert client.get(f"/systems/{system.name}/").status_code == 200
    assert client.get(f"/systems/{system.name}/runs/tones_trials_f/").status_code == 404


@pytest.mark.parametrize(
    ("state", "label"), [("running", "Cancel the job"), ("failed", "Run again"), ("succeeded", None)]
)
def test_run_can_be_cancelled_and_continued_from_its_page(organizer, system, state, label):
    run = make_anonymization_run(system, system.corpus.data_sets.get(name="tones_trials_f"), state=state)
    page = read_page(organizer.get(RUN))
    shown = [words for words in ("Cancel the job", "Run again") if f">{words}</button>" in page]
    assert shown == ([label] if label else [])
    if label:
        [address] = re.findall(rf'action="(/jobs/{run.job_id}/[a-z-]+)"|$', page)[:1]
        organizer.post(address)
        run.job.refresh_from_db()
        expected = (JobState.RUNNING, True) if state == "running" else (JobState.WAITING, False)
        assert (run.job.state, run.job.cancel_requested_at is not None) == expected


def test_run_of_a_method_that_is_gone_still_has_its_page(organizer, run):
    AnonymizationRun.objects.update(method="bought-elsewhere")
    assert "bought-elsewhere" in read_page(organizer.get(RUN))
    assert organizer.get(f"{RUN}voices.csv").status_code == 404
    assert "no longer in this portal" in read_page(organizer.get("/systems/b2-tones/"))
    file = run.submission.files.filter(data_set=run.data_set).first()
    assert organizer.get(f"/systems/b2-tones/files/{file.pk}/").status_code == 200
