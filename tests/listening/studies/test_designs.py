"""From a plan to rows and their certificate; a launch believes the rows alone."""

import json
from itertools import count

import pytest
from django.core.exceptions import ValidationError
from django.urls import reverse
from django.utils import timezone

from common.errors import NotPossible, ProblemsError
from listening.app.models import Presentation, PresentationSample, Study, Trial
from listening.app.studies import designing, planning, services
from listening.app.studies.stored_design import build_certificate, launch_problems, read_rows
from portal.core.models import AuditEvent
from portal.jobs.runner import execute
from tests.listening.edition_factories import make_designed, make_draft, make_edition_with_speech, make_prepared

pytestmark = pytest.mark.django_db


@pytest.fixture
def designed(once):
    return once(make_designed)


@pytest.fixture
def prepared(once):
    return once(make_prepared)


def launch(study):
    return services.launch_study(study=study, by=study.created_by, now=timezone.now())


def shape_of(study):
    """Everything that a design decides, by names."""
    trials = Trial.objects.filter(block__study=study).order_by("block__number", "position")
    samples = PresentationSample.objects.filter(presentation__study=study).order_by("presentation__key", "slot")
    return (
        list(trials.values_list("block__number", "position", "presentation__key", "presentation__purpose")),
        list(samples.values_list("presentation__key", "slot", "stimulus__condition__code", "stimulus__item__name")),
    )


def test_criterion_14_controls_have_a_known_answer_and_never_the_same_recording_twice(designed):
    same, other = designed.presentations.filter(purpose="gold")
    a, b = [sample.stimulus for sample in same.samples.all()]
    assert (a.item.speaker, a.source == b.source) == (b.item.speaker, False)
    assert (same.condition.code, same.is_target, same.expected) == ("", True, {"verifiability": [6, 10]})
    speakers = [sample.stimulus.item.sex for sample in other.samples.order_by("slot")]
    assert sorted(speakers) == ["f", "m"]
    assert (other.is_target, other.expected) == (False, {"verifiability": [1, 2]})


def test_right_answers_follow_the_scale():
    found = make_designed(points=5).presentations.filter(purpose="gold").order_by("pk")
    assert [item.expected["verifiability"] for item in found] == [[3, 5], [1, 2]]


def test_practice_begins_near_both_ends_of_the_scale(designed):
    high, low = designed.presentations.filter(purpose="practice").order_by("pk")[:2]
    assert (high.condition.code == "", high.is_target) == (True, True)
    assert (low.condition.code == "", low.is_target) == (False, False)


def test_recordings_of_controls_are_in_no_scored_trial(designed):
    study = designed
    heard = {purpose: set() for purpose in Presentation.Purpose.values}
    for sample in PresentationSample.objects.filter(presentation__study=study).select_related(
        "presentation", "stimulus"
    ):
        heard[sample.presentation.purpose].add(sample.stimulus.item_id)
    others = heard["practice"] | heard["gold"] | heard["bridge"]
    assert others
    assert others & heard["scored"] == set()


def test_criterion_17_certificate_is_reproducible_from_the_seed(designed):
    study = designed
    first, shape = study.certificate, shape_of(study)
    designing.make_design(study, study.created_by)
    study.refresh_from_db()
    assert (study.certificate, shape_of(study)) == (first, shape)
    other = make_designed(study.edition, seed=2023)
    assert other.certificate["fingerprint"] != first["fingerprint"]
    assert shape_of(other) != shape


def test_criterion_17_certificate_is_downloaded_as_it_is_stored(client, designed):
    study = designed
    client.force_login(study.created_by)
    response = client.get(reverse("studies:certificate", args=[study.name]))
    assert response.status_code == 200
    assert response["Content-Disposition"] == f'attachment; filename="{study.name}-certificate.json"'
    assert json.loads(response.content) == build_certificate(read_rows(study))


def swap_positions(study):
    """Two trials of a block change places."""
    first, second = study.blocks.first().trials.filter(presentation__purpose="scored")[:2]
    places = first.position, second.position
    Trial.objects.filter(pk=first.pk).update(position=999)
    Trial.objects.filter(pk=second.pk).update(position=places[0])
    Trial.objects.filter(pk=first.pk).update(position=places[1])


def give_twice(study):
    """An evaluator gets a trial twice, in the place of another."""
    first, second = study.blocks.first().trials.filter(presentation__purpose="scored")[:2]
    Trial.objects.filter(pk=first.pk).update(presentation=second.presentation)


