"""What the pages of editions and teams show: phases in words, the rules of the recipe, what to do next, who may act."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.urls import reverse
from django.utils.http import urlencode
from django_countries import countries

from evaluation.protocols.board_policy import PolicyError
from evaluation.protocols.ranking_needs import SCORES, SIMILARITY, SPEECH, needed_to_rank
from evaluation.protocols.recipes import RecipeError
from portal.challenges import rules as phases
from portal.challenges.models import Edition
from portal.challenges.recipe_checks import missing_sets
from portal.challenges.recipe_words import Rules, rules_of
from portal.challenges.rules import Phase
from portal.challenges.selectors import editions_organised_by
from portal.teams import rules, selectors
from portal.teams.models import Invitation, Membership, Team
from portal.teams.rules import InvitationState

PARTS = {SCORES: "Score files", SPEECH: "Anonymised recordings", SIMILARITY: "Similarity matrices"}


@dataclass(frozen=True)
class EditionRow:
    """An edition in a list: its phases in words, and what the visitor is in it."""

    edition: Edition
    registration: str
    submissions: str
    team: Team | None
    is_organized: bool


@dataclass(frozen=True)
class NextStep:
    """Something that this visitor could do now; without an address only something to know."""

    title: str
    text: str
    action: str = ""
    url: str = ""


def edition_rows(user: Any, editions: list[Edition], now: datetime) -> list[EditionRow]:
    """A row for each edition, in a number of queries that does not depend on theirs."""
    organised = editions_organised_by(user)
    teams = selectors.teams_by_edition(user)
    return [
        EditionRow(
            edition=edition,
            registration=phases.phase_in_words(edition, "registration", now),
            submissions=phases.phase_in_words(edition, "submissions", now),
            team=teams.get(edition.pk),
            is_organized=edition.pk in organised,
        )
        for edition in editions
    ]


def edition_page(user: Any, edition: Edition, now: datetime) -> dict[str, Any]:
    """Everything on the page of an edition."""
    is_organizer = user.is_authenticated and edition.organizers.filter(pk=user.pk).exists()
    team = selectors.team_of(user, edition)
    context: dict[str, Any] = {
        "edition": edition,
        "registration": phases.phase_in_words(edition, "registration", now),
        "submissions": phases.phase_in_words(edition, "submissions", now),
        "is_organizer": is_organizer,
        "may_copy": is_organizer and user.is_organizer,
        "team": team,
        "organizers": edition.organizers.order_by("name", "email"),
        "rules": _rules(edition),
    }
    # An organizer who takes part with a team of their own is told what the team does next, too.
    steps = [] if is_organizer and team is None else _steps(user, edition, team, now)
    context["steps"] = [*(_organizer_steps(edition) if is_organizer else []), *steps]
    if is_organizer and context["rules"] and edition.corpus:
        held = edition.corpus.data_sets.values_list("name", flat=True)
        context["missing_sets"] = missing_sets(context["rules"].recipe, held)
    if is_organizer and context["rules"]:
        context["unensured"] = list(_unensured(edition))
    return context


def _unensured(edition: Edition) -> Iterator[str]:
    """Sentences for the organizer about what a rank rests on and an accepted archive may lack."""
    required = {SCORES: edition.scores_required, SPEECH: edition.audio_required and edition.corpus is not None}
    try:
        needed = needed_to_rank(edition.recipe, edition.track, edition.board_policy)
    except PolicyError:  # a policy of another recipe
        needed = needed_to_rank(edition.recipe, edition.track)
    lacking: dict[str, list[str]] = {}
    for label, kinds in needed.items():
        if not any(required.get(kind) for kind in kinds):
            lacking.setdefault(kinds[0], []).append(label)
    for kind, labels in lacking.items():
        yield f"{PARTS[kind]} are not required, but the rank rests on {' and '.join(labels)} from these."


def _rules(edition: Edition) -> Rules | None:
    """None where the recipe cannot be read, which forms prevent but a row written by hand does not."""
    try:
        return rules_of(edition.recipe, edition.track, edition.board_policy)
    except PolicyError:  # a policy of another recipe
        return rules_of(edition.recipe, edition.track)
    except (RecipeError, LookupError):
        return None


def _organizer_steps(edition: Edition) -> Iterator[NextStep]:
    waiting = edition.teams.filter(state=Team.State.WAITING).count()
    if waiting:
        yield NextStep(
            title="1 team waits for approval" if waiting == 1 else f"{waiting} teams wait for approval",
            text="A team submits nothing before you approved it.",
            action="Look at the teams",
            url=reverse("editions:teams", args=[edition.name]),
        )
    if not edition.is_listed:
        yield NextStep(
            title="List the edition",
            text="Only its organizers see it, and nobody can register. Tick “Listed” when everything is right.",
            action="Edit the edition",
            url=reverse("editions:edit", args=[edition.name]),
        )


def _steps(user: Any, edition: Edition, team: Team | None, now: datetime) -> Iterator[NextStep]:
    if team is not None and team.state in rules.ACTIVE_STATES:
        yield _team_step(edition, team, now)
        return
    if team is not None:
        yield NextStep(
            title=f"Your team “{team}” is {team.get_state_display().lower()}",
            text=team.state_note or "It takes no part in this edition.",
            action="See the team",
            url=team.get_absolute_url(),
        )
    refusal = rules.registration_refusal(edition, team=None, now=now)
    register = reverse("editions:register", args=[edition.name])
    if refusal:
        if team is None:
            yield NextStep(title="No team can register now", text=refusal)
    elif user.is_authenticated:
        yield NextStep(
            title="Take part",
            text="Register a team, then invite its members. The organizer approves it.",
            action="Register a team",
            url=register,
        )
    else:
        yield NextStep(
            title="Take part",
            text="Registering a team needs an account. If your team is here already, ask its owner to invite you.",
            action="Log in or make an account",
            url=f"{reverse('account_login')}?{urlencode({'next': register})}",
        )


def _team_step(edition: Edition, team: Team, now: datetime) -> NextStep:
    """What a member of an active team does next."""
    page = team.get_absolute_url()
    if team.state == Team.State.WAITING:
        text = "The organizer looks at your registration; you get a mail. You can invite members meanwhile."
        return NextStep(f"Your team “{team}” waits for approval", text, "See the team", page)
    phase = phases.submission_phase(edition, now)
    if phase is Phase.BEFORE:
        text = f"Submissions: {phases.phase_in_words(edition, 'submissions', now)}."
        return NextStep(f"Your team “{team}” takes part as {team.label}", text, "See the team", page)
    if phase is Phase.CLOSED:
        submissions = reverse("submissions:list", args=[edition.name])
        return NextStep("Submissions are closed", "Your results stay here.", "Your submissions", submissions)
    text = "The archive is checked as a whole, and you read everything that is wrong at once."
    if phase is Phase.LATE:
        text += " It will be marked late."
    return NextStep("Upload an archive", text, "Upload an archive", reverse("submissions:new", args=[edition.name]))


@dataclass(frozen=True)
class MemberRow:
    """A member with what the visitor may do with them."""

    membership: Membership
    is_self: bool
    may_remove: bool
    may_own: bool


@dataclass(frozen=True)
class InvitationRow:
    invitation: Invitation
    state: InvitationState
    is_open: bool


def team_page(user: Any, team: Team, now: datetime) -> dict[str, Any]:
    """Everything on the page of a team, for its members and its organizers."""
    memberships = list(team.memberships.select_related("user"))
    own = next((membership for membership in memberships if membership.user_id == user.pk), None)
    is_owner = own is not None and own.role == Membership.Role.OWNER
    is_organizer = team.edition.organizers.filter(pk=user.pk).exists()
    steers = is_owner or is_organizer
    return {
        "team": team,
        "edition": team.edition,
        "facts": _team_facts(team),
        "members": [_member_row(one, own, team, steers, is_organizer=is_organizer) for one in memberships],
        "invitations": _invitation_rows(team, now) if steers else [],
        "membership": own,
        "is_owner": is_owner,
        "is_organizer": is_organizer,
        "steers": steers,
        "may_invite": steers and not rules.joining_refusal(team),
        "may_leave": own is not None and not rules.leaving_refusal(team, is_owner=is_owner),
        "may_approve": is_organizer and not rules.approval_refusal(team),
        "may_decline": is_organizer and not rules.declining_refusal(team),
        "may_decide": is_organizer and not (rules.approval_refusal(team) and rules.declining_refusal(team)),
        "may_withdraw": steers and team.state != Team.State.WITHDRAWN,
        "may_submit": team.state == Team.State.APPROVED,
        "closed": phases.submission_refusal(team.edition, now),
        "badge": BADGES[team.state],
    }


BADGES = {"waiting": "waiting", "approved": "succeeded", "declined": "failed", "withdrawn": "cancelled"}


def team_rows(edition: Edition) -> list[tuple[Team, str]]:
    """The teams of an edition with the badge of their state."""
    return [(team, BADGES[team.state]) for team in selectors.teams_of(edition)]


def _team_facts(team: Team) -> list[tuple[str, str]]:
    facts = [
        ("Contact person", f"{team.contact}, {team.contact_email}"),
        ("Affiliation", team.affiliation),
        ("Country", countries.name(str(team.country))),
        ("Kind", "academic" if team.is_academic else "not academic"),
        ("Registered", phases.moment(team.created_at)),
    ]
    if team.decided_at is not None and team.state != Team.State.WAITING:
        facts.append(("Decided", phases.moment(team.decided_at)))
    if team.state_note:
        facts.append(("Note of the organizer", team.state_note))
    return facts


def _member_row(one: Membership, own: Membership | None, team: Team, steers: bool, *, is_organizer: bool) -> MemberRow:
    is_self = own is not None and one.pk == own.pk
    removable = not rules.removing_refusal(team, one, is_organizer=is_organizer)
    may_own = steers and one.role != Membership.Role.OWNER
    return MemberRow(membership=one, is_self=is_self, may_remove=steers and removable and not is_self, may_own=may_own)


def _invitation_rows(team: Team, now: datetime) -> list[InvitationRow]:
    rows = []
    for invitation in team.invitations.select_related("invited_by"):
        state = rules.invitation_state(invitation, now)
        if state in (InvitationState.OPEN, InvitationState.EXPIRED):
            rows.append(InvitationRow(invitation, state, state is InvitationState.OPEN))
    return rows
