"""Every address of the API but those of uploads, which speak tus."""

from django.urls import path, re_path

from portal.api import data, docs, editions, engines, leaderboards, studies, submissions, systems, teams, trainings
from portal.api.base import address, nothing_here

app_name = "api"


edition, submission = "editions/<slug:edition>", "submissions/<int:pk>"
leaderboard, team, system = f"{edition}/leaderboard", "teams/<int:pk>", "systems/<slug:name>"
urlpatterns = [
    path("", docs.documentation, name="docs"),
    address("schema/", "schema", get=docs.show_schema),
    address("me", "me", get=teams.show_me),
    address("editions/", "editions", get=editions.list_editions, post=editions.create_edition),
    address(f"{edition}/", "edition", get=editions.show_edition, patch=editions.change_edition),
    address(f"{edition}/expected", "expected", get=data.show_expected),
    address(f"{edition}/expected/<slug:data_set>.csv", "expected-set", get=data.list_expected_utterances),
    address(f"{edition}/data/", "data", get=data.show_data),
    address(f"{edition}/data/accept", "accept-data", post=data.accept_data),
    address(f"{edition}/data/<str:file>", "data-file", get=data.download_data),
    address(f"{edition}/requirements/", "requirements", get=data.show_requirements),
    address(f"{edition}/teams/", "edition-teams", get=editions.list_teams_of_edition, post=editions.register_team),
    address(leaderboard, "leaderboard", get=editions.show_leaderboard),
    address(f"{leaderboard}/publish", "publish-leaderboard", post=editions.publish_leaderboard),
    address(f"{leaderboard}/unpublish", "unpublish-leaderboard", post=editions.unpublish_leaderboard),
    address(f"{leaderboard}/freeze", "freeze-leaderboard", post=editions.freeze_leaderboard),
    address(f"{leaderboard}/unfreeze", "unfreeze-leaderboard", post=editions.unfreeze_leaderboard),
    address(f"{leaderboard}/policy", "policy", get=leaderboards.show_policy, put=leaderboards.change_policy),
    address(f"{leaderboard}/recipe", "leaderboard-recipe", put=leaderboards.change_recipe),
    address(f"{edition}/copy", "copy-edition", post=editions.copy_edition),
    address(f"{edition}/recipe", "recipe", get=editions.show_recipe),
    address(f"{edition}/audit", "audit", get=editions.list_audit),
    address(f"{edition}/uploads/", "edition-uploads", get=submissions.list_uploads),
    address(f"{edition}/studies/", "edition-studies", get=studies.list_studies),
    address("studies/", "studies", post=studies.create_study),
    address("studies/uploads/", "study-uploads", post=studies.begin_study_upload),
    address("studies/<slug:study>/results", "study-results", get=studies.show_results),
    address(
        "studies/<slug:study>/results/<slug:scores>/<slug:table>", "study-table", get=studies.show_table_of_results
    ),
    address("teams/", "teams", get=teams.list_teams),
    address(f"{team}/", "team", get=teams.show_team, patch=teams.change_team),
    address(f"{team}/decide", "decide-team", post=teams.decide_team),
    address(f"{team}/leave", "leave-team", post=teams.leave_team),
    address(f"{team}/withdraw", "withdraw-team", post=teams.withdraw_team),
    address(f"{team}/release", "release-team", post=teams.release_members),
    address(f"{team}/members/<int:membership>/remove", "remove-member", post=teams.remove_member),
    address(f"{team}/members/<int:membership>/transfer", "transfer-team", post=teams.transfer_team),
    address(f"{team}/invitations/", "invitations", get=teams.list_invitations, post=teams.invite_member),
    address(f"{team}/invitations/<int:invitation>/revoke", "revoke-invitation", post=teams.revoke_invitation),
    address("submissions/", "submissions", get=submissions.list_submissions),
    address(f"{submission}/", "submission", get=submissions.show_submission),
    address(f"{submission}/report", "report", get=submissions.show_report),
    address(f"{submission}/documents/<int:document>", "document", get=submissions.download_document),
    address(f"{submission}/diff/<int:other>", "diff", get=submissions.compare_submissions),
    address(f"{submission}/withdraw", "withdraw-submission", post=submissions.withdraw_submission),
    address(f"{submission}/check", "check-submission", post=submissions.check_submission),
    address(f"{submission}/evaluate", "evaluate-submission", post=submissions.evaluate_submission),
    address(f"{submission}/attacks", "attacks", get=engines.list_attacks, post=engines.start_attack),
    address(
        f"{submission}/recognitions", "recognitions", get=engines.list_recognitions, post=engines.start_recognition
    ),
    address(
        f"{submission}/retrained-recognitions",
        "retrained-recognitions",
        get=engines.list_retrainings,
        post=engines.start_retraining,
    ),
    address(f"{submission}/runs/<int:run>/cancel", "cancel-run", post=engines.cancel_run),
    address(f"{submission}/runs/<int:run>/continue", "continue-run", post=engines.continue_run),
    address("engines/", "engines", get=engines.list_engines),
    address("network-trainings/", "network-trainings", get=trainings.list_network_trainings),
    address("corpora/<slug:corpus>/proposed-recipe", "proposed-recipe", get=editions.propose_recipe),
    address("systems/", "systems", get=systems.list_systems),
    address(f"{system}/", "system", get=systems.show_system),
    address(f"{system}/values", "values", get=systems.show_values),
    address(f"{system}/attacks", "system-attacks", get=engines.show_attacks),
    address(f"{system}/recognitions", "system-recognitions", get=engines.show_recognitions),
    address(f"{system}/retrained-recognitions", "system-retrained", get=engines.show_retrained),
    address(f"{system}/files", "files", get=systems.list_file_measures),
    re_path(r"^(?P<rest>[\s\S]+)\Z", nothing_here, name="nothing"),
]