def take_away(study):
    study.blocks.first().trials.last().delete()


def take_block_away(study):
    study.blocks.last().delete()


def change_class(study):
    item = study.presentations.filter(purpose="scored").first()
    Presentation.objects.filter(pk=item.pk).update(is_target=not item.is_target)


def change_recording(study):
    """Sample A of an original becomes another utterance."""
    item = study.presentations.filter(purpose="scored", condition__code="").first()
    other = study.stimulus_files.filter(condition__code="").exclude(pk__in=item.samples.values("stimulus")).first()
    item.samples.filter(slot="a").update(stimulus=other)


def anonymise_enrolment(study):
    item = study.presentations.filter(purpose="scored").first()
    item.samples.filter(slot="b").update(stimulus=study.stimulus_files.exclude(condition__code="").first())


def change_source(study):
    """A stimulus is made from another file than the submission's."""
    stimulus = study.stimulus_files.exclude(condition__code="").first()
    study.stimulus_files.filter(pk=stimulus.pk).update(source="elsewhere.flac")


def score_practice(study):
    study.presentations.filter(purpose="practice").update(purpose="scored")


def change_answer(study):
    study.presentations.filter(purpose="gold").update(expected={"verifiability": [5, 6]})


def change_plan(study):
    Study.objects.filter(pk=study.pk).update(originals_per_evaluator=3)


def change_stored_check(study):
    """Somebody writes other words into the stored certificate."""
    study.certificate["parts"][0]["checks"][0]["found"] = "everything"
    study.save()


def forge(study):
    """A stored certificate that says yes, over rows that do not hold."""
    take_away(study)
    study.certificate["passes"] = True
    study.save()


def lose_file(study):
    study.stimulus_files.filter(pk=study.stimulus_files.first().pk).update(file="")


TAMPERINGS = [
    swap_positions,
    give_twice,
    take_block_away,
    change_class,
    change_recording,
    anonymise_enrolment,
    change_source,
    score_practice,
    change_answer,
    change_plan,
    change_stored_check,
    forge,
    lose_file,
]


@pytest.mark.parametrize("tamper", TAMPERINGS, ids=lambda tamper: tamper.__name__)
def test_criterion_17_launch_is_blocked_when_the_rows_were_changed(prepared, tamper):
    assert launch_problems(read_rows(prepared)) == []
    tamper(prepared)
    with pytest.raises(ValidationError) as refused:
        launch(prepared)
    assert refused.value.messages
    prepared.refresh_from_db()
    assert (prepared.state, prepared.launched_at) == (Study.State.PREPARED, None)


def test_criterion_17_launch_with_untouched_rows_opens_the_study(prepared):
    launched = launch(prepared)
    assert (launched.state, launched.launched_at is not None) == (Study.State.OPEN, True)
    event = AuditEvent.objects.get(action="study.launched")
    assert event.data["certificate"] == prepared.certificate["fingerprint"]


def test_infeasible_plans_say_everything_at_once():
    edition = make_edition_with_speech(speakers=4, utterances=2)
    study = make_draft(edition, evaluators=52, trials_per_evaluator=52, originals_per_evaluator=26)
    problems = planning.judge_plan(study).problems
    assert problems
    with pytest.raises(ProblemsError) as refused:
        designing.make_design(study, study.created_by)
    assert refused.value.problems == problems
    assert not study.blocks.exists()


def test_page_counts_recordings_and_the_planner_tries_the_design(monkeypatch):
    def find_nothing(_, *, progress, shuffles):
        assert (callable(progress), shuffles) == (True, False)
        raise ProblemsError(["No allocation was found."])

    monkeypatch.setattr(planning, "allocate", find_nothing)
    study = make_draft(make_edition_with_speech())
    assert planning.judge_plan(study).problems == []
    systems = [one.submission for one in study.systems.order_by("-pk")]
    found = planning.judge_plan(study, systems=systems, data_sets=study.data_sets.all(), seconds=1)  # as the planner
    assert found == planning.PlanVerdict(["No allocation was found."], is_tried=True)


def test_planner_that_reaches_its_limit_says_that_recordings_were_counted(client, monkeypatch):
    ticks = count()
    monkeypatch.setattr(planning, "thread_time", lambda: float(next(ticks)))
    study = make_draft(make_edition_with_speech())
    client.force_login(study.created_by)
    assert planning.judge_plan(study, seconds=1) == planning.PlanVerdict([], is_tried=False, is_heard_once=True)
    page = client.get(reverse("studies:planner", args=[study.name])).content.decode()
    assert "Whether they can be assigned is seen when the design is made." in page


