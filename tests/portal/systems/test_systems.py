"""Pages of systems and results: what they show, what they hide, and what they cost."""

import csv
import io

import pytest
from django.utils import timezone

from evaluation.app.audio_measures.selectors import compare_pitch, list_finished_runs, read_values
from evaluation.app.models import EvaluationRun, MetricValue, UtteranceMeasure
from portal.jobs.models import Job, JobState
from tests.pages import read_page
from tests.portal.attack_runs import make_attack_run
from tests.portal.factories import add_files, make_corpus, make_organizer, make_submission, make_system
from tests.portal.measured_runs import make_anonymization_run, make_measured_run

pytestmark = pytest.mark.django_db


@pytest.fixture
def organizer(client):
    client.force_login(make_organizer())
    return client


@pytest.fixture
def system():
    """Two women and two men; everything anonymised and measured."""
    system = make_system(make_corpus("tones", speakers=4, utterances=2))
    for data_set in system.corpus.data_sets.all():
        make_anonymization_run(system, data_set)
        make_measured_run(system, data_set, rho=(0.2, 0.4, 0.6, 0.7))
    return system


def data_set_of(system, key):
    return system.corpus.data_sets.get(name=f"tones_{key}")


def rows_of(response):
    return list(csv.DictReader(io.StringIO(response.content.decode())))


# Who may look --------------------------------------------------------------------------------------


def test_file_of_another_system_is_not_found_under_this_one(organizer, system):
    other = make_system(system.corpus, name="other")
    file = other.submissions.get().files.first()
    assert organizer.get(f"/systems/b2-tones/files/{file.pk}/").status_code == 404
    assert organizer.get(f"/systems/other/files/{file.pk}/").status_code == 200


# The list ------------------------------------------------------------------------------------------


def test_list_tells_files_and_the_state_that_asks_for_attention(organizer, system):
    running = make_system(system.corpus, name="running")
    make_anonymization_run(running, data_set_of(system, "enrolls"))
    make_anonymization_run(running, data_set_of(system, "trials_f"), state="running")
    make_measured_run(running, data_set_of(system, "enrolls"), state="failed")
    broken = make_system(system.corpus, name="broken")
    make_anonymization_run(broken, data_set_of(system, "enrolls"), state="failed")
    make_measured_run(broken, data_set_of(system, "enrolls"), state="cancelled")
    make_system(system.corpus, name="bare")
    rows = {
        row.system.name: (row.files, row.state, row.state_text) for row in organizer.get("/systems/").context["rows"]
    }
    assert rows == {
        "b2-tones": (16, "succeeded", "measured"),
        "running": (16, "running", "running, 2 of 3 jobs ended"),
        "broken": (16, "failed", "1 of 2 jobs failed"),
        "bare": (16, "", "no jobs"),
    }


# The page of a system ------------------------------------------------------------------------------


def test_only_trial_sets_are_compared_with_the_minimum(organizer, system):
    comparison = organizer.get("/systems/b2-tones/").context["comparison"]
    assert [row.subset for row in comparison.rows] == ["tones_trials"]
    [row] = comparison.rows
    assert (row.female.n, row.male.n) == (4, 4)
    assert row.average == pytest.approx((0.475 + 0.475) / 2)
    assert (row.is_above, row.distance) == (True, pytest.approx(0.175))
    assert comparison.total is None


def test_average_of_exactly_the_minimum_is_not_above_it(system):
    EvaluationRun.objects.all().delete()
    for key, rho in (("trials_f", 0.2), ("trials_m", 0.4)):
        make_measured_run(system, data_set_of(system, key), rho=(rho,))
    runs = list_finished_runs(system.submissions.get())
    MetricValue.objects.filter(run__in=runs, metric="pitch_correlation", gender="f").update(value=0.3)
    MetricValue.objects.filter(run__in=runs, metric="pitch_correlation", gender="m").update(value=0.3)
    assert not compare_pitch(runs, read_values(runs)).rows[0].is_above
    MetricValue.objects.filter(run__in=runs, metric="pitch_correlation", gender="m").update(value=0.3000001)
    assert compare_pitch(runs, read_values(runs)).rows[0].is_above


def test_extremes_are_of_trial_sets_and_lead_to_the_comparison(organizer, system):
    make_measured_run(system, data_set_of(system, "enrolls"), rho=(0.0, 0.99))
    response = organizer.get("/systems/b2-tones/")
    worst, best = ([m.pitch_correlation for m in response.context[key]] for key in ("worst", "best"))
    assert (worst, best) == ([0.2, 0.2, 0.4, 0.4], [0.7, 0.7, 0.6, 0.6])
    first = response.context["worst"][0]
    assert f'href="/systems/b2-tones/files/{first.file_id}/?order=lowest"' in read_page(response)


# Which runs count ----------------------------------------------------------------------------------


