"""Submitted speech goes on the date that organizers chose, after a mail of two weeks before; numbers stay."""

import os
from datetime import timedelta

import pytest
from django.core import mail
from django.core.files.storage import default_storage
from django.core.management import call_command
from django.urls import reverse
from django.utils import timezone

from evaluation.app.audio_measures.services import start_measures
from evaluation.app.models import Hypothesis, MetricValue, SpeakerVector, UtteranceMeasure
from listening.app.models import Analysis, Answer, Stimulus, Study
from listening.app.results.services import start_analysis
from listening.app.studies.services import prepare_study
from portal.challenges.models import DataFile, Edition, Utterance
from portal.challenges.rules import SPEECH_NOTICE, date_problems
from portal.core.models import AuditEvent
from portal.core.storage import store_bytes
from portal.deletion import retention
from portal.deletion.periodic_tasks import delete_files, keep_retention_dates
from portal.jobs.runner import execute
from portal.jobs.services import NotPossible
from portal.operations import sweep
from portal.submissions.models import SharedPart, SubmittedFile
from tests.evaluation.formant_speech import voice
from tests.listening.results.answered import analysed, make_answered
from tests.portal.attack_submissions import make_unprotected_submission, store_samples
from tests.portal.factories import (
    add_files,
    make_corpus,
    make_edition,
    make_job,
    make_organizer,
    make_team,
    make_user,
    store_tone,
)
from tests.portal.objective_runs import tones_edition

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("few_resamples")]
DAY = timedelta(days=1)


@pytest.fixture(autouse=True)
def folder(own_storage):
    return own_storage


def plan(edition, now, days):
    type(edition).objects.filter(pk=edition.pk).update(
        submissions_close_at=now - 30 * DAY, speech_kept_until=now + days * DAY
    )
    edition.refresh_from_db()
    return edition


def list_stored(folder):
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def settle(folder):
    """Two days later."""
    for path in folder.rglob("*"):
        if path.is_file():
            os.utime(path, (1.0, 1.0))
    delete_files()
    sweep.sweep(sweep.time_of_sweep())


@pytest.mark.usefixtures("quick_figures", "plain_figures_of_studies")
def test_speech_goes_after_the_notice_and_numbers_stay(folder, client):
    edition = tones_edition(speakers=4)
    submission = make_unprotected_submission(edition)
    for place, file in enumerate(submission.files.order_by("pk")):
        submission.files.filter(pk=file.pk).update(audio=store_samples(voice(place % 4, place, seconds=0.7)))
    study = make_answered(edition=edition, evaluators=4, trials=4, name="heard")
    organizer = edition.organizers.get()
    analysed(start_analysis(study=study, by=organizer))
    run = start_measures(submission=submission, data_set=edition.corpus.data_sets.get(name="tones_trials_f"))
    assert execute(run.job.pk).state == "succeeded"
    sample = submission.files.first()
    SharedPart.objects.create(submission=submission, file=sample)
    Hypothesis.objects.create(engine="a@1", audio=sample.audio, text="words")
    edition.data_files.create(
        data_set=sample.data_set,
        kind=DataFile.Kind.SPEECH,
        name="a.zip",
        bytes=1,
        sha256="0",
        key=store_bytes(b"", ".members"),
    )
    speech = set(SubmittedFile.objects.values_list("audio", flat=True))
    speech |= set(Stimulus.objects.exclude(file="").values_list("file", flat=True))
    originals = set(Utterance.objects.values_list("audio", flat=True))
    speech -= originals
    assert speech & list_stored(folder)
    numbers = list(MetricValue.objects.order_by("pk").values())
    answers, measures = Answer.objects.count(), UtteranceMeasure.objects.count()
    client.force_login(organizer)
    pages = [edition, submission, submission.system, study]
    addresses = [one.get_absolute_url() for one in pages]
    addresses += [reverse("studies:results", args=[study.name]), reverse("leaderboard:detail", args=[edition.name])]
    addresses += [reverse("systems:compare", args=[submission.system.name, sample.pk])]
    assert [client.get(one).status_code for one in addresses] == [200] * len(addresses)

    now = timezone.now()
    plan(edition, now, 10)
    keep_retention_dates()
    [told] = mail.outbox
    assert told.bcc == [organizer.email]
    assert told.subject == f"submitted speech of {edition} will be deleted"
    assert f"{now + SPEECH_NOTICE:%Y-%m-%d}" in told.body  # ten days from now would be too soon
    keep_retention_dates()
    assert len(mail.outbox) == 1
    assert retention.delete_due_speech(now + 13 * DAY) == 0
    assert retention.delete_due_speech(now + 15 * DAY) == 1
    settle(folder)

    assert not speech & list_stored(folder)
    assert originals <= list_stored(folder) | {""}
    assert list(MetricValue.objects.order_by("pk").values()) == numbers
    assert (Answer.objects.count(), UtteranceMeasure.objects.count()) == (answers, measures)
    assert Analysis.objects.exists()
    assert not SharedPart.objects.exists()
    assert not Hypothesis.objects.filter(audio=sample.audio).exists()
    assert not SpeakerVector.objects.filter(audio__in=speech).exists()
    call_command("verify")
    edition.refresh_from_db()
    event = AuditEvent.objects.get(action="edition.speech_deleted")
    assert event.data["rows"]["anonymised recordings"] == SubmittedFile.objects.count()
    assert event.data["rows"]["stimuli"] > 0
    assert event.data["rows"]["archives of speech"] == 1
    assert [client.get(one).status_code for one in addresses] == [200] * len(addresses)
    assert "The recordings were deleted on " in client.get(submission.get_absolute_url()).content.decode()
    assert "Deleted on " in client.get(edition.get_absolute_url()).content.decode()
    assert retention.delete_due_speech(now + 16 * DAY) == 0
    Study.objects.update(state=Study.State.PREPARED)
    study.systems.filter(pk=study.systems.first().pk).update(submission=submission)
    with pytest.raises(NotPossible, match="were deleted on"):
        prepare_study(study, organizer)
    with pytest.raises(NotPossible, match=r"The recordings of .* were deleted on .*\. Its numbers stay\."):
        start_measures(submission=submission, data_set=sample.data_set)


