"""Home, corpora, jobs and operations without a browser: who may see them, how many queries, what they find."""

from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from portal.challenges.models import DataSet, Edition
from portal.corpora.services import DEMO_CORPUS
from portal.home.next_steps import edition_path, select_organized
from portal.home.pages import home_page, open_failures
from portal.jobs.models import Job
from portal.submissions.models import Submission, System, Upload
from portal.teams.models import Team
from tests.pages import read_page
from tests.portal.factories import (
    make_corpus,
    make_edition,
    make_job,
    make_operator,
    make_organizer,
    make_submission,
    make_system,
    make_team,
    make_team_system,
    make_user,
    write_manifest,
)

pytestmark = pytest.mark.django_db
NOW, DAY = timezone.now(), timedelta(days=1)


@pytest.fixture
def organizer(client):
    user = make_organizer()
    client.force_login(user)
    return user


# Who may see what ---------------------------------------------------------------------------------


def test_home_without_a_role_shows_nothing_of_others_work(client):
    make_system(make_corpus("quiet-corpus"), "quiet-system")
    make_job(title="Quiet job")
    client.force_login(make_user())
    page = client.get("/").content.decode()
    assert "quiet" not in page.lower().replace("button quiet", "")
    assert "ask its operator" in page


@pytest.mark.parametrize("address", ["/corpora/tones/sets/other_enrolls/", "/corpora/tones/utterances/other-s0-000/"])
def test_unknown_things_are_not_found_even_when_another_corpus_has_them(client, organizer, address):
    make_corpus("tones", with_audio=False)
    make_corpus("other", with_audio=False)
    assert client.get(address).status_code == 404


# Queries ------------------------------------------------------------------------------------------


def _clock():
    """How many queries read the time for jobs that run."""
    return int(connection.vendor == "postgresql")


def _count_queries(client, assert_num_queries, address, expected):
    with assert_num_queries(expected):
        assert client.get(address).status_code == 200


def test_utterance_lists_query_count_does_not_grow(client, organizer, django_assert_num_queries):
    make_corpus(speakers=3, utterances=1, with_audio=False)
    _count_queries(client, django_assert_num_queries, "/corpora/tones/utterances/", 5)
    _count_queries(client, django_assert_num_queries, "/corpora/tones/sets/tones_enrolls/", 8)


def test_job_list_query_count_does_not_grow(client, organizer, django_assert_num_queries):
    first = make_job("running", created_by=organizer)
    for _ in range(2):
        make_job(after=first, created_by=make_organizer())
    _count_queries(client, django_assert_num_queries, "/jobs/", 5 + _clock())
    _count_queries(client, django_assert_num_queries, "/jobs/table", 5 + _clock())


def test_home_query_count_does_not_grow(client, organizer, django_assert_num_queries):
    things = 3
    for number in range(things):
        make_system(make_corpus(f"tones{number}", with_audio=False), f"system{number}")
        make_job(title=f"Job {number}")
        make_job("failed", failure="It failed.")
        make_edition(organizers=[organizer])
    _count_queries(client, django_assert_num_queries, "/", 22 + _clock())  # with what jobs wait for


def test_home_of_an_organizer_has_editions_with_what_waits_in_them(client, organizer):
    edition = make_edition(organizers=[organizer], name="mine", title="Mine")
    make_edition(name="other", title="Of somebody else", is_listed=False)
    for state in ("waiting", "waiting", "approved"):
        make_team(edition, state=state)
    for state in ("received", "evaluating", "evaluated", "refused", "checking"):
        make_submission(make_team_system(edition.teams.last(), label=f"p-{state}"), state=state)
    [path] = client.get("/").context["paths"]
    assert (path.edition, path.edition.waiting, path.edition.under_way) == (edition, 2, 3)
    assert (path.next.title, path.next.url) == ("2 teams wait for approval", "/editions/mine/teams/")
    page = read_page(client.get("/"))
    assert '<a href="/editions/mine/teams/">2 teams waiting</a>' in page
    assert '<a href="/editions/mine/submissions/">3 submissions under way</a>' in page
    assert 'href="/editions/mine/leaderboard/"' in page
    assert "Of somebody else" not in page


