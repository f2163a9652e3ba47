"""Home, corpora, jobs and operations without a browser: who may see them, how many queries, what they find."""

import csv
import io
from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from listening.app.models import Study
from portal.challenges.models import DataSet, Edition, Role
from portal.corpora.selectors import data_set_table, plan_table, trial_table
from portal.corpora.services import DEMO_CORPUS
from portal.home.pages import home_page, open_failures
from portal.jobs.models import Job
from portal.submissions.models import Submission, System, Upload
from portal.teams.models import Team
from tests.listening.own_factories import make_own_draft
from tests.pages import read_page
from tests.portal.factories import (
    make_corpus,
    make_edition,
    make_job,
    make_operator,
    make_organizer,
    make_problem,
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


@pytest.mark.parametrize(
    "address",
    [
        "/corpora/tones/sets/other_enrolls/",
        "/corpora/tones/utterances/other-s0-000/",
    ],
)
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
        [path] = home_page(organizer)["paths"]
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
    assert found() == (done, "/editions/mine/")
    assert home_page(organizer)["paths"][0].steps[2].url == "/systems/b2/"
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
    assert found() == (done, "/editions/mine/")
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


def test_way_of_an_edition_says_to_close_a_test_whose_blocks_are_finished(client, organizer):
    corpus = make_corpus(speakers=1, utterances=1)
    edition = make_edition(name="mine", organizers=[organizer], corpus=corpus)
    system = System.objects.create(name="b2", title="B2", corpus=corpus, edition=edition, is_baseline=True)
    make_submission(system)
    team = make_team(edition)
    study = edition.studies.create(name="heard", title="Heard", state="open", launched_at=timezone.now())
    first, second = (study.blocks.create(number=number, is_finished=number == 1) for number in (1, 2))

    def found():
        [path] = home_page(organizer)["paths"]
        steps = {step.title: (step.state, step.note) for step in path.steps}
        return steps["Listening test"], steps["Published"], path.next.title if path.next else ""

    assert found() == (("running", "under way"), ("waiting", ""), "Publish the leaderboard")
    type(edition).objects.update(published_at=timezone.now())
    assert found()[2] == "Heard: 1 of 2 blocks are finished"
    type(edition).objects.update(published_at=None)
    draft = Study.objects.create(name="next", title="Next", edition=edition)  # the open one is named before it
    assert found()[0] == ("running", "under way")
    draft.delete()
    second.is_finished = True
    second.save()
    assert first.is_finished
    complete = ("waiting", "to be closed: every block is finished")
    assert found() == (complete, ("waiting", ""), "Close Heard")
    submission = make_submission(make_team_system(team), state="evaluating")
    Study.objects.update(state="closed", results_published_at=timezone.now())
    assert found()[1:] == (("waiting", "not before 1 submission is evaluated"), "")
    Submission.objects.filter(pk=submission.pk).update(state="evaluated")
    hidden = ("succeeded", "its results are hidden until the leaderboard is published again")
    assert found() == (hidden, ("waiting", ""), "Publish the leaderboard")
    page = read_page(client.get("/studies/heard/"))
    assert "are hidden until the leaderboard is published again." in page
    assert "are published." not in page
    type(edition).objects.update(published_at=timezone.now())
    assert "are published." in read_page(client.get("/studies/heard/"))
    assert "Its published results stay public" in read_page(client.get("/manage/studies/heard/archive/"))
    Study.objects.update(archived_at=timezone.now())
    assert found()[0] == ("succeeded", "archived")
    assert "Its published results stay public" in read_page(client.get("/studies/heard/"))
    page = read_page(client.get("/studies/"))
    assert ("Every listening test is archived" in page, "No listening test yet" in page) == (True, False)
    draft = Study.objects.create(name="next", title="Next", edition=edition)
    assert found()[::2] == (("succeeded", "archived"), "Prepare Next"), "a draft turns no finished step back"
    Study.objects.exclude(pk=draft.pk).update(archived_at=None)
    assert found()[::2] == (("succeeded", ""), "Prepare Next")
    Study.objects.filter(pk=draft.pk).update(state="prepared")
    assert found()[::2] == (("succeeded", ""), "Launch Next")
    draft.delete()
    Study.objects.update(archived_at=None)
    type(edition).objects.update(published_at=None)
    check = make_job(kind="intake", state="running")
    Submission.objects.filter(pk=submission.pk).update(state="checking", job=check)
    assert found()[1:] == (("waiting", "not before 1 submission is evaluated"), "")
    for state in ("failed", "cancelled"):
        Job.objects.filter(pk=check.pk).update(state=state)
        assert found() == (hidden, ("waiting", ""), "Publish the leaderboard")


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
    assert (step.url, "3 MB of 9 MB have arrived." in step.text) == (f"/editions/cut/submit/?team={team.pk}", True)
    Upload.objects.filter(pk=upload.pk).update(state=Upload.State.ABANDONED)
    assert [url for _, url in _steps(member)] == ["/editions/cut/submit/"]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"state": "evaluated", "evaluated_at": NOW}, "See your ranks."),
        ({"state": "evaluated", "evaluated_at": NOW, "is_held": True}, "until the organizer releases its numbers."),
        ({"state": "evaluated", "evaluated_at": NOW + 2 * DAY}, "the leaderboard is as of an earlier time."),
        ({"state": "failed"}, "is not on it: it could not be evaluated."),
        (None, "Your team has no system on it."),
    ],
)
def test_home_says_what_of_a_team_is_on_a_published_leaderboard(fields, said):
    member = make_user()
    over = {"submissions_close_at": NOW, "published_at": NOW, "frozen_at": NOW + DAY}
    team = make_team(make_edition(name="over", **over), owner=member)
    if fields:
        make_submission(make_team_system(team), **fields)
    [step] = home_page(member)["steps"]
    assert (step.url, step.text.endswith(said)) == ("/editions/over/leaderboard/", True), step.text


