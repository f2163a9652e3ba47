"""Pages of runs of anonymisers: the form that starts them, the page of a run, its voices, and who sees what."""

import io
import re
from uuid import uuid4

import pytest
from django.utils import timezone

from anonymization.app.models import AnonymizationRun
from anonymization.methods.contract import Method, Option
from anonymization.methods.registry import get_method, methods
from anonymization.methods.voices.files import read_voices
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
from tests.portal.measured_runs import make_anonymization_run, make_measured_run, make_planned_run

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
    assert "<summary>Methods that cannot run here</summary>" in page
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


def test_wrong_option_is_named_at_its_field(organizer, corpus):
    method = Method(
        "tuned",
        "Tuned",
        "1",
        "Nobody",
        lambda samples, *_: samples,
        options=(Option("gain", 1.0, "how loud", low=0.5, high=2.0), Option("kind", "a", "which", choices=("a", "b"))),
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(forms, "methods", lambda: (method,))
        post = asked(corpus, method="tuned", tuned__gain="9", tuned__kind="c")
        found = errors_of(organizer.post(FORM, post))
    assert set(found) == {"tuned__gain", "tuned__kind"}
    assert "2.0" in found["tuned__gain"]
    assert System.objects.count() == 0


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


def test_pace_of_each_method_is_told_by_its_own_runs_or_a_trial(organizer, system):
    data_set = system.corpus.data_sets.get(name="tones_trials_f")
    now = timezone.now()
    for method, took_s in (("mcadams-2022", 1.2), ("mcadams-2024", 4.8)):
        job = make_anonymization_run(make_system(system.corpus, method), data_set, method=method).job
        AnonymizationRun.objects.filter(job=job).update(recipe_version=get_method(method).version)
        Job.objects.filter(pk=job.pk).update(started_at=now - timezone.timedelta(seconds=took_s), finished_at=now)
    version = get_method("pitch-shift-psola").version
    tried = {
        "pitch-shift-psola": {"version": version, "work_per_second": 0.25},
        "pitch-shift-vocoder": {"version": "of last year", "work_per_second": 0.01},
        "other": {"reason": "none"},
    }
    trial = make_measured_run(system, data_set).job
    Job.objects.filter(pk=trial.pk).update(started_at=now - timezone.timedelta(seconds=2.4), finished_at=now)
    Job.objects.create(
        kind="try-anonymizers",
        queue="cpu",
        title="Trial",
        state=JobState.SUCCEEDED,
        waiting_since=now,
        finished_at=now,
        result={"methods": tried},
    )
    form = organizer.get(FORM).context["form"]
    cards = {card.method.name: card for card in form.method_choices()}
    # 4 utterances of 0.6 s in 1.2 s and 4.8 s of work; measured in 2.4 s.
    assert cards["mcadams-2022"].pace_text == "2 s of speech in a second, by 1 run here"
    assert cards["mcadams-2024"].pace_text == "0.5 s of speech in a second, by 1 run here"
    assert cards["pitch-shift-psola"].pace_text == "4 s of speech in a second, by a trial here"
    assert (cards["pitch-shift-vocoder"].pace_text, cards["pitch-shift-vocoder"].cost) == ("", None)
    assert cards["mcadams-2024"].cost == pytest.approx(2.0 + 1.0)


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


def test_page_of_a_run_shows_settings_voices_and_what_was_found(organizer, run):
    run.report = {
        "problems": [
            {
                "code": "clipped",
                "severity": "warning",
                "file": "tones-s0-002",
                "line": None,
                "count": 1,
                "expected": "less",
                "found": "more",
                "remedy": "Lower the gain.",
            },
            {
                "code": "clipped",
                "severity": "warning",
                "file": "further",
                "line": None,
                "count": 7,
                "expected": "less",
                "found": "the like",
                "remedy": "Lower the gain.",
            },
        ],
        "voices": {"sentence": "2 speakers at speaker level. Voices differ as required.", "problems": []},
    }
    run.save()
    page = read_page(organizer.get(RUN))
    for words in (
        "B2: McAdams coefficient (2022)",
        "mcadams-2022, version 1",
        "<code>1.2.3</code>",
        "2022 <span",
        "Speaker level: a voice for each speaker",
        "<dt>Level</dt><dd>kept",
        "Clipped</span>",
        "8 ×",
        "tones-s0-002",
        "Voices differ as required.",
        "4 of 4 utterances are anonymised",
        run.job.get_absolute_url(),
    ):
        assert words in page, words
    shown = {row["speaker"]: (row["utterances"], row["values"][0][1]) for row in organizer.get(RUN).context["voices"]}
    assert shown == {name: (2, run.voices[name]["parameters"]["alpha"]) for name in ("tones-s0", "tones-s2")}
    assert len(run.voices) == 4
    for _, value in shown.values():
        assert f"{value:.4f}" in page


def test_voices_come_as_the_file_that_the_command_line_reads(organizer, run):
    response = organizer.get(f"{RUN}voices.csv")
    assert response.headers["Content-Disposition"] == 'attachment; filename="b2-tones-tones_trials_f-voices.csv"'
    read = read_voices(io.StringIO(response.content.decode()), "voices.csv")
    assert (read.problems, read.parameter_names) == ((), ("alpha",))
    found = {
        row.speaker: (row.role, row.split, row.level, row.voice.key, dict(row.voice.parameters))
        for row in read.assignments
    }
    assert found == {
        speaker: ("trial", "undivided", "speaker", voice["key"], voice["parameters"])
        for speaker, voice in run.voices.items()
    }


def test_numbers_of_a_published_leaderboard_open_no_run(client, corpus):
    edition = make_edition(corpus, published_at=timezone.now())
    system = make_team_system(make_team(edition))
    make_submission(system)
    make_planned_run(system, corpus.data_sets.get(name="tones_trials_f"))
    client.force_login(make_user())
    assert client.get(f"/systems/{system.name}/").status_code == 200
    assert client.get(f"/systems/{system.name}/runs/tones_trials_f/").status_code == 404


@pytest.mark.parametrize(
    ("state", "label"),
    [
        ("running", "Cancel the job"),
        ("failed", "Run again"),
        ("succeeded", None),
    ],
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


def test_run_keeps_its_voices_where_another_version_names_its_parameters_otherwise(organizer, run):
    """As after an update of a plug-in: the number that is known no more is shown by its name."""
    voices = {
        name: {"key": voice["key"], "parameters": {"warp": 0.25 + place}}
        for place, (name, voice) in enumerate(sorted(run.voices.items()))
    }
    AnonymizationRun.objects.update(voices=voices)
    response = organizer.get(RUN)
    assert [
        (row["speaker"], [(one.name, value) for one, value in row["values"]]) for row in response.context["voices"]
    ] == [
        ("tones-s0", [("warp", 0.25)]),
        ("tones-s2", [("warp", 2.25)]),
    ]
    page = read_page(response)
    assert ("A parameter of another version of the method" in page, "2.2500" in page) == (True, True)
    read = read_voices(io.StringIO(organizer.get(f"{RUN}voices.csv").content.decode()), "voices.csv")
    assert (read.problems, read.parameter_names, len(read.assignments)) == ((), ("warp",), 4)
    file = run.submission.files.filter(data_set=run.data_set).order_by("utterance__name").first()
    page = read_page(organizer.get(f"/systems/b2-tones/files/{file.pk}/"))
    assert ("<dt>warp</dt>" in page, "drawn from 0 to 0" in page) == (True, False)