def test_way_of_an_edition_is_ticked_and_leads_on(organizer):
    edition = make_edition(name="mine", organizers=[organizer], is_listed=False, corpus=None)

    def found():
        path = edition_path(select_organized(organizer).get(), timezone.now())
        return [step.title for step in path.steps if step.state == "succeeded"], path.next and path.next.url

    def set_up(**fields):
        type(edition).objects.filter(pk=edition.pk).update(**fields)

    done: list[str] = []
    assert found() == (done, "/editions/mine/edit/")
    set_up(corpus=make_corpus(speakers=1, utterances=1))
    done += ["Corpus"]
    assert found() == (done, "/editions/mine/edit/")
    set_up(is_listed=True)
    done += ["Challenge"]
    assert found() == (done, "/systems/new/tones/?edition=mine")
    corpus = edition.__class__.objects.get().corpus
    make_system(corpus)  # of the corpus alone, which stands on no leaderboard
    assert found() == (done, "/systems/new/tones/?edition=mine")
    system = System.objects.create(name="b2", title="B2", corpus=corpus, edition=edition, is_baseline=True)
    baseline = make_submission(system, state="evaluating")
    assert found() == (done, "/editions/mine/teams/")
    assert edition_path(select_organized(organizer).get(), timezone.now()).steps[2].url == "/systems/b2/"
    data_set = DataSet.objects.first()
    baseline.anonymization_runs.create(
        method="b2", seed=1, data_set=data_set, job=make_job("failed", failure="It failed.")
    )
    Submission.objects.update(state="received")
    assert found() == (done, "/systems/new/tones/?edition=mine")
    baseline.evaluated_at, baseline.state = timezone.now(), "withdrawn"
    baseline.save()
    assert found() == (done, "/systems/new/tones/?edition=mine")
    Submission.objects.update(state="evaluated")
    done += ["Baseline"]
    assert found() == (done, "/editions/mine/teams/")
    make_team(edition)
    done += ["Teams"]
    new = "/studies/new/?edition=mine"
    assert found() == (done, "/editions/mine/submissions/"), "nobody has submitted: it would be of baselines alone"
    set_up(submissions_close_at=timezone.now())
    assert found() == (done, new)
    set_up(submissions_close_at=None)
    make_submission(make_team_system(edition.teams.get()), state="accepted")
    assert found() == (done, new)
    set_up(published_at=timezone.now())
    assert found() == ([*done, "Published"], new)
    study = edition.studies.create(name="heard", title="Heard")
    for state, url in (("draft", "/studies/heard/"), ("prepared", "/studies/heard/"), ("open", None)):
        edition.studies.update(state=state)
        assert found() == ([*done, "Published"], url)
    edition.studies.update(state="closed")
    done += ["Listening test"]
    assert found() == (done, "/studies/heard/results/")
    edition.studies.update(results_published_at=timezone.now())
    board = "/editions/mine/leaderboard/"
    assert found() == ([*done, "Published"], board)
    assert not home_page(organizer)["paths"][0].next.is_due
    newer = make_edition(organizers=[organizer], name="newer")
    Job.objects.update(state="succeeded")
    Submission.objects.all().delete()
    assert home_page(organizer)["paths"][1].next.url == board, "nobody waits for a baseline any more"
    assert home_page(organizer)["main"] == newer
    newer.delete()
    assert study.name in "".join(step.url for step in home_page(organizer)["paths"][0].steps)


def test_page_of_an_edition_has_one_button_for_what_its_organizer_does_next(client, organizer):
    edition = make_edition(name="mine", organizers=[organizer])
    make_team(edition, state="waiting")
    page = read_page(client.get("/editions/mine/"))
    assert page.count('class="button') == 1 + page.count("Log out</button>")
    assert "1 waiting" in page
    assert '<a class="button end" href="/editions/mine/teams/">Look at the teams</a>' in page


