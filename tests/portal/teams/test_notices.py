"""Mails to a team: who gets them, what they say, and that no attempt of a job writes to anybody twice."""

from smtplib import SMTPServerDisconnected

import pytest
from django.core.mail.backends.locmem import EmailBackend
from django.utils import timezone

from portal.accounts.rules import NotificationKind
from portal.core.mail import Mail
from portal.jobs.models import Job, JobState
from portal.jobs.runner import JobContext, execute
from portal.jobs.services import claim_job, run_again
from portal.teams import services
from portal.teams.handlers import send_notifications
from portal.teams.models import SentNotification
from portal.teams.notifications import notify_team
from tests.portal.factories import make_edition, make_organizer, make_team, make_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def team():
    edition = make_edition(title="Challenge", name="vpc")
    people = [make_user(name=name, email=f"{name.lower()}@uni.example") for name in ("Owen", "Mia", "Max")]
    make_team(edition, owner=make_user(name="Eve"), name="Rivals")
    return make_team(edition, owner=people[0], members=people[1:], name="Bats", contact_email="contact@uni.example")


def notify(team, kind=NotificationKind.FINISHED, subject="T02-p1 is evaluated"):
    return notify_team(team=team, kind=kind, mail=Mail(subject, "All numbers are there."), url="/submissions/1/")


def readers(mailoutbox):
    assert all(len(mail.recipients()) == 1 for mail in mailoutbox)
    return [mail.to[0] for mail in mailoutbox]


def test_declined_kinds_are_not_sent_but_membership_is(team, mailoutbox):
    for membership in team.memberships.all():
        membership.user.unwanted_notifications = ["finished", "membership"]
        membership.user.save()
    assert notify(team) is None
    execute(notify(team, NotificationKind.MEMBERSHIP).pk)
    assert len(mailoutbox) == 3
    assert "Mails about your team itself are always sent." in mailoutbox[0].body


def test_who_left_or_declined_or_joined_meanwhile_gets_nothing(team, mailoutbox):
    job = notify(team)
    owen, mia, max_ = [membership.user for membership in team.memberships.order_by("pk")]
    team.memberships.filter(user=mia).delete()
    max_.unwanted_notifications = ["finished"]
    max_.save()
    team.memberships.create(user=make_user(email="new@uni.example"))
    execute(job.pk)
    assert readers(mailoutbox) == [owen.email]


def test_second_run_of_the_same_job_mails_nobody_again(team, mailoutbox):
    job = notify(team)
    claimed = claim_job(job.pk)
    assert send_notifications(JobContext(claimed)) == {"mails": 3}
    assert send_notifications(JobContext(claimed)) == {"mails": 0}
    assert len(mailoutbox) == 3


def test_job_that_died_in_the_midst_goes_on_with_the_others(team, mailoutbox):
    job = notify(team)
    first, second, third = [membership.user for membership in team.memberships.order_by("pk")]
    SentNotification.objects.create(job=job, user=first, sent_at=job.created_at)
    SentNotification.objects.create(job=job, user=second)  # the process ended before it could say that the mail left
    done = execute(job.pk)
    assert (done.state, readers(mailoutbox)) == (JobState.SUCCEEDED, [third.email])
    assert f"An earlier attempt ended while it wrote to {second}; no second mail is sent." in [
        event.text for event in job.events.all()
    ]


class RefusesMia(EmailBackend):
    """A mail server that drops the connection for one reader."""

    def send_messages(self, messages):
        if messages[0].to == ["mia@uni.example"]:
            raise SMTPServerDisconnected("Connection unexpectedly closed")
        return super().send_messages(messages)


def test_mail_that_was_not_taken_is_sent_by_the_next_run_only_to_who_lacks_it(team, mailoutbox, settings):
    settings.EMAIL_BACKEND = f"{__name__}.RefusesMia"
    job = execute(notify(team).pk)
    assert (job.state, job.failure_actor) == (JobState.FAILED, "operator")
    assert job.failure == "The mail server refused 1 of 3 notifications: Connection unexpectedly closed"
    assert sorted(readers(mailoutbox)) == ["max@uni.example", "owen@uni.example"]
    settings.EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
    execute(run_again(job, by=None).pk)
    assert readers(mailoutbox)[2:] == ["mia@uni.example"]


def test_organizers_hear_of_a_registration_unless_they_declined_or_did_it_themselves(mailoutbox):
    people = [make_organizer(name=name, email=f"{name.lower()}@uni.example") for name in ("Olga", "Otto", "Oda")]
    people[1].unwanted_notifications = ["registered"]
    people[1].save()
    edition = make_edition(title="Challenge", name="vpc2", organizers=people)
    fields = {"contact": "C", "contact_email": "c@uni.example", "affiliation": "Uni", "country": "DE"}
    services.register_team(edition=edition, by=people[2], now=timezone.now(), name="Owls", is_academic=True, **fields)
    assert execute(Job.objects.get(kind="send-notice").pk).result == {"mails": 1}
    [mail] = mailoutbox
    assert (mail.to, mail.subject) == (["olga@uni.example"], "Challenge: the team “Owls” registered")
    team = edition.teams.get()
    assert f"/teams/{team.pk}/decide/" in mail.body
    assert "You get this mail because you organise Challenge on the VoicePrivacy Portal.\n" in mail.body
    assert "/account/notifications/" in mail.body
