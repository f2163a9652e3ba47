"""Every address of the API but those of uploads, which speak tus."""

from django.urls import path, re_path

from portal.api import boards, docs, editions, studies, submissions, systems, teams
from portal.api.base import nothing_here

app_name = "api"
urlpatterns = [
    path("", docs.documentation, name="docs"),
    path("schema/", docs.SchemaDocument.as_view(), name="schema"),
    path("me", teams.Me.as_view(), name="me"),
    path("editions/", editions.EditionList.as_view(), name="editions"),
    path("editions/<slug:edition>/", editions.EditionDetail.as_view(), name="edition"),
    path("editions/<slug:edition>/expected", editions.Expected.as_view(), name="expected"),
    path("editions/<slug:edition>/teams/", editions.EditionTeams.as_view(), name="edition-teams"),
    path("editions/<slug:edition>/board", editions.BoardDetail.as_view(), name="board"),
    path("editions/<slug:edition>/board/publish", editions.PublishBoard.as_view(), name="publish-board"),
    path("editions/<slug:edition>/board/unpublish", editions.UnpublishBoard.as_view(), name="unpublish-board"),
    path("editions/<slug:edition>/board/freeze", editions.FreezeBoard.as_view(), name="freeze-board"),
    path("editions/<slug:edition>/board/unfreeze", editions.UnfreezeBoard.as_view(), name="unfreeze-board"),
    path("editions/<slug:edition>/board/policy", boards.LivePolicy.as_view(), name="policy"),
    path("editions/<slug:edition>/board/policy/draft", boards.DraftPolicy.as_view(), name="draft-policy"),
    path("editions/<slug:edition>/board/policy/live", boards.MakeLive.as_view(), name="live-policy"),
    path("editions/<slug:edition>/copy", editions.CopyEdition.as_view(), name="copy-edition"),
    path("editions/<slug:edition>/recipe", editions.RecipeText.as_view(), name="recipe"),
    path("editions/<slug:edition>/audit", editions.Audit.as_view(), name="audit"),
    path("editions/<slug:edition>/uploads/", submissions.EditionUploads.as_view(), name="edition-uploads"),
    path("editions/<slug:edition>/studies/", studies.EditionStudies.as_view(), name="edition-studies"),
    path("studies/<slug:study>/results", studies.StudyResults.as_view(), name="study-results"),
    path("studies/<slug:study>/results/<slug:scores>/<slug:table>", studies.StudyTable.as_view(), name="study-table"),
    path("teams/", teams.TeamList.as_view(), name="teams"),
    path("teams/<int:pk>/", teams.TeamDetail.as_view(), name="team"),
    path("teams/<int:pk>/decide", teams.DecideTeam.as_view(), name="decide-team"),
    path("teams/<int:pk>/leave", teams.LeaveTeam.as_view(), name="leave-team"),
    path("teams/<int:pk>/withdraw", teams.WithdrawTeam.as_view(), name="withdraw-team"),
    path("teams/<int:pk>/release", teams.ReleaseTeam.as_view(), name="release-team"),
    path("teams/<int:pk>/members/<int:membership>/remove", teams.RemoveMember.as_view(), name="remove-member"),
    path("teams/<int:pk>/members/<int:membership>/transfer", teams.TransferTeam.as_view(), name="transfer-team"),
    path("teams/<int:pk>/invitations/", teams.InvitationList.as_view(), name="invitations"),
    path(
        "teams/<int:pk>/invitations/<int:invitation>/revoke",
        teams.RevokeInvitation.as_view(),
        name="revoke-invitation",
    ),
    path("submissions/", submissions.SubmissionList.as_view(), name="submissions"),
    path("submissions/<int:pk>/", submissions.SubmissionDetail.as_view(), name="submission"),
    path("submissions/<int:pk>/report", submissions.Report.as_view(), name="report"),
    path("submissions/<int:pk>/documents/<int:document>", submissions.Document.as_view(), name="document"),
    path("submissions/<int:pk>/diff/<int:other>", submissions.Diff.as_view(), name="diff"),
    path("submissions/<int:pk>/withdraw", submissions.Withdraw.as_view(), name="withdraw-submission"),
    path("submissions/<int:pk>/check", submissions.Check.as_view(), name="check-submission"),
    path("submissions/<int:pk>/evaluate", submissions.Evaluate.as_view(), name="evaluate-submission"),
    path("systems/", systems.SystemList.as_view(), name="systems"),
    path("systems/<slug:name>/", systems.SystemDetail.as_view(), name="system"),
    path("systems/<slug:name>/values", systems.Values.as_view(), name="values"),
    path("systems/<slug:name>/files", systems.Files.as_view(), name="files"),
    re_path(r"^(?P<rest>[\s\S]+)\Z", nothing_here, name="nothing"),
]
