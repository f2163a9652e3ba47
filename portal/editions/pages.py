"""What the page of an edition shows: its phases in words, the rules of its recipe, and what to do next."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any

from django.http import HttpRequest
from django.urls import reverse
from django.utils.http import urlencode

from common.errors import InputError, ProblemsError
from evaluation.metrics.catalogue import ESTIMATORS, find_metric
from evaluation.protocols.ranking.policy import (
    SCORES,
    SIMILARITY,
    SPEECH,
    LeaderboardPolicy,
    make_policy,
    needed_to_rank,
    policy_in_words,
)
from evaluation.protocols.recipes import Average, DataSet, MetricRule, Recipe, Track
from portal.challenges.models import DataFile, Edition
from portal.challenges.models import DataSet as DataSetOfCorpus
from portal.challenges.rules import (
    Phase,
    describe_phase,
    list_licence_texts,
    missing_sets,
    submission_phase,
)
from portal.challenges.selectors import (
    editions_organised_by,
    expected_sets,
    find_data_job,
    may_see_corpus,
    passes_speech_on,
)
from portal.core.labels import name_language
from portal.core.texts import render_lines
from portal.corpora.selectors import DataSetRow, data_set_rows
from portal.editions.selectors import describe_engines
from portal.teams.models import Team
from portal.teams.rules import ACTIVE_STATES, describe_end, registration_problem
from portal.teams.selectors import data_access, data_files_for, needs_data, team_of, teams_by_edition

CHECKSUMS = "SHA256SUMS"
PARTS = {SCORES: "Score files", SPEECH: "Anonymised recordings", SIMILARITY: "Similarity matrices"}
ROLES_WITHOUT_LANGUAGE = ("emotion",)  # recipes say none for them
GENDERS = {"f": "female", "m": "male", "mixed": "mixed genders"}


@dataclass(frozen=True)
class EditionRow:
    """An edition in a list: its phases, and what the visitor is in it."""

    edition: Edition
    registration: dict[str, Any]
    submissions: dict[str, Any]
    team: Team | None
    is_organized: bool


@dataclass(frozen=True)
class NextStep:
    """Something that this visitor could do now; without an address only something to know, due where it is awaited.

    `templates/home/next_step.txt` says each `kind` with its facts: title, text and what stands on the button.
    """

    kind: str
    url: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)
    is_due: bool = True

    @cached_property
    def lines(self) -> list[str]:
        return render_lines("home/next_step.txt", {"kind": self.kind, **self.facts})

    @property
    def title(self) -> str:
        return self.lines[0]

    @property
    def text(self) -> str:
        return " ".join(self.lines[1:-1])

    @property
    def action(self) -> str:
        return self.lines[-1]


def edition_rows(user: Any, editions: list[Edition], now: datetime) -> list[EditionRow]:
    """Return a row for each edition, in a number of queries that does not depend on theirs."""
    organised = editions_organised_by(user)
    teams = teams_by_edition(user)
    return [
        EditionRow(
            edition=edition,
            registration=describe_phase(edition, "registration", now),
            submissions=describe_phase(edition, "submissions", now),
            team=teams.get(edition.pk),
            is_organized=edition.pk in organised,
        )
        for edition in editions
    ]


def edition_page(user: Any, edition: Edition, now: datetime) -> dict[str, Any]:
    """Return everything on the page of an edition."""
    is_organizer = user.is_authenticated and edition.organizers.filter(pk=user.pk).exists()
    team = team_of(user, edition)
    context: dict[str, Any] = {
        "edition": edition,
        "registration": describe_phase(edition, "registration", now),
        "submissions": describe_phase(edition, "submissions", now),
        "is_organizer": is_organizer,
        "may_see_corpus": may_see_corpus(user, edition.corpus),
        "may_copy": is_organizer and user.is_organizer,
        "team": team,
        "organizers": edition.organizers.order_by("name", "email"),
        "rules": _rules(edition),
    }
    # An organizer who takes part with a team of their own is told what the team does next, too.
    context["steps"] = [] if is_organizer and team is None else [*_steps(user, edition, team, now)]
    if is_organizer and context["rules"] and edition.corpus:
        held = edition.corpus.data_sets.values_list("name", flat=True)
        context["missing_sets"] = missing_sets(context["rules"].recipe, held)
    if is_organizer and context["rules"]:
        context["unensured"] = list(_unensured(edition))
    return context


def _unensured(edition: Edition) -> Iterator[tuple[str, list[str]]]:
    """Yield files that an accepted archive may lack, and what the rank rests on from these."""
    if edition.recipe.evaluation.by_portal:  # computes what ranks from speech, which it requires
        return
    required = {SCORES: edition.scores_required, SPEECH: edition.audio_required and edition.corpus is not None}
    try:
        needed = needed_to_rank(edition.recipe, edition.track, edition.leaderboard_policy)
    except InputError:  # a policy of another recipe
        needed = needed_to_rank(edition.recipe, edition.track)
    lacking: dict[str, list[str]] = {}
    for label, kinds in needed.items():
        if not any(required.get(kind) for kind in kinds):
            lacking.setdefault(kinds[0], []).append(label)
    yield from ((PARTS[kind], labels) for kind, labels in lacking.items())


def _rules(edition: Edition) -> Rules | None:
    """None where the recipe cannot be read, which forms prevent but a row written by hand does not."""
    try:
        return make_rules(edition.recipe, edition.track, edition.leaderboard_policy)
    except (ProblemsError, LookupError):
        return None
    except InputError:  # a policy of another recipe
        return make_rules(edition.recipe, edition.track)


def _steps(user: Any, edition: Edition, team: Team | None, now: datetime) -> Iterator[NextStep]:
    if team is not None and team.state in ACTIVE_STATES:
        yield from _team_steps(user, edition, team, now)
        return
    if team is not None:
        yield NextStep("team-ended", team.get_absolute_url(), {"team": team, "explanation": describe_end(team, now)})
        if team.state == Team.State.DECLINED and team.memberships.filter(user=user, role="owner").exists():
            return  # who can ask again need not register another one
    refusal = registration_problem(edition, team=None, now=now)
    register = reverse("editions:register", args=[edition.name])
    if refusal:
        if team is None:
            yield NextStep("no-registration", "", {"explanation": refusal})
    elif user.is_authenticated:
        yield NextStep("register", register)
    else:
        yield NextStep("log-in", f"{reverse('account_login')}?{urlencode({'next': register})}")


def _team_steps(user: Any, edition: Edition, team: Team, now: datetime) -> Iterator[NextStep]:
    """Yield what a member of an active team does next; the data come before the first archive."""
    page, facts = team.get_absolute_url(), {"team": team}
    phase = submission_phase(edition, now)
    if team.state == Team.State.WAITING:
        yield NextStep("wait-for-approval", page, facts)
    elif phase is Phase.BEFORE:
        yield NextStep("submissions-open-later", page, {**facts, "phase": describe_phase(edition, "submissions", now)})
    elif phase is Phase.CLOSED:
        yield NextStep("submissions-closed", reverse("submissions:list", args=[edition.name]))
    else:
        has_system = team.systems.exists()
        submit = reverse("submissions:new", args=[edition.name])
        steps = [NextStep("submit", submit, {"has_system": has_system, "is_late": phase is Phase.LATE})]
        if needs_data(user, team):
            steps.insert(has_system, NextStep("get-data", reverse("editions:data", args=[edition.name])))
        yield from steps


def data_page(request: HttpRequest, edition: Edition, now: datetime) -> dict[str, Any]:
    """Return what there is for teams of an edition, what its reader has to do before, and then the files."""
    user = request.user
    is_organizer = user.is_authenticated and edition.organizers.filter(pk=user.pk).exists()
    team, access = team_of(user, edition), data_access(user, edition)
    files = list(data_files_for(user, edition))
    job = find_data_job(edition) if access.may_accept else None
    steps = [] if is_organizer or access.may_accept else [*_steps(user, edition, team, now)]
    return {
        "edition": edition,
        "is_organizer": is_organizer,
        "access": access,
        "licence_texts": list_licence_texts(access.terms),
        "is_shared": passes_speech_on(edition),
        "sets": _asked_rows(edition),
        "files": files,
        "job": job,
        "is_under_way": job is not None and not job.has_ended,
        "checksums": CHECKSUMS,
        "archive": name_archive(edition),
        "archive_bytes": sum(file.bytes for file in files if file.kind in (DataFile.Kind.SPEECH, DataFile.Kind.KALDI)),
        "steps": [] if team and team.state == Team.State.APPROVED else steps,
    }


def _asked_rows(edition: Edition) -> list[DataSetRow]:
    try:
        wanted = {one.pk for one in expected_sets(edition)}
    except ProblemsError:
        return []
    return data_set_rows(DataSetOfCorpus.objects.filter(pk__in=wanted))


def name_archive(edition: Edition) -> str:
    """Return the name of the one archive of all recordings and lists."""
    return f"{edition.name}-data.zip"


def checksum_lines(files: Iterable[DataFile]) -> Iterator[str]:
    """Return the lines of a file that ``sha256sum -c`` reads."""
    return (f"{one.sha256}  {one.name}\n" for one in files)


@dataclass(frozen=True)
class AverageLine:
    """One average over one split; `terms` are weight and data set."""

    label: str
    split: str
    terms: tuple[tuple[float, str], ...]


@dataclass(frozen=True)
class Rules:
    """What holds in one track.

    Attributes:
        metrics: label, estimator, and whether it decides the rank, in words.
        conditions, sentences: of the ranking, by `policy` where there is one.
    """

    recipe: Recipe
    track: Track
    data_sets: tuple[DataSet, ...]
    metrics: tuple[tuple[str, str, str], ...]
    averages: tuple[AverageLine, ...]
    sentences: tuple[str, ...]
    policy: LeaderboardPolicy | None
    uncertain: tuple[str, ...]

    @property
    def engines(self) -> list[tuple[str, str]]:
        """Return what the portal attacks and recognises with, by what it is for; none where the teams evaluate."""
        return describe_engines(self.recipe.evaluation)

    @property
    def surprise_languages(self) -> list[str]:
        """Return those that are measured and in no average."""
        return [name_language(one) for one in self.track.surprise_languages]

    @property
    def has_recognition_sets(self) -> bool:
        return any(one.role == "recognition" for one in self.data_sets)

    @property
    def set_rows(self) -> list[tuple[DataSet, str]]:
        """Return each data set and what it is, in words."""
        return [(data_set, self._what(data_set)) for data_set in self.data_sets]

    def _what(self, one: DataSet) -> str:
        is_spoken = one.role not in ROLES_WITHOUT_LANGUAGE and len(self.track.languages) > 1
        languages = [name_language(one.language)] if is_spoken else []
        return ", ".join(filter(None, [one.role, one.split, GENDERS.get(one.gender or "", ""), *languages]))


def make_rules(recipe: Recipe, track: str, changes: Mapping[str, Any] | None = None) -> Rules:
    """Return the rules of a track, of the only one where `track` is empty.

    Args:
        changes: where the organizer's live policy differs from the recipe, by the names in
            `evaluation.protocols.ranking.policy.FIELDS`.

    Raises:
        ProblemsError: the recipe has several tracks and none is named.
        KeyError: it has no such track.
        InputError: the changes are none of a policy.
    """
    chosen = recipe.tracks[track] if track else recipe.track
    policy = make_policy(recipe, track, changes) if chosen.ranking or changes else None
    return Rules(
        recipe=recipe,
        track=chosen,
        data_sets=tuple(one for one in recipe.data_sets.values() if one.role != "joint"),
        metrics=tuple(_describe_metric(one, policy) for one in recipe.metrics),
        averages=tuple(line for average in chosen.averages for line in _average_lines(average)),
        sentences=tuple(policy_in_words(policy)) if policy else (),
        policy=policy,
        uncertain=recipe.uncertain,
    )


def _describe_metric(rule: MetricRule, policy: LeaderboardPolicy | None) -> tuple[str, str, str]:
    """Return the label of a metric, its estimator, and whether it decides the rank."""
    gates = {(gate.metric, gate.estimator) for gate in policy.gates} if policy else set()
    decides = "by a minimum" if (rule.key, rule.estimator) in gates else "yes" if rule.primary else "no"
    return find_metric(rule.key, rule.estimator).label, ESTIMATORS.get(rule.estimator, rule.estimator), decides


def _average_lines(average: Average) -> Iterator[AverageLine]:
    for split, weights in average.weights.items():
        terms = tuple((100 * weight, name) for name, weight in weights.items())
        yield AverageLine(average.label, split, terms)