def test_design_that_reaches_its_limit_in_the_request_goes_on_as_a_job_with_the_same_outcome(designed, monkeypatch):
    study = designed
    at_once = study.certificate["fingerprint"]
    ticks = count()
    monkeypatch.setattr(planning, "thread_time", lambda: float(next(ticks)))
    job = services.start_design(study, study.created_by)
    assert (job.kind, job.state) == ("design-study", "waiting")
    assert execute(job.pk).result["fingerprint"] == at_once


def test_controls_that_the_recordings_cannot_feed_say_how_many_would_do():
    edition = make_edition_with_speech(speakers=2, utterances=2)
    study = make_draft(edition, trials_per_evaluator=40, practice_trials=10, gold_trials=12, bridge_trials=12)
    assert "need recordings of their own" in " ".join(planning.judge_plan(study).problems)
    assert "would do" in " ".join(planning.judge_plan(study).problems)


def test_plan_without_systems_or_sets_says_so():
    study = make_draft(make_edition_with_speech(systems=0), data_sets=[])
    problems = planning.judge_plan(study).problems
    assert problems[0] == planning.NO_SYSTEMS
    assert problems[1].startswith("Choose a trial set")


def test_change_during_the_planning_is_not_overwritten(monkeypatch):
    study = make_draft(make_edition_with_speech())
    plan = designing.plan_design

    def change_meanwhile(*given, **more):
        planned = plan(*given, **more)
        Study.objects.filter(pk=study.pk).update(seed=7)
        return planned

    monkeypatch.setattr(designing, "plan_design", change_meanwhile)
    with pytest.raises(NotPossible, match="changed while"):
        designing.make_design(study, study.created_by)
    assert not study.blocks.exists()


def test_two_extensions_at_once_make_one(prepared, monkeypatch):
    study = launch(prepared)
    plan = designing.plan_extension

    def be_overtaken(*given):
        monkeypatch.setattr(designing, "plan_extension", plan)
        designing.extend_design(study, 2, study.created_by)
        return plan(*given)

    monkeypatch.setattr(designing, "plan_extension", be_overtaken)
    with pytest.raises(NotPossible, match="changed while"):
        designing.extend_design(study, 1, study.created_by)
    assert study.blocks.count() == 6


def test_designing_anew_keeps_recordings_that_were_made(prepared):
    made = prepared.stimulus_files.count()
    designing.make_design(prepared, prepared.created_by)
    assert prepared.stimulus_files.exclude(file="").count() == made
    prepared.refresh_from_db()
    assert prepared.state == Study.State.DRAFT


def test_boards_are_designed_launched_and_extended():
    edition = make_edition_with_speech(speakers=8, utterances=6)
    nothing = {"practice_trials": 0, "gold_trials": 0, "bridge_trials": 0}
    numbers = {"evaluators": 4, "trials_per_evaluator": 2, "board_samples": 6}
    study = make_prepared(edition, tasks=["linkability"], **numbers | nothing)
    assert study.certificate["passes"]
    assert {block.trials.count() for block in study.blocks.all()} == {2}
    slots = set(PresentationSample.objects.filter(presentation__study=study).values_list("slot", flat=True))
    assert slots == {"1", "2", "3", "4", "5", "6"}
    launch(study)
    with pytest.raises(NotPossible, match="Pause the study first"):
        designing.extend_design(study, 4, study.created_by)
    services.pause_study(study=study, by=None)
    certificate = designing.extend_design(study, 4, study.created_by)
    assert (certificate["passes"], certificate["waves"]) == (True, [4, 4])
    if study.stimulus_files.filter(file="").exists():
        with pytest.raises(NotPossible, match="not prepared yet"):
            services.resume_study(study=study, by=None)
    study.stimulus_files.update(file="derived/nothing.flac")
    assert services.resume_study(study=study, by=None).state == Study.State.OPEN


@pytest.mark.parametrize("form", ["linkability", "transcription"])
def test_criterion_17_holds_for_other_forms(form):
    edition = make_edition_with_speech(speakers=8, utterances=6)
    numbers = {"evaluators": 2, "trials_per_evaluator": 2, "originals_per_evaluator": 1, "board_samples": 6}
    nothing = {"practice_trials": 0, "gold_trials": 0, "bridge_trials": 0}
    study = make_prepared(edition, tasks=[form], **numbers | nothing)
    give_twice(study)
    with pytest.raises(ValidationError):
        launch(study)