def test_home_passes_over_what_was_refused_before_a_version_that_was_withdrawn():
    member = make_user()
    team = make_team(make_edition(name="open"), owner=member)
    system = make_team_system(team)
    make_submission(system, state="refused")
    assert "was refused" in _steps(member)[0][0]
    make_submission(system, version=2, state="withdrawn")
    assert [url for _, url in _steps(member)] == ["/editions/open/submit/"]


def test_home_passes_over_a_repeated_archive():
    member = make_user()
    system = make_team_system(make_team(make_edition(name="open"), owner=member))
    make_submission(system)
    make_submission(system, version=2, state="refused", report_summary=[{"code": "same-archive"}])
    assert "is evaluated" in _steps(member)[0][0]
    make_submission(system, version=3, state="refused", report_summary=[{"code": "missing-file"}])
    assert "was refused" in _steps(member)[0][0]


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


def test_home_without_a_team_leads_to_open_registrations():
    make_edition(name="open", title="Open one")
    make_edition(name="hidden", is_listed=False)
    assert _steps(make_user()) == [("Take part in Open one", "/editions/open/register/")]


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


def test_plan_table_merges_genders_and_keeps_data_sets(organizer):
    corpus = make_corpus(speakers=3, utterances=2, with_audio=False)
    table = plan_table(data_set_table(corpus))
    found = [(row.subset, row.part, row.female, row.male, row.speakers, row.utterances) for row in table]
    assert found == [("tones", "Enrolment", 2, 1, 3, 6), ("tones", "Trial", 2, 1, 3, 6)]
    assert [row.data_set.name for row in table[1].members] == ["tones_trials_f", "tones_trials_m"]
    assert sum(row.seconds for row in table) == pytest.approx(12 * 0.6)


def test_plan_table_tells_common_from_different_trials(organizer):
    corpus = make_corpus("vctk_dev", speakers=2, with_audio=False)
    for gender in "fm":
        old = corpus.data_sets.get(name=f"vctk_dev_trials_{gender}")
        more = DataSet.objects.create(corpus=corpus, name=f"{old.name}_common", role=Role.TRIAL)
        more.utterances.set(old.utterances.all()[:1])
    free = DataSet.objects.create(corpus=corpus, name="pool", role=Role.TRAINING)
    free.utterances.set(corpus.utterances.all())
    table = plan_table(data_set_table(corpus))
    assert [(row.subset, row.part, row.utterances) for row in table] == [
        ("pool", "Training", 8),
        ("vctk_dev", "Enrolment", 4),
        ("vctk_dev", "Trial", 4),
        ("vctk_dev", "Trial (common)", 2),
    ]


def test_trial_table_counts_by_kind_and_gender_and_names_the_origin(organizer):
    corpus = make_corpus(speakers=5, utterances=2, with_audio=False)
    rows = trial_table(corpus, data_set_table(corpus))
    found = [(row.subset, row.kind, row.female, row.male, row.total, row.origin) for row in rows]
    assert found == [
        ("tones", "Same-speaker", 6, 4, 10, "full product of the same gender"),
        ("tones", "Different-speaker", 12, 4, 16, "full product of the same gender"),
    ]


# Import -------------------------------------------------------------------------------------------


def test_import_form_starts_a_job(client, organizer, tmp_path, settings):
    settings.IMPORT_ROOTS = [tmp_path]
    folder = write_manifest(tmp_path / "speech")
    response = client.post("/corpora/import/", {"folder": folder, "name": "tones"})
    job = Job.objects.get()
    assert response.headers["Location"] == f"/jobs/{job.pk}/"
    assert (job.parameters["folder"], job.parameters["name"]) == (str(folder), "tones")


