"""Every address × role, in one table. An address that is missing from the table fails the test."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal.auth import TOTP, generate_totp_secret
from django.contrib.sessions.models import Session as Sessions
from django.template.backends.django import Template
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, reverse
from django.utils import timezone

from anonymization.app.models import AnonymizationRun
from evaluation.app.attacks.stored_attackers import ENCODER_FILES, encoder_key
from evaluation.app.audio_measures.services import start_measures
from listening.app.models import ScreeningResult, Session, Study, Trial
from listening.app.sessions.clip_urls import clip_names
from listening.app.sessions.pre_screening import sound_names
from portal.accounts.models import User
from portal.challenges.models import Corpus, DataSet, Edition, Speaker, TrialList, Utterance
from portal.client.wheel import build_wheel
from portal.core.storage import store_bytes
from portal.intake.report import IntakeReport
from portal.jobs.models import Job, JobState
from portal.submissions.models import Submission, SubmittedFile, Upload
from portal.submissions.services import create_baseline
from tests.listening.factories import make_session, make_study
from tests.portal.attack_runs import make_attack_run, make_recognition_run, make_retrained
from tests.portal.factories import make_team
from tests.portal.network_trainings import make_network_training
from tests.portal.trainings import final_values, make_training

pytestmark = pytest.mark.django_db

ROLES = ("visitor", "member", "organizer", "operator")
LOGIN = "log-in"  # a redirect to the log-in page
# What each role gets at each address: visitor, member of no role, organizer, operator.
OPEN = (200, 200, 200, 200)
FOR_MEMBERS = (LOGIN, 200, 200, 200)
FOR_STAFF = (LOGIN, 404, 200, 200)
FOR_ORGANIZERS = (LOGIN, 404, 200, 404)
FOR_ORGANIZERS_TO_DO = (LOGIN, 404, 302, 404)
FOR_OPERATORS = (LOGIN, 404, 404, 200)
FOR_NOBODY_HERE = (LOGIN, 404, 404, 404)
API_FOR_MEMBERS = (401, 200, 200, 200)
API_FOR_ORGANIZERS = (401, 404, 200, 404)
API_FOR_NOBODY_HERE = (401, 404, 404, 404)
ONLY_POST = (405, 405, 405, 405)
UNKNOWN_TO_ALL = (404, 404, 404, 404)
MATRIX = {
    "home": OPEN,
    "tour": FOR_NOBODY_HERE,  # of the demo alone: demo/test_tour
    "first-account": UNKNOWN_TO_ALL,  # these people include an operator: accounts/test_first_account
    "account_login": (200, 302, 302, 302),
    "account_inactive": OPEN,
    "mfa_authenticate": (LOGIN, 302, 302, 302),
    "account_logout": (302, 200, 200, 200),
    "account_signup": (200, 302, 302, 302),
    "account_email_verification_sent": OPEN,
    "account_confirm_email": OPEN,  # a page that says that the link does not work
    "account_reset_password": OPEN,
    "account_reset_password_done": OPEN,
    "account_reset_password_from_key_done": OPEN,
    "account_reset_password_from_key": OPEN,  # the same
    "account_email": FOR_MEMBERS,
    "account_change_password": FOR_MEMBERS,
    "account_set_password": (LOGIN, 302, 302, 302),  # these people have one
    "account_reauthenticate": FOR_MEMBERS,
    "mfa_reauthenticate": (LOGIN, 302, 302, 302),  # these people have no second factor
    "mfa_index": FOR_MEMBERS,
    "mfa_activate_totp": (LOGIN, 302, 302, 302),  # the password is asked for first
    "mfa_deactivate_totp": (LOGIN, 404, 404, 404),
    "mfa_view_recovery_codes": (LOGIN, 404, 404, 404),
    "mfa_generate_recovery_codes": (LOGIN, 302, 302, 302),
    "mfa_download_recovery_codes": (LOGIN, 404, 404, 404),
    "accounts:profile": FOR_MEMBERS,
    "accounts:tokens": FOR_MEMBERS,
    "accounts:revoke-token": FOR_NOBODY_HERE,  # one's own; another's: accounts/test_tokens
    "accounts:notifications": FOR_MEMBERS,
    "accounts:second-factor-picture": (LOGIN, 404, 404, 404),
    "people:list": FOR_OPERATORS,
    "people:invite": FOR_OPERATORS,
    "people:person": FOR_OPERATORS,
    "people:invite-again": (LOGIN, 404, 404, 405),
    "people:confirm": (LOGIN, 404, 404, 405),
    "people:password-link": (LOGIN, 404, 404, 405),
    "people:no-link": (LOGIN, 404, 404, 405),
    "people:deactivate": (LOGIN, 404, 404, 405),
    "people:reactivate": (LOGIN, 404, 404, 405),
    "metrics": UNKNOWN_TO_ALL,  # no token is set: operations/test_metrics
    "live": OPEN,
    "ready": (503, 503, 503, 503),  # no scheduler runs in this test
    "media": UNKNOWN_TO_ALL,  # an address that was signed for nobody
    "operations": FOR_OPERATORS,
    "docs:index": OPEN,
    "docs:page": OPEN,
    "docs:recipe": OPEN,
    "docs:file": OPEN,
    "downloads:page": OPEN,
    "downloads:file": OPEN,
    "deletion:index": FOR_MEMBERS,  # each sees their own
    "deletion:receipt": FOR_NOBODY_HERE,  # of nothing that was deleted: deletion/test_deletion
    "deletion:thing": FOR_OPERATORS,  # of an edition; each kind for each role: deletion/test_deletion
    "deletion:archive": (LOGIN, 405, 405, 405),
    "deletion:restore": (LOGIN, 405, 405, 405),
    "deletion:delete-demo": (LOGIN, 404, 404, 405),
    "corpora:list": FOR_ORGANIZERS,
    "corpora:import": FOR_ORGANIZERS,
    "corpora:import-demo": (LOGIN, 404, 405, 404),
    "corpora:detail": FOR_ORGANIZERS,  # of a shared corpus; another's: corpora/test_sharing
    "corpora:edit": FOR_OPERATORS,
    "corpora:share": (LOGIN, 404, 405, 404),
    "corpora:speakers": FOR_ORGANIZERS,
    "corpora:utterances": FOR_ORGANIZERS,
    "corpora:utterance": FOR_ORGANIZERS,
    "corpora:data-set": FOR_ORGANIZERS,
    "systems:list": FOR_MEMBERS,  # each sees their own
    "systems:new": FOR_ORGANIZERS,
    "systems:detail": FOR_ORGANIZERS,
    "systems:description": (LOGIN, 404, 404, 404),  # released in an edition: systems/test_evaluated
    "systems:edit": FOR_OPERATORS,
    "systems:share": (LOGIN, 405, 405, 405),
    "systems:progress": FOR_ORGANIZERS,
    "systems:values-csv": FOR_ORGANIZERS,
    "systems:objective-csv": (LOGIN, 404, 404, 404),  # of a system in an edition: systems/test_evaluated
    "systems:objective-json": (LOGIN, 404, 404, 404),
    "systems:objective-latex": (LOGIN, 404, 404, 404),
    "systems:det": (LOGIN, 404, 404, 404),
    "systems:data-set": FOR_ORGANIZERS,
    "systems:measures-csv": FOR_ORGANIZERS,
    "systems:compare": FOR_ORGANIZERS,
    "systems:run": FOR_ORGANIZERS,
    "systems:voices-csv": FOR_ORGANIZERS,
    "systems:attacks": FOR_ORGANIZERS,
    "systems:new-attack": FOR_ORGANIZERS,
    "systems:attack-progress": FOR_ORGANIZERS,
    "systems:attacks-csv": FOR_ORGANIZERS,
    "systems:attacks-json": FOR_ORGANIZERS,
    "systems:attack-scores": FOR_ORGANIZERS,
    "systems:attack-archive": FOR_ORGANIZERS,
    "systems:recognition": FOR_ORGANIZERS,
    "systems:new-recognition": FOR_ORGANIZERS,
    "systems:recognition-progress": FOR_ORGANIZERS,
    "systems:recognition-csv": FOR_ORGANIZERS,
    "systems:recognised-utterances-csv": FOR_ORGANIZERS,
    "systems:retrain": (LOGIN, 405, 405, 405),  # in an edition, by each role: systems/test_retrained
    "systems:retraining-progress": FOR_ORGANIZERS,
    "systems:retrained-csv": FOR_ORGANIZERS,
    "systems:cancel-run": (LOGIN, 405, 405, 405),  # in an edition, by each role: systems/test_attacks
    "systems:continue-run": (LOGIN, 405, 405, 405),
    **dict.fromkeys(
        (f"network-trainings:{name}" for name in ("list", "new", "detail", "live", "card", "losses", "weights")),
        FOR_ORGANIZERS,  # of a shared corpus; another's: systems/test_network_trainings
    ),
    "network-trainings:cancel": (LOGIN, 404, 405, 404),
    "network-trainings:continue": (LOGIN, 404, 405, 404),
    "systems:trainings": FOR_ORGANIZERS,
    "systems:new-training": FOR_ORGANIZERS,
    "systems:training": FOR_ORGANIZERS,
    "systems:training-live": FOR_ORGANIZERS,
    "systems:training-csv": FOR_ORGANIZERS,
    "systems:training-json": FOR_ORGANIZERS,
    "systems:training-attacker": FOR_ORGANIZERS,
    "editions:list": OPEN,
    "editions:new": FOR_ORGANIZERS,
    # Of an edition that is not listed, organised by nobody here; every other case: teams/test_access.
    "editions:detail": FOR_NOBODY_HERE,
    "editions:edit": FOR_NOBODY_HERE,
    "editions:copy": FOR_NOBODY_HERE,
    "editions:recipe": FOR_NOBODY_HERE,
    # Of teams, waiting, declined and of other editions, before and after they accepted: editions/test_data.
    "editions:data": FOR_NOBODY_HERE,
    "editions:accept-data": (LOGIN, 405, 405, 405),
    "editions:prepare-data": (LOGIN, 405, 405, 405),
    "editions:data-file": FOR_NOBODY_HERE,
    "editions:teams": FOR_NOBODY_HERE,
    "editions:replace-link": (LOGIN, 405, 405, 405),
    "editions:register": FOR_NOBODY_HERE,
    "editions:audit": FOR_NOBODY_HERE,
    "editions:audit-csv": FOR_NOBODY_HERE,
    # Of the same edition, not published; published, and its organizers: leaderboard/.
    "leaderboard:detail": FOR_NOBODY_HERE,
    "leaderboard:policy": FOR_NOBODY_HERE,
    "leaderboard:recipe": FOR_NOBODY_HERE,
    "leaderboard:publish": FOR_NOBODY_HERE,
    "leaderboard:publish-again": FOR_NOBODY_HERE,
    "leaderboard:unpublish": (LOGIN, 405, 405, 405),
    "leaderboard:freeze": FOR_NOBODY_HERE,
    "leaderboard:unfreeze": (LOGIN, 405, 405, 405),
    "leaderboard:recipe-file": FOR_NOBODY_HERE,
    "leaderboard:csv": FOR_NOBODY_HERE,
    "leaderboard:json": FOR_NOBODY_HERE,
    "leaderboard:latex": FOR_NOBODY_HERE,
    "leaderboard:figure": FOR_NOBODY_HERE,
    **{f"published:{name}": OPEN for name in ("results", "csv", "json", "latex", "figure")},
    "listeners:leaderboard-csv": FOR_NOBODY_HERE,  # published: tests/listening/results/test_panels
    "teams:detail": FOR_NOBODY_HERE,
    "teams:edit": FOR_NOBODY_HERE,
    "teams:decide": FOR_NOBODY_HERE,
    "teams:withdraw": FOR_NOBODY_HERE,
    "teams:ask-again": (LOGIN, 405, 405, 405),
    "teams:release": (LOGIN, 405, 405, 405),
    "teams:invite": (LOGIN, 405, 405, 405),
    "teams:revoke-invitation": (LOGIN, 405, 405, 405),
    "teams:resend-invitation": (LOGIN, 405, 405, 405),
    "teams:remove": FOR_NOBODY_HERE,
    "teams:transfer": FOR_NOBODY_HERE,
    "teams:leave": FOR_NOBODY_HERE,
    "teams:invitation": FOR_NOBODY_HERE,  # a secret that was never mailed
    "submissions:new": (LOGIN, 404, 404, 404),  # a listed edition's: test_uploads_pages
    "submissions:upload-corpus": FOR_ORGANIZERS,
    "submissions:submit-upload": (LOGIN, 405, 405, 405),
    "submissions:discard-upload": (LOGIN, 405, 405, 405),
    "uploads:create": (405, 405, 405, 405),
    "uploads:detail": (401, 404, 404, 404),  # the team and its organizers: test_uploads
    "uploads:submit": (405, 405, 405, 405),
    "submissions:list": (LOGIN, 404, 404, 404),  # the edition's organizers: submissions/test_pages
    "submissions:detail": FOR_ORGANIZERS,  # of a baseline; a team's: test_nobody_else
    "submissions:progress": FOR_ORGANIZERS,
    "submissions:report-csv": FOR_ORGANIZERS,
    "submissions:report-json": FOR_ORGANIZERS,
    "submissions:diff": FOR_ORGANIZERS,
    "submissions:diff-csv": FOR_ORGANIZERS,
    "submissions:document": FOR_ORGANIZERS,
    "submissions:withdraw": FOR_ORGANIZERS,
    "submissions:check": (LOGIN, 405, 405, 405),
    "submissions:evaluate": (LOGIN, 405, 405, 405),
    "submissions:release": (LOGIN, 405, 405, 405),
    # Of a study of the same edition, organised by nobody here; its organizers: tests/listening/studies/test_access.
    "studies:list": FOR_ORGANIZERS,  # each sees those of the editions they organise
    "studies:new": FOR_ORGANIZERS,
    "studies:own": FOR_ORGANIZERS,
    "studies:repeat": FOR_ORGANIZERS,
    "studies:detail": FOR_NOBODY_HERE,
    "studies:edit": FOR_NOBODY_HERE,
    "studies:questions": FOR_NOBODY_HERE,
    "studies:question-preview": FOR_NOBODY_HERE,
    "studies:texts": FOR_NOBODY_HERE,
    "studies:words": FOR_NOBODY_HERE,
    "studies:test-file": FOR_NOBODY_HERE,
    "studies:planner": FOR_NOBODY_HERE,
    "studies:design": FOR_NOBODY_HERE,
    "studies:certificate": FOR_NOBODY_HERE,
    "studies:prepare": (LOGIN, 405, 405, 405),
    "studies:preview": (LOGIN, 405, 405, 405),
    "studies:launch": FOR_NOBODY_HERE,
    "studies:pause": (LOGIN, 405, 405, 405),
    "studies:resume": (LOGIN, 405, 405, 405),
    "studies:close": FOR_NOBODY_HERE,
    "studies:extend": FOR_NOBODY_HERE,
    "studies:forget": FOR_NOBODY_HERE,
    "studies:monitor": FOR_NOBODY_HERE,
    "studies:live": FOR_NOBODY_HERE,
    "studies:session": FOR_NOBODY_HERE,
    "studies:exclusions": FOR_NOBODY_HERE,
    "studies:revoke": (LOGIN, 405, 405, 405),
    "studies:export": FOR_NOBODY_HERE,
    "studies:export-csv": FOR_NOBODY_HERE,
    "studies:export-json": FOR_NOBODY_HERE,
    "studies:export-zip": FOR_NOBODY_HERE,
    "studies:import": FOR_ORGANIZERS,
    # Results that are not published; published: tests/listening/results/test_result_pages.
    "studies:analyse": FOR_NOBODY_HERE,
    "studies:results": FOR_NOBODY_HERE,
    "studies:results-listeners": FOR_NOBODY_HERE,
    "studies:results-screen": (LOGIN, 405, 405, 405),
    "studies:results-system": FOR_NOBODY_HERE,
    "studies:results-csv": FOR_NOBODY_HERE,
    "studies:results-json": FOR_NOBODY_HERE,
    "studies:results-latex": FOR_NOBODY_HERE,
    "studies:results-figure": FOR_NOBODY_HERE,
    "studies:results-bundle": FOR_NOBODY_HERE,
    "studies:publish-results": FOR_NOBODY_HERE,
    "studies:unpublish-results": FOR_NOBODY_HERE,
    # Anyone who holds the secret of the address, with or without an account; wrong secrets: tests/listening.
    "listen:join": OPEN,
    "listen:withdraw-by-code": OPEN,
    "listen:session": OPEN,
    "listen:language": (302, 302, 302, 302),  # to the session
    "listen:step": (302, 302, 302, 302),
    "listen:withdraw": OPEN,
    "listen:sound": OPEN,
    "listen:offline": OPEN,
    "listen:state": OPEN,
    "listen:clip": OPEN,
    "listen:answers": ONLY_POST,
    "listen:alive": ONLY_POST,
    "listen:take-over": ONLY_POST,
    "listen:report": ONLY_POST,
    # Asked without a word of who it is: 401; what there is for whom: test_api, test_nobody_else.
    "api:docs": OPEN,
    "api:schema": OPEN,
    "api:me": API_FOR_MEMBERS,
    "api:editions": OPEN,
    "api:edition": API_FOR_NOBODY_HERE,
    "api:expected": API_FOR_NOBODY_HERE,
    "api:expected-set": API_FOR_NOBODY_HERE,
    "api:requirements": API_FOR_NOBODY_HERE,
    "api:data": API_FOR_NOBODY_HERE,
    "api:accept-data": ONLY_POST,
    "api:data-file": API_FOR_NOBODY_HERE,
    "api:edition-teams": API_FOR_NOBODY_HERE,
    "api:leaderboard": API_FOR_NOBODY_HERE,
    "api:publish-leaderboard": ONLY_POST,
    "api:unpublish-leaderboard": ONLY_POST,
    "api:freeze-leaderboard": ONLY_POST,
    "api:unfreeze-leaderboard": ONLY_POST,
    "api:policy": API_FOR_NOBODY_HERE,
    "api:leaderboard-recipe": ONLY_POST,
    "api:copy-edition": ONLY_POST,
    "api:recipe": API_FOR_NOBODY_HERE,
    "api:audit": API_FOR_NOBODY_HERE,
    "api:edition-uploads": API_FOR_NOBODY_HERE,
    "api:edition-studies": API_FOR_NOBODY_HERE,
    "api:studies": ONLY_POST,
    "api:study-uploads": ONLY_POST,
    "api:study-results": API_FOR_NOBODY_HERE,  # published: tests/listening/results/test_results_api
    "api:study-table": API_FOR_NOBODY_HERE,
    "api:teams": API_FOR_MEMBERS,
    "api:team": API_FOR_NOBODY_HERE,
    "api:leave-team": ONLY_POST,
    "api:withdraw-team": ONLY_POST,
    "api:release-team": ONLY_POST,
    "api:remove-member": ONLY_POST,
    "api:transfer-team": ONLY_POST,
    "api:decide-team": ONLY_POST,
    "api:invitations": API_FOR_NOBODY_HERE,
    "api:revoke-invitation": ONLY_POST,
    "api:submissions": API_FOR_MEMBERS,
    "api:submission": API_FOR_ORGANIZERS,
    "api:report": API_FOR_ORGANIZERS,
    "api:document": API_FOR_ORGANIZERS,
    "api:diff": API_FOR_ORGANIZERS,
    "api:withdraw-submission": ONLY_POST,
    "api:check-submission": ONLY_POST,
    "api:evaluate-submission": ONLY_POST,
    "api:attacks": API_FOR_ORGANIZERS,
    "api:recognitions": API_FOR_ORGANIZERS,
    "api:retrained-recognitions": API_FOR_ORGANIZERS,
    "api:cancel-run": ONLY_POST,
    "api:continue-run": ONLY_POST,
    "api:engines": OPEN,
    "api:proposed-recipe": API_FOR_ORGANIZERS,
    "api:network-trainings": API_FOR_ORGANIZERS,
    "api:systems": OPEN,
    "api:system": API_FOR_ORGANIZERS,
    "api:values": API_FOR_ORGANIZERS,
    "api:system-attacks": API_FOR_ORGANIZERS,
    "api:system-recognitions": API_FOR_ORGANIZERS,
    "api:system-retrained": API_FOR_ORGANIZERS,
    "api:files": (401, 400, 400, 400),  # a data set has to be named
    "api:nothing": UNKNOWN_TO_ALL,
    "jobs:list": FOR_STAFF,
    "jobs:table": FOR_STAFF,
    "jobs:detail": FOR_STAFF,
    "jobs:status": FOR_STAFF,
    "jobs:problems-csv": FOR_STAFF,
    "jobs:cancel": (LOGIN, 404, 405, 405),
    "jobs:again": (LOGIN, 404, 405, 405),
}
# What a form at each address that takes one does for whom; every other address takes none.
POSTS = {
    "account_login": (200, 302, 302, 302),  # the form again, with what is missing
    "mfa_authenticate": (LOGIN, 302, 302, 302),  # home: nobody here waits for a code
    "account_signup": (200, 302, 302, 302),
    "account_confirm_email": UNKNOWN_TO_ALL,
    "account_reset_password": OPEN,
    "account_reset_password_from_key": OPEN,  # a page that says that the link does not work
    "account_set_password": (LOGIN, 302, 302, 302),
    "account_reauthenticate": FOR_MEMBERS,
    "mfa_reauthenticate": (LOGIN, 302, 302, 302),  # these people have no second factor
    "mfa_activate_totp": (LOGIN, 302, 302, 302),
    "mfa_deactivate_totp": (LOGIN, 404, 404, 404),
    "uploads:create": (401, 412, 412, 412),  # no word of the protocol
    "accounts:profile": (LOGIN, 422, 422, 422),
    "accounts:tokens": (LOGIN, 422, 422, 422),
    "accounts:revoke-token": (LOGIN, 404, 404, 404),  # a token of none of them
    **dict.fromkeys(
        (f"people:{name}" for name in ("person", "invite-again", "confirm", "no-link", "deactivate", "reactivate")),
        (LOGIN, 404, 404, 302),
    ),
    "people:password-link": (LOGIN, 404, 404, 200),
    "people:invite": (LOGIN, 404, 404, 422),
    "accounts:notifications": (LOGIN, 302, 302, 302),
    "account_email": (LOGIN, 302, 302, 302),
    "account_change_password": FOR_MEMBERS,  # the form again, with what is missing
    "mfa_generate_recovery_codes": (LOGIN, 302, 302, 302),
    "editions:new": (LOGIN, 404, 422, 404),
    "editions:edit": FOR_NOBODY_HERE,
    "editions:copy": FOR_NOBODY_HERE,
    "editions:register": FOR_NOBODY_HERE,
    "editions:accept-data": FOR_NOBODY_HERE,
    "editions:prepare-data": FOR_NOBODY_HERE,
    "editions:replace-link": FOR_NOBODY_HERE,
    "studies:new": (LOGIN, 404, 422, 404),
    "studies:own": (LOGIN, 404, 422, 404),
    "studies:repeat": (LOGIN, 404, 422, 404),
    "studies:import": (LOGIN, 404, 422, 404),
    **dict.fromkeys(
        (
            "studies:edit",
            "studies:questions",
            "studies:texts",
            "studies:words",
            "studies:design",
            "studies:prepare",
            "studies:preview",
            "studies:launch",
            "studies:pause",
            "studies:resume",
            "studies:close",
            "studies:extend",
            "studies:forget",
            "studies:exclusions",
            "studies:revoke",
            "studies:analyse",
            "studies:results-screen",
            "studies:publish-results",
            "studies:unpublish-results",
        ),
        FOR_NOBODY_HERE,
    ),
    "listen:join": (302, 302, 302, 302),
    "listen:withdraw-by-code": (422, 422, 422, 422),
    "listen:language": (302, 302, 302, 302),
    "listen:step": (302, 302, 302, 302),
    "listen:answers": (422, 422, 422, 422),  # a form is no JSON
    "listen:alive": (422, 422, 422, 422),
    "listen:take-over": (422, 422, 422, 422),
    "listen:report": (422, 422, 422, 422),
    "listen:withdraw": (302, 302, 302, 302),
    "leaderboard:policy": FOR_NOBODY_HERE,
    "leaderboard:recipe": FOR_NOBODY_HERE,
    "leaderboard:publish": FOR_NOBODY_HERE,
    "leaderboard:publish-again": FOR_NOBODY_HERE,
    "leaderboard:unpublish": FOR_NOBODY_HERE,
    "leaderboard:freeze": FOR_NOBODY_HERE,
    "leaderboard:unfreeze": FOR_NOBODY_HERE,
    "teams:edit": FOR_NOBODY_HERE,
    "teams:decide": FOR_NOBODY_HERE,
    "teams:withdraw": FOR_NOBODY_HERE,
    "teams:ask-again": FOR_NOBODY_HERE,
    "teams:release": FOR_NOBODY_HERE,
    "teams:invite": FOR_NOBODY_HERE,
    "teams:revoke-invitation": FOR_NOBODY_HERE,
    "teams:resend-invitation": FOR_NOBODY_HERE,
    "teams:remove": FOR_NOBODY_HERE,
    "teams:transfer": FOR_NOBODY_HERE,
    "teams:leave": FOR_NOBODY_HERE,
    "teams:invitation": FOR_NOBODY_HERE,
    "systems:edit": (LOGIN, 404, 404, 422),
    "systems:share": FOR_NOBODY_HERE,
    "submissions:submit-upload": (LOGIN, 404, 404, 404),
    "submissions:discard-upload": (LOGIN, 404, 404, 404),
    "uploads:submit": (401, 404, 404, 404),
    "submissions:withdraw": FOR_ORGANIZERS_TO_DO,
    "submissions:check": FOR_ORGANIZERS_TO_DO,
    "submissions:evaluate": FOR_ORGANIZERS_TO_DO,
    "submissions:release": FOR_ORGANIZERS_TO_DO,
    **dict.fromkeys(
        (
            "api:publish-leaderboard",
            "api:unpublish-leaderboard",
            "api:unfreeze-leaderboard",
            "api:copy-edition",
            "api:accept-data",
            "api:edition-teams",
            "api:decide-team",
            "api:leave-team",
            "api:withdraw-team",
            "api:release-team",
            "api:remove-member",
            "api:transfer-team",
            "api:invitations",
            "api:revoke-invitation",
        ),
        API_FOR_NOBODY_HERE,
    ),
    "api:editions": (401, 404, 415, 404),
    "api:studies": (401, 404, 400, 404),
    "api:study-uploads": (401, 404, 415, 404),
    "api:freeze-leaderboard": (401, 415, 415, 415),  # a form is no JSON
    "api:withdraw-submission": (401, 404, 415, 404),
    "api:check-submission": (401, 404, 409, 404),
    "api:evaluate-submission": (401, 404, 409, 404),
    "api:attacks": (401, 404, 415, 404),
    "api:recognitions": (401, 404, 415, 404),
    "api:retrained-recognitions": (401, 404, 409, 404),  # nothing to train on
    "api:cancel-run": API_FOR_NOBODY_HERE,  # a run of measures is cancelled by its job
    "api:continue-run": API_FOR_NOBODY_HERE,
    "jobs:cancel": (LOGIN, 404, 302, 302),
    "jobs:again": (LOGIN, 404, 302, 302),
    "deletion:thing": (LOGIN, 404, 404, 422),  # no name is typed
    "deletion:archive": (LOGIN, 404, 404, 302),
    "deletion:restore": (LOGIN, 404, 404, 302),
    "deletion:delete-demo": (LOGIN, 404, 404, 302),  # there is none
    "corpora:import": (LOGIN, 404, 422, 404),
    "corpora:import-demo": FOR_ORGANIZERS_TO_DO,
    "corpora:edit": (LOGIN, 404, 404, 422),
    "corpora:share": FOR_ORGANIZERS_TO_DO,
    "systems:new": (LOGIN, 404, 422, 404),
    "network-trainings:new": (LOGIN, 404, 422, 404),
    "network-trainings:cancel": FOR_ORGANIZERS_TO_DO,
    "network-trainings:continue": FOR_ORGANIZERS_TO_DO,
    "systems:new-training": (LOGIN, 404, 422, 404),
    "systems:new-attack": (LOGIN, 404, 422, 404),
    "systems:new-recognition": (LOGIN, 404, 422, 404),
    "systems:retrain": FOR_ORGANIZERS_TO_DO,
    "systems:cancel-run": FOR_ORGANIZERS_TO_DO,
    "systems:continue-run": FOR_ORGANIZERS_TO_DO,
}
# No form by which somebody who is logged in could be made to do something: a session of a listening test is known by
# the secret of its address alone, and what does not exist does nothing.
WITHOUT_TOKEN = {
    *("listen:language", "listen:step", "listen:withdraw"),
    *("listen:join", "listen:withdraw-by-code", "listen:answers", "listen:alive", "listen:take-over", "listen:report"),
    "api:nothing",
}
# What a person sees who has given a password, but not yet the second factor, differs from a visitor's: its form.
HALF_WAY = {"mfa_authenticate": 200, "account_login": LOGIN}
# A live part tells htmx by this status that it need not ask again.
ENDED = 286


# What a browser may keep of an answer to somebody who is logged in: sound that only its own session fetches, and
# pictures of what everybody may see.
KEPT_BY_BROWSERS = {"listen:clip", "listen:sound", "published:figure"}


def names(resolver: URLResolver, namespace: str = "") -> set[str]:
    found = set()
    for pattern in resolver.url_patterns:
        if isinstance(pattern, URLResolver):
            if pattern.namespace != "admin":
                found |= names(pattern, f"{pattern.namespace}:" if pattern.namespace else namespace)
        elif isinstance(pattern, URLPattern):
            found.add(f"{namespace}{pattern.name}")
    return found


@pytest.fixture
def clients() -> dict[str, Client]:
    people = {
        "member": User.objects.create_user("member@example.org", "pw", name="Mia"),
        "organizer": User.objects.create_user("organizer@example.org", "pw", name="Olga", is_organizer=True),
        "operator": User.objects.create_user("operator@example.org", "pw", name="Otto", is_staff=True),
    }
    clients = {"visitor": Client()}
    for role, person in people.items():
        clients[role] = Client()
        clients[role].force_login(person)
    return clients


@pytest.fixture
def addresses() -> dict[str, str]:
    """One address of each name, to objects that exist."""
    corpus = Corpus.objects.create(name="little", layout="manifest", source="somewhere", is_shared=True)
    speaker = Speaker.objects.create(corpus=corpus, name="a", gender="f")
    audio = store_bytes(b"not to be heard", ".flac")
    utterance = Utterance.objects.create(
        corpus=corpus, speaker=speaker, name="a-1", audio=audio, samples=1, rate_hz=16000
    )
    data_set = DataSet.objects.create(corpus=corpus, name="x_trials_f", role="trial")
    data_set.utterances.add(utterance)
    Edition.objects.create(name="little-edition", title="A little challenge", protocol="2022", corpus=corpus)
    submission = create_baseline(name="b2", title="B2", corpus=corpus)
    file = SubmittedFile.objects.create(
        submission=submission, data_set=data_set, utterance=utterance, audio=audio, samples=1, rate_hz=16000
    )
    AnonymizationRun.objects.create(
        submission=submission, data_set=data_set, method="mcadams-2022", recipe_version="1", code_version="1", seed=1
    )
    submission.report = store_bytes(IntakeReport("b2.zip", "").to_json().encode(), ".json")
    submission.save()
    document = submission.documents.create(path="a.txt", kind="other", key=store_bytes(b"a", ".document"), bytes=1)
    run = start_measures(submission=submission, data_set=data_set)
    Job.objects.filter(evaluation_run=run).update(state=JobState.SUCCEEDED)
    run.measures.create(file=file, pitch_correlation=0.5, duration_difference_ms=0.0)
    for theme in ("light.svg", "dark.svg", "light.png", "light.pdf"):
        store_named(f"derived/figures/{run.pk}/pitch-{theme}")
    training = _trained(submission)
    arguments: dict[str, list[Any]] = {
        "media": ["nonsense"],
        "docs:page": ["teams"],
        "docs:recipe": ["2022"],
        "docs:file": ["search.json"],
        "first-account": ["nonsense"],
        "downloads:file": [build_wheel().name],
        "account_confirm_email": ["nonsense"],
        "account_reset_password_from_key": ["abc", "nonsense"],
        "accounts:revoke-token": [1],
        "corpora:detail": ["little"],
        "corpora:edit": ["little"],
        "corpora:share": ["little"],
        "corpora:speakers": ["little"],
        "corpora:utterances": ["little"],
        "corpora:utterance": ["little", "a-1"],
        "corpora:data-set": ["little", "x_trials_f"],
        "systems:new": ["little"],
        "systems:detail": ["b2"],
        "systems:description": ["b2"],
        "systems:edit": ["b2"],
        "systems:share": ["b2"],
        "systems:progress": ["b2"],
        "systems:values-csv": ["b2"],
        "systems:objective-csv": ["b2"],
        "systems:objective-json": ["b2"],
        "systems:objective-latex": ["b2"],
        "systems:det": ["b2", "svg"],
        "systems:data-set": ["b2", "x_trials_f"],
        "systems:measures-csv": ["b2", "x_trials_f"],
        "systems:compare": ["b2", file.pk],
        "systems:run": ["b2", "x_trials_f"],
        "systems:voices-csv": ["b2", "x_trials_f"],
        **_of_engines(submission, data_set),
        **{name: ["b2"] for name in ("systems:trainings", "systems:new-training")},
        **{
            name: ["b2", training]
            for name in ("systems:training", "systems:training-live", "systems:training-csv", "systems:training-json")
        },
        "systems:training-attacker": ["b2", training, 1],
    }
    network = make_network_training(Corpus.objects.get(name="little")).pk
    arguments |= {name: [network] for name in MATRIX if name.startswith("network-trainings:")}
    arguments |= {f"network-trainings:{name}": [network, 1] for name in ("card", "losses", "weights")}
    arguments |= {"network-trainings:list": [], "network-trainings:new": ["little"]}
    arguments |= {name: [submission.pk] for name in MATRIX if name.startswith("submissions:")}
    upload = _upload()
    edition = Edition.objects.get(name="little-edition").pk
    arguments |= {name: ["editions", edition] for name in MATRIX if name.startswith("deletion:")}
    arguments |= {"deletion:index": [], "deletion:delete-demo": [], "deletion:receipt": [1]}
    arguments |= _of_a_team()
    somebody = User.objects.create_user("somebody@example.org", "pw").pk
    arguments |= {name: [somebody] for name in MATRIX if name.startswith("people:")}
    arguments |= {"people:list": [], "people:invite": []}
    arguments |= {name: ["little-edition"] for name in MATRIX if name.startswith("leaderboard:")}
    arguments |= _of_a_study()
    arguments |= _of_a_listener()
    arguments["listeners:leaderboard-csv"] = ["little-edition"]
    arguments["published:figure"] = ["svg"]
    arguments["leaderboard:figure"] = ["little-edition", "tradeoff-wer", "svg"]
    arguments |= _of_the_api(submission.pk, arguments["teams:revoke-invitation"], arguments["teams:remove"])
    arguments |= {
        "api:diff": [submission.pk, submission.pk],
        "api:document": [submission.pk, document.pk],
        "submissions:new": ["little-edition"],
        "submissions:upload-corpus": [],
        "submissions:submit-upload": [upload.pk],
        "submissions:discard-upload": [upload.pk],
        "uploads:detail": [upload.pk],
        "uploads:submit": [upload.pk],
        "submissions:list": ["little-edition"],
        "submissions:diff": [submission.pk, submission.pk],
        "submissions:diff-csv": [submission.pk, submission.pk],
        "submissions:document": [submission.pk, document.pk],
    }
    jobs = {
        name: [run.job_id] for name in MATRIX if name.startswith("jobs:") and name not in {"jobs:list", "jobs:table"}
    }
    return {name: reverse(name, args=(arguments | jobs).get(name, [])) for name in MATRIX}


def _trained(submission: Submission) -> int:
    """A training with one seed whose attacker can be fetched."""
    run = make_training(submission, seeds=(1,), epochs={1: 1}, ended={1: final_values(0.5)}, state="succeeded")
    for name in ENCODER_FILES:
        store_named(encoder_key(run, 1, name))
    return run.pk


def _of_engines(submission: Submission, data_set: DataSet) -> dict[str, list[Any]]:
    """What the addresses of an attack and a recognition that have ended are made of."""
    TrialList.objects.create(
        trial_set=data_set, enrolment_set=data_set, origin="given", model_count=1, target_count=1, nontarget_count=1
    )
    attack = make_attack_run(submission, sets=[data_set.name])
    make_recognition_run(submission, sets=[data_set.name])
    make_retrained(submission, data_set.name)
    arguments: dict[str, list[Any]] = {
        f"systems:{name}": ["b2"]
        for name in (
            "attacks",
            "new-attack",
            "attack-progress",
            "attacks-csv",
            "attacks-json",
            "recognition",
            "new-recognition",
            "recognition-progress",
            "recognition-csv",
            "recognised-utterances-csv",
            "retrain",
            "retraining-progress",
            "retrained-csv",
        )
    }
    return arguments | {
        "systems:attack-scores": ["b2", attack.pk, attack.score_sets.order_by("pk").first().pk],
        "systems:attack-archive": ["b2", attack.pk],
        "systems:cancel-run": ["b2", attack.pk],
        "systems:continue-run": ["b2", attack.pk],
    }


def _of_a_team() -> dict[str, list[Any]]:
    """What the addresses of the edition and of a team with an owner and an invitation are made of."""
    edition = Edition.objects.get(name="little-edition")
    team = make_team(edition)
    invitation = team.invitations.create(email="new@example.org", secret_hash="0", expires_at=timezone.now())
    arguments: dict[str, list[Any]] = {
        name: ["little-edition"] if name.startswith("editions:") else [team.pk]
        for name in MATRIX
        if name.startswith(("editions:", "teams:")) and name not in {"editions:list", "editions:new"}
    }
    return arguments | {
        "editions:data-file": ["little-edition", "tones_enrolls.zip"],
        "teams:revoke-invitation": [team.pk, invitation.pk],
        "teams:resend-invitation": [team.pk, invitation.pk],
        "teams:remove": [team.pk, team.memberships.get().pk],
        "teams:transfer": [team.pk, team.memberships.get().pk],
        "teams:invitation": ["nonsense"],
    }


def _of_a_study() -> dict[str, list[Any]]:
    """What the addresses of a launched study with a session and a rule are made of."""
    edition = Edition.objects.get(name="little-edition")
    corpus = Corpus.objects.get(editions=edition)
    enrolment = DataSet.objects.create(corpus=corpus, name="x_enrolls", role="enrolment")
    enrolment.utterances.add(corpus.utterances.get())
    languages = ["en", "ar"]
    study = make_study(edition=edition, evaluators=1, trials=1, systems=0, places_per_network=9, languages=languages)
    session = make_session(study)
    rule = study.exclusion_rules.create(session=session, reason="to be revoked")
    arguments: dict[str, list[Any]] = {name: [study.name] for name in MATRIX if name.startswith("studies:")}
    arguments |= {"studies:list": [], "studies:new": [], "studies:own": [], "studies:import": []}
    arguments |= {"studies:repeat": []}
    return arguments | {
        "studies:question-preview": [study.name, languages[0]],
        "studies:words": [study.name, "ar"],
        "studies:results-system": [study.name, "secretive"],
        "studies:results-csv": [study.name, "raw", "summary"],
        "studies:results-figure": [study.name, "raw", "violin-naturalness", "svg"],
        "studies:session": [study.name, session.pk],
        "studies:revoke": [study.name, rule.pk],
        "studies:export-csv": [study.name, "trials"],
    }


def _of_a_listener() -> dict[str, list[Any]]:
    """What the addresses of the session in that study are made of."""
    session = Session.objects.select_related("study").get()
    trial = Trial.objects.get(block__sessions=session)
    secret = {"seed": 1, "right": [1, 3, 2]}
    sound = session.screening_results.create(kind=ScreeningResult.Kind.SOUND, attempt=1, secret=secret)
    arguments: dict[str, list[Any]] = {name: [session.token] for name in MATRIX if name.startswith("listen:")}
    return arguments | {
        "listen:join": [session.study.link_key],
        "listen:withdraw-by-code": [],
        "listen:step": [session.token, "consent"],
        "listen:sound": [session.token, sound_names(session, sound, 0)[0]],
        "listen:clip": [session.token, clip_names(session, trial, "a")[0]],
    }


def _of_the_api(submission: int, invitation: list[Any], member: list[Any]) -> dict[str, list[Any]]:
    """What the addresses of the API are made of."""
    found: dict[str, list[Any]] = {
        f"api:{name}": ["little-edition"]
        for name in (
            "edition",
            "expected",
            "requirements",
            "data",
            "accept-data",
            "edition-teams",
            "leaderboard",
            "publish-leaderboard",
            "unpublish-leaderboard",
            "freeze-leaderboard",
            "unfreeze-leaderboard",
            "policy",
            "leaderboard-recipe",
            "copy-edition",
            "recipe",
            "audit",
            "edition-uploads",
            "edition-studies",
        )
    }
    of_team = ("team", "decide-team", "invitations", "leave-team", "withdraw-team", "release-team")
    found |= {f"api:{name}": invitation[:1] for name in of_team}
    found["api:proposed-recipe"] = ["little"]
    found |= {f"api:{name}": member for name in ("remove-member", "transfer-team")}
    found |= {f"api:{name}": [submission] for name in ("submission", "report")}
    found |= {f"api:{name}-submission": [submission] for name in ("withdraw", "check", "evaluate")}
    found |= {f"api:{name}": [submission] for name in ("attacks", "recognitions", "retrained-recognitions")}
    found |= {f"api:{name}-run": [submission, 1] for name in ("cancel", "continue")}
    of_systems = ("system", "values", "files", "system-attacks", "system-recognitions", "system-retrained")
    found |= {f"api:{name}": ["b2"] for name in of_systems}
    study = Study.objects.get(edition__name="little-edition").name
    found |= {"api:study-results": [study], "api:study-table": [study, "raw", "summary"]}
    found |= {"api:expected-set": ["little-edition", "tones_enrolls"]}
    found |= {"api:data-file": ["little-edition", "tones_enrolls.zip"]}
    return found | {"api:revoke-invitation": invitation, "api:nothing": ["no/such/address"]}


def _upload() -> Upload:
    in_a_week = timezone.now() + timedelta(days=7)
    edition = Edition.objects.get(name="little-edition")
    return Upload.objects.create(edition=edition, file_name="a.zip", size=10, expires_at=in_a_week)


def store_named(name: str) -> None:
    from portal.core.storage import replace_named

    replace_named(name, b"figure")


def second_factor_of(person: User) -> None:
    TOTP.activate(person, generate_totp_secret())
    RecoveryCodes.activate(person)


def outcome(response) -> int | str:
    if response.status_code == 302 and response.url.startswith(reverse("account_login")):
        return LOGIN
    return 200 if response.status_code == ENDED else response.status_code


def test_matrix_holds_every_address():
    assert names(get_resolver()) == set(MATRIX)


@pytest.mark.usefixtures("plain_refusals")
def test_each_role_gets_what_the_matrix_says(clients, addresses, monkeypatch):
    """A page is made for the organizer and for visitors; for the others it counts whether they get it."""
    found, kept = {}, set()
    for name in MATRIX:
        answers = {role: clients[role].get(addresses[name]) for role in ("organizer", "visitor")}
        with monkeypatch.context() as patch:
            if answers["organizer"].status_code == 200:
                patch.setattr(Template, "render", lambda *_: "")
            answers |= {role: clients[role].get(addresses[name]) for role in ("member", "operator")}
        found[name] = tuple(outcome(answers[role]) for role in ROLES)
        served = [one for role, one in answers.items() if role != "visitor" and one.status_code == 200]
        if any("no-store" not in one.get("Cache-Control", "") for one in served):
            kept.add(name)
    assert found == MATRIX
    assert kept == KEPT_BY_BROWSERS


@pytest.mark.usefixtures("plain_refusals")
def test_password_alone_opens_nothing_where_a_second_factor_is_set(addresses):
    person = User.objects.create_user("half@example.org", "pw", is_organizer=True, is_staff=True, is_superuser=True)
    second_factor_of(person)
    half = Client()
    assert half.post(addresses["account_login"], {"login": person.email, "password": "pw"}).status_code == 302
    found = {name: outcome(half.get(addresses[name])) for name in MATRIX}
    assert found == {name: expected[0] for name, expected in MATRIX.items()} | HALF_WAY


def test_second_factor_changes_only_after_confirming_the_password(addresses):
    person = User.objects.create_user("whole@example.org", "pw")
    second_factor_of(person)
    client = Client()
    client.force_login(person)
    kept = list(Authenticator.objects.values())
    for name in MATRIX:
        if name.startswith("mfa_"):
            client.post(addresses[name], {"code": "000000"})
            assert list(Authenticator.objects.values()) == kept, name
    asked = {name: client.post(addresses[name]) for name in ("mfa_deactivate_totp", "mfa_generate_recovery_codes")}
    assert all(answer["Location"].startswith(addresses["account_reauthenticate"]) for answer in asked.values())


@pytest.mark.usefixtures("plain_refusals")
def test_each_role_may_do_what_the_matrix_says(clients, addresses):
    found = {name: tuple(outcome(clients[role].post(addresses[name])) for role in ROLES) for name in POSTS}
    assert found == POSTS
    others = MATRIX.keys() - POSTS.keys() - {"account_logout", "api:nothing"}
    for name in sorted(others):
        answers = {outcome(clients[role].post(addresses[name])) for role in ROLES}
        assert answers <= {LOGIN, 401, 404, 405}, name
    assert [clients[role].post(addresses["account_logout"]).status_code for role in ROLES] == [302] * 4
    assert outcome(clients["member"].get(addresses["accounts:profile"])) == LOGIN


@pytest.mark.usefixtures("plain_refusals")
def test_no_address_makes_a_session_for_a_visitor(addresses):
    Edition.objects.update(is_listed=True)
    made = {}
    for name, address in addresses.items():
        for method in ("get", "post"):
            getattr(Client(), method)(address)
            if Sessions.objects.all().delete()[0]:
                made[name] = method
    assert made == {}


def test_only_posts_with_a_token_change_anything(addresses):
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(User.objects.create_user("o@example.org", "pw", is_organizer=True, is_staff=True))
    logging.disable(logging.WARNING)  # two hundred lines that a form came without a token
    try:
        taken = {name for name in MATRIX if strict.post(addresses[name]).status_code not in {403, 405}}
    finally:
        logging.disable(logging.NOTSET)
    assert taken == WITHOUT_TOKEN


@pytest.mark.parametrize(
    ("name", "most"),
    [
        ("account_login", 30),
        ("account_signup", 20),
        ("account_reset_password", 20),
        ("account_reset_password_from_key", 20),
        ("first-account", 30),
    ],
)
def test_doors_for_strangers_are_throttled(name, most):
    arguments = {"account_reset_password_from_key": ["abc", "nonsense"], "first-account": ["nonsense"]}
    address = reverse(name, args=arguments.get(name, []))
    stranger, other = Client(REMOTE_ADDR="192.0.2.1"), Client(REMOTE_ADDR="192.0.2.2")
    statuses = [stranger.post(address, {"email": f"n{number}@test.example"}).status_code for number in range(most + 1)]
    assert (429 in statuses[:-1], statuses[-1]) == (False, 429)
    assert other.post(address, {"email": "n@test.example"}).status_code != 429


def test_pages_send_a_strict_content_security_policy(clients, addresses):
    policy = clients["organizer"].get(addresses["systems:detail"])["Content-Security-Policy"]
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert (rules["default-src"], rules["script-src"], rules["style-src"]) == ("'none'", "'self'", "'self'")
    assert "unsafe" not in policy