def test_home_of_a_team_says_what_was_refused_first_and_what_is_next():
    member, now = make_user(), timezone.now()
    states = {"new": None, "bad": "refused", "shown": "refused", "good": "evaluated", "busy": "checking"}
    for name, state in states.items():
        edition = make_edition(name=name, title=name.title(), published_at=now if name == "shown" else None)
        team = make_team(edition, owner=member)
        if state:
            make_submission(make_team_system(team, label="T01-p1"), state=state)
    out = make_edition(name="out", published_at=now)
    make_submission(make_team_system(make_team(out, owner=member), label="T01-p1"), state="evaluated")
    make_team(make_edition(name="asked"), owner=member, state="waiting")
    fresh = make_edition(name="fresh", corpus=make_corpus(speakers=1, utterances=1), shares_data=True)
    make_team(fresh, owner=member)
    for busy in Team.objects.filter(edition__name="busy"):
        busy.memberships.create(user=make_user())
    page = home_page(member)
    assert len(page["submissions"]) == 5
    found = page["steps"]
    assert [step.title.endswith("was refused") for step in found] == [True, True] + [False] * 6
    steps = {step.title.partition(": ")[2]: step.url for step in found}
    said = " ".join(steps)
    for words in (
        "submit your system",
        "is evaluated",
        "is being checked",
        "leaderboard is published",
        "wait for approval",
    ):
        assert words in said
    assert (steps["submit your system"], steps["get the data"]) == ("/editions/new/submit/", "/editions/fresh/data/")
    Team.objects.get(edition__name="fresh").data_acceptances.create(
        edition=Edition.objects.get(name="fresh"), user=member, text="Terms", accepted_at=now
    )
    assert [step.url for step in home_page(member)["steps"]].count("/editions/fresh/submit/") == 1


def test_home_of_a_team_leads_to_its_unfinished_upload():
    member = make_user()
    edition = make_edition(name="cut")
    team = make_team(edition, owner=member)
    upload = Upload.objects.create(
        edition=edition, team=team, file_name="a.zip", size=9_000_000, offset=3_000_000, expires_at=timezone.now() + DAY
    )
    [step] = home_page(member)["steps"]
    assert step.title.endswith("finish the upload of a.zip")
    assert (step.url, "3\u00a0MB of 9\u00a0MB have arrived." in step.text) == (
        f"/editions/cut/submit/?team={team.pk}",
        True,
    )
    Upload.objects.filter(pk=upload.pk).update(state=Upload.State.ABANDONED)
    assert [url for _, url in _steps(member)] == ["/editions/cut/submit/"]


def test_home_names_an_open_invitation_before_registration(settings):
    settings.MAIL_SERVER = object()
    invited = make_user(email="new@uni.example")
    team = make_team(make_edition(name="open", title="Open one"), name="Bats")
    link = {"secret_hash": "1", "expires_at": timezone.now() + DAY}
    one = team.invitations.create(email="New@Uni.example", **link)
    [step] = home_page(invited)["steps"]
    assert (step.title, step.url) == ("Join the team Bats in Open one", "")
    assert "the mail to New@Uni.example of" in step.text
    team.invitations.filter(pk=one.pk).update(revoked_at=timezone.now())
    [step] = home_page(invited)["steps"]
    assert step.action == "Register a team"


def test_operator_without_an_organizer_is_told_to_invite_one(settings):
    operator = make_operator()
    assert [url for _, url in _steps(operator)] == ["/people/invite/", "/docs/operator/#accounts-and-mail"]
    make_organizer()
    settings.MAIL_SERVER = object()
    assert _steps(operator) == []


# Corpora ------------------------------------------------------------------------------------------


def _names(response):
    return [utterance.name for utterance in response.context["page"]]


def test_utterances_are_found_by_text_gender_and_speaker(client, organizer):
    make_corpus(speakers=3, utterances=1, with_audio=False)
    find = "/corpora/tones/utterances/"
    assert len(_names(client.get(find))) == 6
    assert _names(client.get(find, {"text": "sentence 1 of speaker 2"})) == ["tones-s2-001"]
    assert _names(client.get(find, {"text": "S1-000"})) == ["tones-s1-000"]
    assert _names(client.get(find, {"gender": "m"})) == ["tones-s1-000", "tones-s1-001"]
    assert _names(client.get(find, {"speaker": "tones-s2", "text": "001"})) == ["tones-s2-001"]
    assert len(_names(client.get(find, {"gender": "x"}))) == 6
    assert _names(client.get(find, {"text": "nowhere"})) == []


# Import -------------------------------------------------------------------------------------------


def _import_errors(client, **fields):
    response = client.post("/corpora/import/", fields)
    assert response.status_code == 422
    return {name: list(errors) for name, errors in response.context["form"].errors.items()}


def test_demo_corpus_is_imported_by_a_button(client, organizer):
    assert "Import the demo corpus" in client.get("/corpora/import/").content.decode()
    url = client.post("/corpora/import/demo/").url
    job = Job.objects.get()
    assert (job.kind, job.parameters["name"], job.parameters["is_shared"]) == ("import-corpus", "demo", True)
    assert (url, job.parameters["folder"]) == (job.get_absolute_url(), str(DEMO_CORPUS))
    again = client.post("/corpora/import/demo/", follow=True)
    assert ("is under way already" in read_page(again), again.redirect_chain) == (True, [(url, 302)])
    make_corpus("demo", speakers=1, utterances=1)
    assert "Import the demo corpus" not in client.get("/corpora/import/").content.decode()


