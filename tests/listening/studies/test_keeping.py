"""What leads to evaluators goes when the time is over that their consent states; what they answered stays."""

from datetime import UTC, datetime, timedelta

import pytest
from django.core import mail
from django.core.mail import EmailMessage
from django.urls import reverse

from listening.app.results.inputs import compute_basis
from listening.app.studies.rules import kept_until
from listening.app.withdrawal.services import forget_people, remind_of_people
from portal.core.models import AuditEvent
from portal.jobs.services import NotPossible
from tests.listening.factories import make_session, make_study
from tests.portal.factories import make_organizer

pytestmark = pytest.mark.django_db
CLOSED = datetime(2026, 1, 31, 12, tzinfo=UTC)
OVER = datetime(2026, 2, 28, 12, tzinfo=UTC)


@pytest.fixture
def organizer():
    return make_organizer()


@pytest.fixture
def study(organizer):
    study = make_study(organizer=organizer, state="closed", closed_at=CLOSED, keep_months=1)
    session = make_session(study, device={"agent": "a browser"}, platform_data={"session": "s"})
    session.participant.platform_id = "worker-1"
    session.participant.save()
    return study


def test_time_ends_on_the_last_day_of_a_short_month(study):
    assert kept_until(study) == OVER
    study.keep_months = 13
    assert kept_until(study) == datetime(2027, 2, 28, 12, tzinfo=UTC)
    study.keep_months = None
    assert kept_until(study) is None


def test_organizers_are_reminded_once_when_it_is_over(study, organizer):
    assert remind_of_people(OVER - timedelta(seconds=1)) == 0
    assert (remind_of_people(OVER), remind_of_people(OVER)) == (1, 0)
    [sent] = mail.outbox
    assert (sent.bcc, study.get_absolute_url() in sent.body) == ([organizer.email], True)


def test_one_failing_mail_stops_no_other_and_who_has_no_reader_is_not_told(study, organizer, monkeypatch):
    def send(self):
        if study.get_absolute_url() in self.body:
            raise OSError("refused")
        return sent(self)

    sent = EmailMessage.send
    monkeypatch.setattr(EmailMessage, "send", send)
    other = make_study(organizer=make_organizer(), state="closed", closed_at=CLOSED, keep_months=1)
    nobodys = make_study(organizer=make_organizer(is_active=False), state="closed", closed_at=CLOSED, keep_months=1)
    for one in (other, nobodys):
        session = make_session(one)
        session.participant.platform_id = "worker-1"
        session.participant.save()
    assert (remind_of_people(OVER), remind_of_people(OVER)) == (1, 0)
    told = AuditEvent.objects.filter(action="study.keeping_over")
    assert [one.subject_id for one in told] == [str(other.pk)]
    monkeypatch.undo()
    nobodys.edition.organizers.update(is_active=True)
    assert remind_of_people(OVER) == 2


def test_people_are_forgotten_and_answers_stay(client, study, organizer):
    client.force_login(organizer)
    trial = study.blocks.first().trials.first()
    session = study.sessions.get()
    session.answers.create(trial=trial, task="naturalness", rating=5, received_at=CLOSED)
    analysis = study.analyses.create(basis=compute_basis(study))
    key = session.participant.person_key
    assert "The promised storage time has ended" in client.get(study.get_absolute_url()).content.decode()
    for pay in (0, 9):
        type(study).objects.update(pay_per_hour=pay)
        assert ("Pay everybody first" in client.get(study.get_absolute_url()).content.decode()) == bool(pay)
    address = reverse("studies:forget", args=[study.name])
    asked = client.get(address).content.decode()
    assert ("This deletes platform IDs" in asked, "Pay everybody first." in asked) == (True, True)
    page = client.post(address, follow=True).content.decode()
    assert "No personal data of its evaluators is here." in client.get(address).content.decode()
    session = study.sessions.select_related("participant").get()
    assert (session.device, session.platform_data, session.participant.platform_id) == ({}, {}, "")
    assert session.participant.person_key != key
    assert session.answers.get().rating == 5
    analysis.refresh_from_db()
    assert analysis.basis == compute_basis(study)
    assert ("Delete personal data" in page, "Personal data was deleted" in page) == (False, True)
    assert remind_of_people(OVER) == 0


def test_study_that_takes_answers_keeps_its_people(organizer):
    with pytest.raises(NotPossible):
        forget_people(study=make_study(organizer=organizer), by=organizer)