def test_only_finished_runs_are_shown(organizer):
    system = make_system(make_corpus("tones", speakers=2))
    make_measured_run(system, data_set_of(system, "trials_f"), rho=(0.4321,))
    make_measured_run(system, data_set_of(system, "trials_m"), rho=(0.8765,), state="running")
    page = read_page(organizer.get("/systems/b2-tones/"))
    assert ("0.4321" in page, "0.8765" in page) == (True, False)
    assert organizer.get("/systems/b2-tones/sets/tones_trials_m/").status_code == 404
    assert organizer.get("/systems/b2-tones/sets/tones_trials_m/measures.csv").status_code == 404
    assert {row["data_set"] for row in rows_of(organizer.get("/systems/b2-tones/values.csv"))} == {"tones_trials_f"}
    file = system.submissions.get().files.filter(data_set__name="tones_trials_m").first()
    page = read_page(organizer.get(f"/systems/b2-tones/files/{file.pk}/"))
    assert ("0.8765" in page, "Not measured yet" in page) == (False, True)


def _took(jobs, seconds):
    now = timezone.now()
    jobs.update(state=JobState.SUCCEEDED, started_at=now - timezone.timedelta(seconds=seconds), finished_at=now)


def test_estimate_takes_kinds_that_have_not_ended_here_from_other_systems_or_is_left_out(organizer, system):
    """Seven quick jobs of measures do not promise that the attack, which takes minutes, ends in seconds."""
    make_attack_run(system.submissions.get(), sets=["tones_trials_f"], state="waiting")
    _took(Job.objects.filter(kind__in=("anonymize", "measure")), 5)
    last = Job.objects.filter(kind="measure").last()
    Job.objects.filter(pk=last.pk).update(state=JobState.WAITING)
    assert " left" not in read_page(organizer.get("/systems/b2-tones/progress"))
    other = make_system(make_corpus("other", speakers=2), name="b2-other")
    make_attack_run(add_files(make_submission(other)), sets=["other_trials_f"])
    _took(Job.objects.filter(kind="attack", state=JobState.SUCCEEDED), 120)
    _took(Job.objects.filter(kind="vectors", state=JobState.SUCCEEDED), 240)
    assert "about 6 min left" in read_page(organizer.get("/systems/b2-tones/progress"))


def test_progress_and_list_count_the_jobs_of_attacks_while_the_evaluation_waits_for_them(organizer, system):
    """One of the system's own jobs waits and its attack is at work: it runs, and the list says the same."""
    make_attack_run(system.submissions.get(), sets=["tones_trials_f"], state="running")
    last = Job.objects.filter(kind="measure").last()
    Job.objects.filter(pk=last.pk).update(state=JobState.WAITING)
    page = read_page(organizer.get("/systems/b2-tones/progress"))
    assert "5 of 8 jobs have ended" in page
    assert "Vectors of tones_trials_f" in page
    assert '<span class="badge" data-state="running">' in page
    assert "running, 5 of 8 jobs ended" in read_page(organizer.get("/systems/"))
    Job.objects.filter(pk=last.pk).update(state=JobState.SUCCEEDED)
    page = read_page(organizer.get("/systems/b2-tones/"))
    assert "hx-get" not in page
    assert (
        "The 6 jobs of this system (those of attacks, recognition and trainings stand on their own pages)"
        in " ".join(page.split())
    )
    assert "jobs ended" not in read_page(organizer.get("/systems/"))


def test_system_without_pitch_correlation_has_a_page(organizer, system):
    UtteranceMeasure.objects.update(pitch_correlation=None, voiced_pitch_correlation=None, lag_frames=None)
    MetricValue.objects.filter(metric__startswith="pitch").delete()
    response = organizer.get("/systems/b2-tones/")
    assert (response.context["figures"], response.context["comparison"].rows) == ([], [])
    assert organizer.get("/systems/b2-tones/sets/tones_trials_f/").status_code == 200
    file = system.submissions.get().files.first()
    assert organizer.get(f"/systems/b2-tones/files/{file.pk}/").status_code == 200


# Downloads -----------------------------------------------------------------------------------------


def test_measures_csv_equals_the_database(organizer, system):
    UtteranceMeasure.objects.update(faults=["clipped", "level-changed"])
    response = organizer.get("/systems/b2-tones/sets/tones_enrolls/measures.csv")
    assert response.headers["Content-Disposition"] == 'attachment; filename="b2-tones-tones_enrolls-measures.csv"'
    found = [
        (
            row["utterance"],
            row["speaker"],
            row["gender"],
            float(row["pitch_correlation"]),
            int(row["lag_frames"]),
            float(row["level_change_db"]),
            row["faults"],
        )
        for row in rows_of(response)
    ]
    measures = UtteranceMeasure.objects.filter(run__data_set__name="tones_enrolls").order_by("file__utterance__name")
    assert found == [
        (
            m.file.utterance.name,
            m.file.utterance.speaker.name,
            m.file.utterance.speaker.get_gender_display(),
            m.pitch_correlation,
            m.lag_frames,
            m.level_change_db,
            "clipped level-changed",
        )
        for m in measures
    ]
