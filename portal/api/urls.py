"""Every address of the API but those of uploads, which speak tus."""

from typing import Any

from django.urls import URLPattern, path, re_path

from portal.api import data, docs, editions, engines, leaderboards, studies, submissions, systems, teams, trainings
from portal.api.base import ApiViewSet
from portal.api.problems import nothing_here

app_name = "api"


def address(route: str, name: str, views: type[ApiViewSet], **actions: Any) -> URLPattern:
    """Return an address with the action of each method."""
    return path(route, views.as_view(actions), name=name)


edition, team = "editions/<slug:edition>", "teams/<int:pk>"
submission, system = "submissions/<int:pk>", "systems/<slug:name>"
leaderboard, results = f"{edition}/leaderboard", "studies/<slug:study>/results"
urlpatterns = [
    path("", docs.documentation, name="docs"),
    address("schema/", "schema", docs.SchemaViewSet, get="retrieve"),
    address("me", "me", teams.MeViewSet, get="retrieve"),
    address("editions/", "editions", editions.EditionViewSet, get="list", post="create"),
    address(f"{edition}/", "edition", editions.EditionViewSet, get="retrieve", patch="partial_update"),
    address(f"{edition}/copy", "copy-edition", editions.EditionViewSet, post="copy"),
    address(f"{edition}/recipe", "recipe", editions.EditionViewSet, get="recipe"),
    address(f"{edition}/audit", "audit", editions.AuditViewSet, get="list"),
    address("corpora/<slug:corpus>/proposed-recipe", "proposed-recipe", editions.CorpusViewSet, get="recipe"),
    address(f"{edition}/requirements/", "requirements", data.RequirementsViewSet, get="retrieve"),
    address(f"{edition}/expected", "expected", data.DataViewSet, get="expected"),
    address(f"{edition}/expected/<slug:data_set>.csv", "expected-set", data.DataViewSet, get="expected_set"),
    address(f"{edition}/data/", "data", data.DataViewSet, get="retrieve"),
    address(f"{edition}/data/accept", "accept-data", data.DataViewSet, post="accept"),
    address(f"{edition}/data/<str:file>", "data-file", data.DataViewSet, get="download"),
    address(f"{edition}/teams/", "edition-teams", teams.EditionTeamViewSet, get="list", post="create"),
    address(f"{edition}/uploads/", "edition-uploads", submissions.EditionUploadViewSet, get="list"),
    address(f"{edition}/studies/", "edition-studies", studies.EditionStudyViewSet, get="list"),
    address(leaderboard, "leaderboard", leaderboards.LeaderboardViewSet, get="retrieve"),
    address(f"{leaderboard}/publish", "publish-leaderboard", leaderboards.LeaderboardViewSet, post="publish"),
    address(f"{leaderboard}/unpublish", "unpublish-leaderboard", leaderboards.LeaderboardViewSet, post="unpublish"),
    address(f"{leaderboard}/freeze", "freeze-leaderboard", leaderboards.LeaderboardViewSet, post="freeze"),
    address(f"{leaderboard}/unfreeze", "unfreeze-leaderboard", leaderboards.LeaderboardViewSet, post="unfreeze"),
    address(f"{leaderboard}/policy", "policy", leaderboards.PolicyViewSet, get="retrieve", put="update"),
    address(f"{leaderboard}/recipe", "leaderboard-recipe", leaderboards.PolicyViewSet, put="recipe"),
    address("studies/", "studies", studies.StudyViewSet, post="create"),
    address("studies/uploads/", "study-uploads", studies.StudyViewSet, post="begin_upload"),
    address(results, "study-results", studies.StudyResultsViewSet, get="retrieve"),
    address(f"{results}/<slug:scores>/<slug:table>", "study-table", studies.StudyResultsViewSet, get="table"),
    address("teams/", "teams", teams.TeamViewSet, get="list"),
    address(f"{team}/", "team", teams.TeamViewSet, get="retrieve", patch="partial_update"),
    address(f"{team}/decide", "decide-team", teams.TeamViewSet, post="decide"),
    address(f"{team}/leave", "leave-team", teams.TeamViewSet, post="leave"),
    address(f"{team}/withdraw", "withdraw-team", teams.TeamViewSet, post="withdraw"),
    address(f"{team}/release", "release-team", teams.TeamViewSet, post="release"),
    address(f"{team}/members/<int:membership>/remove", "remove-member", teams.TeamViewSet, post="remove_member"),
    address(f"{team}/members/<int:membership>/transfer", "transfer-team", teams.TeamViewSet, post="transfer"),
    address(f"{team}/invitations/", "invitations", teams.InvitationViewSet, get="list", post="create"),
    address(f"{team}/invitations/<int:invitation>/revoke", "revoke-invitation", teams.InvitationViewSet, post="revoke"),
    address("submissions/", "submissions", submissions.SubmissionViewSet, get="list"),
    address(f"{submission}/", "submission", submissions.SubmissionViewSet, get="retrieve"),
    address(f"{submission}/report", "report", submissions.SubmissionViewSet, get="report"),
    address(f"{submission}/documents/<int:document>", "document", submissions.SubmissionViewSet, get="document"),
    address(f"{submission}/diff/<int:other>", "diff", submissions.SubmissionViewSet, get="compare"),
    address(f"{submission}/withdraw", "withdraw-submission", submissions.SubmissionViewSet, post="withdraw"),
    address(f"{submission}/check", "check-submission", submissions.SubmissionViewSet, post="check"),
    address(f"{submission}/evaluate", "evaluate-submission", submissions.SubmissionViewSet, post="evaluate"),
    address(f"{submission}/attacks", "attacks", engines.AttackViewSet, get="list", post="create"),
    address(f"{submission}/recognitions", "recognitions", engines.RecognitionViewSet, get="list", post="create"),
    address(
        f"{submission}/retrained-recognitions",
        "retrained-recognitions",
        engines.RetrainingViewSet,
        get="list",
        post="create",
    ),
    address(f"{submission}/runs/<int:run>/cancel", "cancel-run", engines.RunViewSet, post="cancel"),
    address(f"{submission}/runs/<int:run>/continue", "continue-run", engines.RunViewSet, post="resume"),
    address("engines/", "engines", engines.EngineViewSet, get="list"),
    address("network-trainings/", "network-trainings", trainings.NetworkTrainingViewSet, get="list"),
    address("systems/", "systems", systems.SystemViewSet, get="list"),
    address(f"{system}/", "system", systems.SystemViewSet, get="retrieve"),
    address(f"{system}/values", "values", systems.SystemViewSet, get="values"),
    address(f"{system}/files", "files", systems.UtteranceViewSet, get="list"),
    address(f"{system}/attacks", "system-attacks", engines.AttackNumbersViewSet, get="list"),
    address(f"{system}/recognitions", "system-recognitions", engines.RecognitionNumbersViewSet, get="list"),
    address(f"{system}/retrained-recognitions", "system-retrained", engines.PhoneNumbersViewSet, get="list"),
    re_path(r"^(?P<rest>[\s\S]+)\Z", nothing_here, name="nothing"),
]