def _import_errors(client, **fields):
    response = client.post("/corpora/import/", fields)
    assert response.status_code == 422
    return {name: list(errors) for name, errors in response.context["form"].errors.items()}


def test_import_form_refuses_folders_that_are_not_open(client, organizer, tmp_path, settings):
    settings.IMPORT_ROOTS = [tmp_path]
    errors = _import_errors(client, folder="/etc", name="tones")
    assert errors == {"folder": [f"Expected a folder below {tmp_path}, found /etc."]}
    errors = _import_errors(client, folder=f"{tmp_path}/../..", name="tones")
    assert errors == {"folder": [f"Expected a folder below {tmp_path}, found {tmp_path}/../..."]}
    errors = _import_errors(client, folder=f"{tmp_path}/none", name="a name")
    assert list(errors) == ["folder", "name"]


def _choices(client, query=""):
    return [str(text) for _, text in client.get(f"/corpora/import/{query}").context["form"].fields["found"].choices]


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


def test_import_form_offers_what_looks_like_a_corpus(client, organizer, tmp_path, settings):
    settings.IMPORT_ROOTS = [tmp_path]
    assert "found" not in client.get("/corpora/import/").context["form"].fields
    folder = write_manifest(tmp_path / "more" / "speech")
    (tmp_path / "LibriSpeech" / "dev" / "1" / "2").mkdir(parents=True)
    (tmp_path / "LibriSpeech" / "dev" / "1" / "2" / "1-2.trans.txt").touch()
    assert _choices(client) == [
        f"{tmp_path}/LibriSpeech (LibriSpeech tree)",
        f"{folder} (CSV manifest)",
        "Another folder: “Folder on the server” below",
    ]
    client.post("/corpora/import/", {"found": folder, "folder": "", "name": "tones"})
    assert Job.objects.get().parameters["folder"] == str(folder)


def test_import_form_takes_one_answer_for_the_folder(client, organizer, tmp_path, settings):
    settings.IMPORT_ROOTS = [tmp_path]
    folder = write_manifest(tmp_path / "speech")
    missing = "Fill in “Folder on the server”, or choose a corpus above where one is listed."
    assert _import_errors(client, name="tones") == {"folder": [missing]}
    page = read_page(client.post("/corpora/import/", {"name": "tones"}))
    assert 'on your own machine? <a href="/corpora/upload/">Upload an archive instead</a>' in page
    gone = "This corpus no longer exists. Choose another one."
    assert _import_errors(client, found="/etc", name="tones") == {"found": [gone]}
    assert _import_errors(client, folder=folder) == {"name": ["Give the corpus a name, such as libri-dev."]}
    other = write_manifest(tmp_path / "other")
    both = f"Both {folder} and other are given. Choose “Another folder”, or empty this field."
    assert _import_errors(client, found=folder, folder="other", name="tones") == {"folder": [both]}
    # What is named counts in place of what the form had chosen.
    client.post("/corpora/import/", {"found": other, "folder": folder, "name": "tones"})
    assert Job.objects.get().parameters["folder"] == str(folder)


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
    assert "No job is cancelled." in client.get("/jobs/", {"state": "cancelled"}).content.decode()
    assert "No job succeeded." in client.get("/jobs/", {"state": "succeeded"}).content.decode()


def test_jobs_stand_under_what_they_are_for_and_mails_are_asked_for(client):
    organizer = make_organizer()
    client.force_login(organizer)
    edition = make_edition(make_corpus(), organizers=[organizer])
    make_job("succeeded", edition=edition.name, title="Check of one")
    make_job("succeeded", corpus="tones", title="Import of tones")
    make_job("succeeded", kind="send-notice", edition=edition.name, title="Mail that left")
    make_job("failed", kind="send-notice", edition=edition.name, title="Mail that did not")
    table = client.get("/jobs/").context["listing"]
    found = {group.band: {row.cells[0].text for row in group.rows} for group in table.groups}
    assert found == {edition.title: {"Check of one", "Mail that did not"}, "Corpus tones": {"Import of tones"}}
    assert len(client.get("/jobs/", {"mails": "on"}).context["jobs"]) == 4
    chosen = client.get("/jobs/", {"for": f"edition:{edition.name}", "mails": "on"}).context["jobs"]
    assert {job.edition for job in chosen} == {edition.name}


def test_polled_parts_stop_when_nothing_is_under_way(client, organizer):
    job = make_job("running")
    assert [client.get(f"/jobs/{part}").status_code for part in ("table", f"{job.pk}/status")] == [200, 200]
    Job.objects.update(state="succeeded", claim=None, finished_at=timezone.now())
    assert [client.get(f"/jobs/{part}").status_code for part in ("table", f"{job.pk}/status")] == [286, 286]