def test_nothing_goes_without_a_mail(monkeypatch):
    organizer = make_organizer()
    edition = plan(make_edition(organizers=[organizer]), timezone.now(), -1)
    type(organizer).objects.update(is_active=False)
    assert retention.announce_deletions(timezone.now()) == 0
    assert retention.delete_due_speech(timezone.now() + 60 * DAY) == 0
    type(organizer).objects.update(is_active=True)

    def fail(*_, **__):
        raise OSError("no mail server")

    with monkeypatch.context() as patched:
        patched.setattr(retention.EmailMessage, "send", fail)
        assert retention.announce_deletions(timezone.now()) == 0
    assert retention.announce_deletions(timezone.now()) == 1
    assert retention.delete_due_speech(timezone.now() + 60 * DAY) == 1
    edition.refresh_from_db()
    assert edition.speech_deleted_at is not None


def test_another_date_is_announced_again():
    now = timezone.now()
    edition = plan(make_edition(), now, 13)
    assert retention.announce_deletions(now) == 1
    plan(edition, now, 60)
    assert retention.announce_deletions(now) == 0
    assert retention.delete_due_speech(now + 59 * DAY) == 0
    assert retention.delete_due_speech(now + 61 * DAY) == 0  # of this date nobody was told
    assert retention.announce_deletions(now + 50 * DAY) == 1


def test_speech_waits_for_people_who_listen_and_for_jobs():
    now = timezone.now()
    edition = plan(make_edition(), now, 1)
    retention.announce_deletions(now)
    job = make_job("waiting", edition=edition.name)
    assert retention.delete_due_speech(now + 20 * DAY) == 0
    job.delete()
    study = Study.objects.create(name="a", title="A", edition=edition, state=Study.State.OPEN)
    assert retention.delete_due_speech(now + 20 * DAY) == 0
    Study.objects.update(state=Study.State.CLOSED)
    assert retention.delete_due_speech(now + 20 * DAY) == 1
    assert study.edition == edition


def test_speech_of_other_editions_stays(folder):
    """Even where both have the same recordings."""
    now = timezone.now()
    corpus = make_corpus()
    files = []
    for name in ("mine", "other"):
        edition = make_edition(corpus, name=name)
        system = edition.systems.create(name=f"system-{name}", title="A", corpus=corpus)
        files.append(add_files(system.submissions.create(version=1), store_tone(300)).files)
        if name == "mine":
            files[0].filter(pk=files[0].first().pk).update(audio=store_tone(500))
            own = files[0].first().audio
    retention.delete_speech(plan(Edition.objects.get(name="mine"), now, 0), now)
    settle(folder)
    assert set(files[0].values_list("audio", flat=True)) == {""}
    assert all(default_storage.exists(key) for key in files[1].values_list("audio", flat=True))
    assert not default_storage.exists(own)


def test_date_has_to_come_after_the_last_submission():
    now = timezone.now()
    dates = {"submissions_close_at": now, "late_until": now + DAY}
    assert date_problems(dates | {"speech_kept_until": now + 2 * DAY}) == {}
    for given in (now, now + DAY):
        found = date_problems(dates | {"speech_kept_until": given})
        assert found == {
            "speech_kept_until": "Speech has to be kept until the last submission is taken: give a later date."
        }
    assert "Set a deadline" in date_problems({"speech_kept_until": now})["speech_kept_until"]


def test_organizer_sets_the_date_and_teams_see_it(client):
    now = timezone.now()
    owner = make_user()
    edition = plan(make_edition(), now, 1)
    make_team(edition, owner=owner)
    client.force_login(edition.organizers.get())
    address = reverse("editions:edit", args=[edition.name])
    form = client.get(address).context["form"]
    given = {name: form[name].value() for name in form.fields if form[name].value() not in (None, False)}
    moment = now + 40 * DAY
    given |= {"speech_kept_until": f"{moment:%Y-%m-%dT%H:%M}", "submissions_close_at": f"{now:%Y-%m-%dT%H:%M}"}
    answer = client.post(address, given)
    assert answer.status_code == 302, answer.context["form"].errors
    client.force_login(owner)
    page = client.get(edition.get_absolute_url()).content.decode()
    assert f"Will be deleted on {moment:%Y-%m-%d} or soon after" in page
    assert AuditEvent.objects.filter(action="edition.changed").first().data["changes"]["speech_kept_until"]