def test_import_form_takes_a_name_below_an_open_folder_and_no_way_out_of_it(client, organizer, tmp_path, settings):
    settings.IMPORT_ROOTS = [tmp_path / "import", tmp_path / "more"]
    folder = write_manifest(tmp_path / "more" / "deep" / "speech")
    (tmp_path / "import").mkdir()
    (tmp_path / "more" / "link").symlink_to("/etc")
    below = f"{tmp_path}/import or {tmp_path}/more"
    for named in ("../../..", "deep/../../..", "link", "/etc"):
        errors = _import_errors(client, found="other", folder=named, name="tones")
        told = (
            f"Expected a folder below {below}, found {named}."
            if named != "link"
            else f"There is no folder “link” below {below}."
        )
        assert errors == {"folder": [told]}
    client.post("/corpora/import/", {"found": "other", "folder": "deep/speech", "name": "tones"})
    assert Job.objects.get().parameters["folder"] == str(folder)


# Jobs ---------------------------------------------------------------------------------------------


def test_job_list_is_filtered_by_state_and_ignores_unknown_states(client, organizer):
    make_job("running")
    make_job("failed", title="The failed one")
    found = client.get("/jobs/", {"state": "failed"}).context["jobs"]
    assert [job.title for job in found] == ["The failed one"]
    assert len(client.get("/jobs/", {"state": "odd"}).context["jobs"]) == 2


def test_polled_parts_stop_when_nothing_is_under_way(client, organizer):
    job = make_job("running")
    assert [client.get(f"/jobs/{part}").status_code for part in ("table", f"{job.pk}/status")] == [200, 200]
    Job.objects.update(state="succeeded", claim=None, finished_at=timezone.now())
    assert [client.get(f"/jobs/{part}").status_code for part in ("table", f"{job.pk}/status")] == [286, 286]


def test_technical_detail_of_a_job_is_for_the_operator(client, organizer):
    job = make_job("failed", failure="It failed.")
    job.events.create(attempt=1, level="trace", text="Traceback of a secret place")
    address = f"/jobs/{job.pk}/"
    assert "secret place" not in client.get(address).content.decode()
    client.force_login(make_operator())
    assert "secret place" in client.get(address).content.decode()


# Home and operations ------------------------------------------------------------------------------


def _steps(user):
    return [(step.title, step.url) for step in home_page(user)["steps"]]


def test_failures_leave_the_home_page_when_they_are_fixed_or_old(organizer):
    now = timezone.now()
    old = make_job("failed", finished_at=now - timedelta(days=7, seconds=1), failure="Old.")
    make_job("failed", parameters={"name": "tones"}, finished_at=now - timedelta(hours=2))
    make_job("succeeded", parameters={"name": "tones"}, finished_at=now - timedelta(hours=1))
    make_job("succeeded", parameters={"name": "other"})
    assert open_failures(organizer, now) == []
    again = make_job("failed", parameters={"name": "tones"}, finished_at=now - timedelta(minutes=30))
    recent = make_job("failed", kind="measure", parameters={"run": 1}, finished_at=now - timedelta(days=6))
    assert open_failures(organizer, now) == [again, recent]
    assert open_failures(organizer, now - timedelta(seconds=2)) == [again, recent, old]
    make_job("failed", parameters={"name": "toms", "folder": "/speech"}, finished_at=now - timedelta(hours=2))
    make_job("succeeded", parameters={"name": "voices", "folder": "/speech"}, finished_at=now - timedelta(hours=1))
    make_job("failed", kind="import-ratings", parameters={"file": "a.csv"}, finished_at=now - timedelta(hours=2))
    make_job("succeeded", kind="import-ratings", parameters={"file": "a.csv"}, finished_at=now - timedelta(hours=1))
    assert open_failures(organizer, now) == [again, recent]
    make_job("failed", kind="backup", failure_actor="operator")
    own = make_job("failed", kind="measure", parameters={"run": 2}, failure_actor="operator", created_by=organizer)
    assert open_failures(organizer, now) == [own, again, recent]
    assert len(open_failures(make_operator(), now)) == 4