def test_job_page_groups_problems_and_the_csv_has_all_of_them(client, organizer):
    problems = [make_problem(file=f"{number}.wav") for number in range(60)]
    problems += [make_problem("short", "note"), make_problem(remedy="Resample it.")]
    job = make_job("failed", problems=problems, failure="It failed.")
    page = read_page(client.get(f"/jobs/{job.pk}/"))
    assert "61 errors, 1 note, by cause." in page
    assert [page.count(text) for text in ("60 ×", "1 ×", "scrolls through the first 50 of 60")] == [1, 2, 1]
    table = list(csv.DictReader(io.StringIO(client.get(f"/jobs/{job.pk}/problems.csv").content.decode())))
    assert [row["file"] for row in table[:60]] == [f"{number}.wav" for number in range(60)]
    assert len(table) == 62


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


def test_who_has_a_test_of_own_recordings_is_asked_for_no_corpus(organizer):
    make_own_draft(organizer)
    assert _steps(organizer) == []


def test_next_steps_lead_from_import_to_a_baseline(organizer):
    own = "Or make a listening test", "/studies/new/recordings/"
    assert _steps(organizer) == [("Import your first corpus", "/corpora/import/"), own]
    assert [step.url for step in home_page(organizer)["outline"]] == ["/corpora/import/", "", "", "", "", ""]
    corpus = make_corpus(speakers=1, utterances=1)
    make_corpus("lists", with_audio=False)
    assert _steps(organizer) == [
        ("Set up your first challenge", "/editions/new/"),
        ("Add the audio of lists", "/corpora/import/?name=lists&folder=%2Fspeech%2Flists&layout=manifest"),
        ("Anonymise tones", "/systems/new/tones/"),
    ]
    make_system(corpus)
    assert [step.url for step in home_page(organizer)["outline"]][:2] == ["/corpora/", "/editions/new/"]
    edition = make_edition(organizers=[organizer])
    page = home_page(organizer)
    assert (page["outline"], page["main"]) == ((), edition)
    assert [title for title, _ in _steps(organizer)] == ["Add the audio of lists"]


def test_next_steps_begin_with_failures(organizer):
    job = make_job("failed", title="Import of x", failure="Nothing was imported.")
    assert _steps(organizer)[0] == ("“Import of x” failed", f"/jobs/{job.pk}/")
    make_job("failed")
    assert _steps(organizer)[0] == ("2 jobs failed", "/jobs/?state=failed")


def test_failures_leave_the_home_page_when_they_are_fixed_or_old(organizer):
    now = timezone.now()
    old = make_job("failed", finished_at=now - timedelta(days=7, seconds=1), failure="Old.")
    fixed = make_job("failed", parameters={"name": "tones"}, finished_at=now - timedelta(hours=2))
    make_job("succeeded", parameters={"name": "tones"}, finished_at=now - timedelta(hours=1))
    make_job("succeeded", parameters={"name": "other"})
    assert open_failures(organizer, now) == []
    again = make_job("failed", parameters={"name": "tones"}, finished_at=now - timedelta(minutes=30))
    recent = make_job("failed", kind="measure", parameters={"run": 1}, finished_at=now - timedelta(days=6))
    assert open_failures(organizer, now) == [again, recent]
    assert open_failures(organizer, now - timedelta(seconds=2)) == [again, recent, old]
    assert fixed not in open_failures(organizer, now)
    make_job("failed", parameters={"name": "toms", "folder": "/speech"}, finished_at=now - timedelta(hours=2))
    make_job("succeeded", parameters={"name": "voices", "folder": "/speech"}, finished_at=now - timedelta(hours=1))
    make_job("failed", kind="import-ratings", parameters={"file": "a.csv"}, finished_at=now - timedelta(hours=2))
    make_job("succeeded", kind="import-ratings", parameters={"file": "a.csv"}, finished_at=now - timedelta(hours=1))
    assert open_failures(organizer, now) == [again, recent]
    make_job("failed", kind="backup", failure_actor="operator")
    own = make_job("failed", kind="measure", parameters={"run": 2}, failure_actor="operator", created_by=organizer)
    assert open_failures(organizer, now) == [own, again, recent]
    assert len(open_failures(make_operator(), now)) == 4


def test_operator_is_warned_of_a_queue_that_nobody_serves(client):
    client.force_login(make_operator())
    make_job(queue="cpu", waiting_since=timezone.now() - timedelta(minutes=1))
    assert "No worker takes the jobs" not in client.get("/operations/").content.decode()
    Job.objects.update(waiting_since=timezone.now() - timedelta(minutes=5))
    page = client.get("/operations/").content.decode()
    assert "No worker takes the jobs of the queue “computing”" in page
    assert "worker --queues cpu" in page
