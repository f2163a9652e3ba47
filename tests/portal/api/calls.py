"""A challenge with everything in it, and its people with their access tokens."""

import json
from copy import copy
from datetime import timedelta

from django.db.models import Model
from django.test import Client
from django.utils import timezone

from portal.accounts.models import AccessToken
from portal.accounts.tokens import create_token
from portal.core.storage import replace_named
from portal.submissions.models import Submission, Upload
from portal.submissions.resumable_uploads import upload_path
from tests.portal.attack_runs import make_attack_run, make_recognition_run, make_retrained
from tests.portal.factories import (
    make_corpus,
    make_edition,
    make_operator,
    make_organizer,
    make_submission,
    make_team,
    make_team_system,
    make_user,
)
from tests.portal.measured_runs import make_measured_run, make_planned_run
from tests.portal.objective_runs import make_objective_run, ranked_numbers
from tests.portal.submissions.test_pages import make_full
from tests.portal.trainings import make_training

ALL_SCOPES = list(AccessToken.Scope.values)


def token_of(user, scopes=ALL_SCOPES, **fields):
    """The secret of a new token."""
    return create_token(user=user, name="test", scopes=scopes, **{"expires_at": None} | fields)[1]


class Api:
    """A program that asks for a person; with None it says not who it is."""

    def __init__(self, user=None, scopes=ALL_SCOPES, **fields):
        headers = {"authorization": f"Bearer {token_of(user, scopes, **fields)}"} if user else {}
        self.client = Client(headers=headers, raise_request_exception=False)

    def get(self, path, **headers):
        return self.client.get(f"/api/{path}", headers=headers)

    def post(self, path, body=None, **headers):
        return self.client.post(f"/api/{path}", body or {}, content_type="application/json", headers=headers)

    def send(self, method, path, body):
        return self.client.generic(method, f"/api/{path}", json.dumps(body), content_type="application/json")

    def ask(self, method, path):
        return self.client.generic(method, f"/api/{path}")


class Challenge:
    """An edition with a rival team and a team whose evaluated submission has all that a submission can have."""

    def __init__(self):
        self.organizer, self.owner, self.member, self.rival = make_organizer(), make_user(), make_user(), make_user()
        corpus = make_corpus("tones", speakers=4)
        self.edition = make_edition(corpus, organizers=[self.organizer], name="vpc", scores_required=False)
        self.team = make_team(self.edition, owner=self.owner, members=[self.member], name="Alder")
        self.rival_team = make_team(self.edition, owner=self.rival, name="Birch")
        self.system = make_team_system(self.team)
        self.submission = make_full(self.system, state=Submission.State.EVALUATED)
        Submission.objects.filter(pk=self.submission.pk).update(upload=self.make_upload("complete"))
        self.submission.refresh_from_db()
        self.runs = [make_measured_run(self.system, one, rho=(0.2, 0.6)) for one in corpus.data_sets.all()]
        self.run = make_objective_run(
            self.submission,
            ranked_numbers(self.edition, eer=16.0, wer=8.5, pitch=0.42),
            missing=[("G_VD of a set", "its matrices are missing", False)],
        )
        # As if the portal had run the team's own system: its page is theirs, the voices are the organizers'.
        make_planned_run(self.system, corpus.data_sets.get(name="tones_enrolls"))
        self.training = make_training(self.submission)
        self.attack = make_attack_run(self.submission, sets=["libri_test_trials_f"])
        make_recognition_run(self.submission)
        make_retrained(self.submission, "libri_test_trials_f")
        self.upload = self.make_upload("receiving")
        self.invitation = self.team.invitations.create(
            email="new@test.example", secret_hash="0" * 64, expires_at=timezone.now() + timedelta(days=1)
        )
        self.draw_figures()

    def make_upload(self, state):
        upload = Upload.objects.create(
            edition=self.edition,
            team=self.team,
            file_name="hidden-archive.zip",
            size=10,
            offset=4,
            state=state,
            system_kind="primary",
            created_by=self.owner,
            expires_at=timezone.now() + timedelta(days=1),
        )
        upload_path(upload).write_bytes(b"abcd")
        return upload

    def draw_figures(self):
        for run in self.runs:
            for theme in ("light.svg", "dark.svg", "light.png", "light.pdf"):
                replace_named(f"derived/figures/{run.pk}/pitch-{theme}", b"<svg/>")
        self.file = self.runs[0].measures.first().file

    def publish(self):
        self.edition.published_at = timezone.now()
        self.edition.save()

    def people(self):
        """Who has nothing to do with the team, by what they are."""
        return {
            "rival": self.rival,
            "stranger": make_user(),
            "other organizer": make_organizer(),
            "operator": make_operator(),
        }


_made = []


def make_challenge():
    """Return the edition of a challenge, which is kept as a whole beside it."""
    _made.append(Challenge())
    return _made[-1].edition


def take_challenge(once):
    """Return a challenge that is made once for all tests of a process, with its rows as they are now."""
    once(make_challenge)
    challenge = copy(_made[-1])
    for name, row in vars(challenge).items():
        if isinstance(row, Model):
            setattr(challenge, name, type(row).objects.get(pk=row.pk))
    return challenge


__all__ = ["Api", "Challenge", "make_submission", "token_of"]
