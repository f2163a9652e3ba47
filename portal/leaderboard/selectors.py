"""The leaderboard of an edition, as page, API, downloads and figures read it.

It is a function of the numbers that had been evaluated by its time, and of a policy. `leaderboard_for` checks the
right: a published one is everybody's, an unpublished one is its organizers' and looks to all others as if there were
none.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.http import Http404
from django.urls import reverse

from common.errors import InputError, ProblemsError
from evaluation.app.attacks.selectors import add_verdicts
from evaluation.app.objective_results.selectors import ReadExtent, read_objective_values
from evaluation.app.recognizer_training.selectors import METRIC as PHONES
from evaluation.app.recognizer_training.selectors import read_phone_averages
from evaluation.app.submission_evaluation.selectors import read_originals
from evaluation.formats.results import AttackModel, Speech
from evaluation.metrics.averages import weighted_average
from evaluation.metrics.catalogue import Metric, find_metric
from evaluation.objective_results.attack_strength import Reliability
from evaluation.objective_results.values import (
    AVERAGE,
    AVERAGED_BEYOND,
    MEASURES,
    PREDICTED,
    Number,
    ObjectiveValues,
    list_averaged_sets,
)
from evaluation.protocols.published import PublishedSystem, is_as_shipped, published_systems
from evaluation.protocols.ranking.entries import LeaderboardEntry, MeasuredValue, Rankings
from evaluation.protocols.ranking.policy import LeaderboardPolicy, make_policy
from evaluation.protocols.ranking.ranking import rank
from evaluation.protocols.recipes import Average, Track
from portal.accounts.models import User
from portal.challenges.models import Edition
from portal.leaderboard.languages import list_language_columns, measure_languages
from portal.submissions.models import SharedPart, Submission, System
from portal.submissions.rules import Relation, SystemPart, may_see
from portal.submissions.selectors import STANDING, STOPPED, count_mismatches

# Columns of retrained recognisers, by what `read_phone_averages` calls them.
RETRAINED_LABELS = {"retrained": "PER, retrained", "frozen": "PER, frozen"}
ORIGINAL = "original speech"  # no system can have this name
ORIGINAL_LABEL = "Original"


def address_of_metric(metric: Metric) -> str:
    """Where the documentation explains a metric."""
    return f"{reverse('docs:page', args=['metrics'])}#{metric.key}"


@dataclass(frozen=True)
class ShownAverage:
    """An average that the leaderboard shows: its metric, and what it is for.

    `key` is the metric as recipes name it; that of a second column of a metric goes on with a hyphen.
    """

    key: str
    metric: Metric
    estimator: str
    is_privacy: bool = False
    is_utility: bool = False

    @property
    def metric_name(self) -> str:
        """Return the metric as recipes and stored numbers name it."""
        return self.key.partition("-")[0]

    @cached_property
    def heading(self) -> str:
        """Label and unit: ``WER, %``."""
        return f"{self.metric.label}, {self.metric.unit}" if self.metric.unit else self.metric.label

    @property
    def explained_at(self) -> str:
        """The address of its explanation."""
        return address_of_metric(self.metric)


PREDICTED_AVERAGE = ShownAverage(PREDICTED[0], find_metric(PREDICTED[0]), PREDICTED[1])


@dataclass(frozen=True)
class Leaderboard:
    """A leaderboard as somebody may see it.

    Attributes:
        is_preview: only its organizers see it yet.
        as_of: the time whose numbers it rests on, where it is frozen.
        measured_at: when the newest of its numbers was computed.
        averages: privacy, utilities, then every other average of the track.
        table: the rankings.
    """

    edition: Edition
    is_preview: bool
    as_of: datetime | None
    measured_at: datetime | None
    policy: LeaderboardPolicy
    averages: tuple[ShownAverage, ...]
    entries: tuple[LeaderboardEntry, ...]
    table: Rankings

    @cached_property
    def beyond(self) -> tuple[ShownAverage, ...]:
        """Averages of privacy beyond the EER, of the attack that decides: those that a system has."""
        return tuple(
            ShownAverage(key, find_metric(key), "")
            for key in AVERAGED_BEYOND
            if any(key in entry.averages for entry in self.entries)
        )

    @cached_property
    def retrained(self) -> tuple[ShownAverage, ...]:
        """Averages by recognisers that the portal trained again: those that a system has."""
        return tuple(
            ShownAverage(key, replace(find_metric(PHONES), label=label), "")
            for key, label in RETRAINED_LABELS.items()
            if any(key in entry.averages for entry in self.entries if entry.kind != "original")
        )

    @cached_property
    def predicted(self) -> tuple[ShownAverage, ...]:
        """The predicted naturalness, where a system has one."""
        has_one = any(PREDICTED[0] in entry.averages for entry in self.entries)
        return (PREDICTED_AVERAGE,) if has_one else ()

    @cached_property
    def by_language(self) -> tuple[ShownAverage, ...]:
        """What decides, in each language of a track with several: those that a system has."""
        return tuple(
            ShownAverage(one.key, one.metric, one.estimator)
            for one in list_language_columns(self.edition, self.policy)
            if any(one.key in entry.averages for entry in self.entries if entry.kind != "original")
        )

    @cached_property
    def further(self) -> tuple[ShownAverage, ...]:
        """What a reader may ask for beside the averages of the edition."""
        return (*self.by_language, *self.beyond, *self.retrained, *self.predicted)

    @property
    def is_empty(self) -> bool:
        """Whether nothing but the original speech stands here."""
        return all(entry.kind == "original" for entry in self.entries)


def leaderboard_for(user: Any, edition: str) -> Leaderboard:
    """The leaderboard of an edition by its live policy, or "not found"."""
    shown = shown_edition_for(user, edition)
    try:
        return build_leaderboard(shown)
    except ProblemsError as error:
        raise Http404("The recipe of this edition cannot be read, so there is no leaderboard.") from error


def shown_edition_for(user: Any, name: str) -> Edition:
    """The edition whose leaderboard this person may see, or "not found"."""
    edition = Edition.objects.select_related("corpus").filter(name=name).first()
    if edition is None or not may_see_leaderboard(user, edition):
        raise Http404
    return edition


def find_unpublished(name: str) -> Edition | None:
    """A listed edition whose leaderboard is not published, which everybody may know."""
    return Edition.objects.filter(name=name, is_listed=True, published_at=None).first()


def may_see_leaderboard(user: Any, edition: Edition) -> bool:
    """Whether somebody may see an edition's leaderboard; a team of the edition is no nearer to it than anybody else."""
    is_published = edition.published_at is not None
    if may_see(SystemPart.NUMBERS, Relation.OTHER, is_published=is_published):
        return True
    organizes = user.is_authenticated and edition.organizers.filter(pk=user.pk).exists()
    return organizes and may_see(SystemPart.NUMBERS, Relation.ORGANIZER, is_published=is_published)


def build_leaderboard(edition: Edition) -> Leaderboard:
    """Return the leaderboard of an edition, a published one by the recipe with which it was published."""
    return rank_leaderboard(edition.as_published())


def rank_leaderboard(edition: Edition, *, with_retrained: bool = True) -> Leaderboard:
    """Return the leaderboard by the recipe of the edition at hand.

    Args:
        with_retrained: as `load_entries` takes it.
    """
    entries, measured_at = load_entries(edition, with_retrained=with_retrained)
    policy = edition.policy
    return Leaderboard(
        edition=edition,
        is_preview=edition.published_at is None,
        as_of=edition.frozen_at,
        measured_at=measured_at,
        policy=policy,
        averages=shown_averages(edition.ranked_track, policy),
        entries=entries,
        table=rank(entries, policy),
    )


def shown_averages(track: Track, policy: LeaderboardPolicy) -> tuple[ShownAverage, ...]:
    """Return privacy, the utilities, and every other average of the track, such as a ranking metric's second one."""
    utilities = [(one.metric, one.estimator) for one in policy.utilities]
    averages = [(one.metric, one.estimator) for one in track.averages]
    found: dict[tuple[str, str], str] = {}  # key by metric and estimator
    for metric, estimator in [(policy.privacy.metric, policy.privacy.estimator), *utilities, *averages]:
        is_second = any(known == metric for known, _ in found)
        found.setdefault((metric, estimator), f"{metric}-{estimator}" if is_second else metric)
    return tuple(
        ShownAverage(
            key,
            find_metric(*name),
            name[1],
            is_privacy=name == (policy.privacy.metric, policy.privacy.estimator),
            is_utility=name in utilities,
        )
        for name, key in found.items()
    )


def list_published(leaderboard: Leaderboard) -> list[PublishedSystem]:
    """Systems of papers, with the averages that conditions and ranks rest on: where the recipe is the shipped one."""
    edition = leaderboard.edition
    if not is_as_shipped(edition.recipe):
        return []
    shown = {(one.key, one.estimator) for one in leaderboard.averages if one.is_privacy or one.is_utility}
    averages = [one for one in edition.ranked_track.averages if (one.metric, one.estimator) in shown]
    if len(averages) < len(shown):
        return []
    return published_systems(
        edition.recipe.edition, averages, leaderboard.policy.split, leaderboard.policy.attack_model
    )


# Entries -------------------------------------------------------------------------------------------


def submissions_on_leaderboard(edition: Edition) -> list[Submission]:
    """Of each system the newest submission that had been evaluated by its time (`is_on_leaderboard`).

    One that is being evaluated again stays where it was, with the numbers of before.
    """
    found = Submission.objects.filter(system__edition=edition, evaluated_at__isnull=False, is_held=False)
    if edition.frozen_at is not None:
        found = found.filter(evaluated_at__lte=edition.frozen_at)
    found = found.filter(state__in=STANDING).select_related("system__team")
    newest = {one.system_id: one for one in found.order_by("version")}
    for submission in newest.values():
        submission.system.edition = edition
    return list(newest.values())


def find_released(edition: Edition) -> tuple[dict[str, int], set[str]]:
    """What everybody may read and hear of the systems on the leaderboard.

    Returns:
        of those with a description, by name, the version that it came with, which may be an earlier one; and the names
        of those with samples.
    """
    released = SharedPart.objects.filter(submission__system__edition=edition).exclude(released_at=None)
    standing = released.exclude(submission__state=Submission.State.WITHDRAWN).order_by("submission__version")
    parts = list(standing.values_list("submission", "submission__system", "submission__version", "document"))
    heard = {submission for submission, *_, document in parts if not document}
    shown = submissions_on_leaderboard(edition) if parts else []
    newest = {one.system_id: one for one in shown}
    versions = {
        newest[system].system.name: version
        for _, system, version, document in parts
        if document and system in newest and version <= newest[system].version
    }
    return versions, {one.system.name for one in shown if one.pk in heard}


def list_own_teams(user: User | AnonymousUser, edition: Edition) -> set[str]:
    """The teams of a person in an edition, as entries name them."""
    own = [] if user.is_anonymous else user.memberships.filter(team__edition=edition)
    return {str(one.team_id) for one in own}


def list_held(edition: Edition) -> list[Submission]:
    """Evaluated submissions that wait for their release, the oldest first: for organizers."""
    found = Submission.objects.filter(system__edition=edition, evaluated_at__isnull=False, is_held=True)
    return list(found.filter(state__in=STANDING).select_related("system__team").order_by("evaluated_at", "pk"))


def describe_under_way(leaderboard: Leaderboard, user: User | AnonymousUser, *, with_names: bool) -> str:
    """Which systems will be on the leaderboard once they are evaluated, as a sentence; empty for none.

    Args:
        with_names: for organizers; everybody else reads how many, and teams the names of their own.
    """
    if leaderboard.as_of:
        return ""
    evaluating = Submission.objects.filter(system__edition=leaderboard.edition, state=Submission.State.EVALUATING)
    found = list(evaluating.exclude(STOPPED).select_related("system__team").order_by("created_at", "pk"))
    if not found:
        return ""
    systems = "A system is" if len(found) == 1 else f"{len(found)} systems are"
    teams = set() if user.is_anonymous else set(user.memberships.values_list("team", flat=True))
    named = [str(one) for one in found if with_names or one.system.team_id in teams]
    names = f": {', '.join(named)}" if named else ""
    if names and len(named) < len(found):
        names = f", among them {', '.join(named)}"
    when = "as soon as its numbers have been computed"
    if leaderboard.edition.holds_evaluations:
        when = "once it is evaluated and an organizer releases it"
    return f"{systems} being evaluated{names}. A system appears here {when}."


def mismatches_on_leaderboard(leaderboard: Leaderboard) -> dict[str, int]:
    """How many numbers each system reports otherwise than its files give, by its name: for organizers."""
    submissions = submissions_on_leaderboard(leaderboard.edition)
    unlike = count_mismatches(submissions, leaderboard.as_of)
    return {one.system.name: unlike[one.pk] for one in submissions if one.pk in unlike}


def load_entries(
    edition: Edition, *, with_retrained: bool = True
) -> tuple[tuple[LeaderboardEntry, ...], datetime | None]:
    """Everything that stands on a leaderboard, the original speech first, and when the newest number was computed.

    Args:
        with_retrained: whether the averages of retrained recognisers are read, which no rank needs.
    """
    track, policy = edition.ranked_track, make_policy(edition.recipe, edition.track)
    submissions = submissions_on_leaderboard(edition)
    read = read_objective_values(submissions, extent=ReadExtent.RANKED, as_of=edition.frozen_at)
    values = add_verdicts(read, submissions, edition.frozen_at)
    phones = read_phone_averages(submissions, policy.split, edition.frozen_at) if with_retrained else {}
    languages, attack = list_language_columns(edition, policy), AttackModel(policy.attack_model)
    entries = []
    for submission in submissions:
        entry = make_entry(submission, values[submission.pk], track, policy)
        found = {row: measured for row, one in phones.get(submission.pk, {}).items() if (measured := _measured(one))}
        beside = {row: found[row] for row in RETRAINED_LABELS if row in found}
        beside |= measure_languages(languages, values[submission.pk], attack, Speech.ANONYMISED)
        entries.append(replace(entry, averages={**entry.averages, **beside}))
    original = make_original_entry(edition, track, policy, values.values())
    ceiling = next((found["ceiling"] for found in phones.values() if "ceiling" in found), None)
    if original and (measured := _measured(ceiling)):
        original = replace(original, averages={**original.averages, **dict.fromkeys(RETRAINED_LABELS, measured)})
    if original:
        tested = (
            measure_languages(languages, one, AttackModel.UNPROTECTED, Speech.ORIGINAL) for one in values.values()
        )
        original = replace(original, averages={**original.averages, **next(filter(None, tested), {})})
    times = [one.measured_at for one in values.values() if one.measured_at]
    return (*([original] if original else []), *entries), max(times, default=None)


def make_entry(
    submission: Submission, values: ObjectiveValues, track: Track, policy: LeaderboardPolicy
) -> LeaderboardEntry:
    """A submission with the averages that a leaderboard shows of it."""
    system = submission.system
    columns = shown_averages(track, policy)
    attack = AttackModel(policy.attack_model)
    averages = {
        column.key: _measured(
            values.average(column.metric_name, column.estimator, split=policy.split, attack_model=attack)
        )
        for column in columns
    }
    present = {column.key: found for column in columns if (found := averages[column.key]) and not column.is_privacy}
    beyond = {
        key: found
        for key in AVERAGED_BEYOND
        if (found := _measured(values.average(key, split=policy.split, attack_model=attack))) is not None
    }
    predicted = _predicted(values, policy, Speech.ANONYMISED)
    utilities, lower = {utility.metric for utility in policy.utilities}, find_lower_attack(values, policy)
    return LeaderboardEntry(
        key=system.name,
        label=str(system),
        team=str(system.team_id or ""),
        team_name=str(system.team or ""),
        title=system.title,
        kind="baseline" if system.is_baseline or system.team_id is None else "system",
        is_late=submission.is_late,
        is_contrastive=system.kind == System.Kind.CONTRASTIVE,
        privacy=averages[policy.privacy.metric],
        utilities={key: found for key, found in present.items() if key in utilities},
        gate_values=_gate_values(values, policy),
        averages={key: found for key, found in present.items() if key not in utilities} | beyond | predicted,
        missing={column.key: _missing(values, column.metric) for column in columns},
        lower_attack=(lower[0], MeasuredValue(lower[1].value, lower[1].low, lower[1].high)) if lower else None,
        other_eers=_read_other_eers(values, policy, attack),
        weak_attack=judge_average(values, policy, track).reasons,
        tests=_find_tests(values, track, policy, attack),
    )


def _read_other_eers(
    values: ObjectiveValues, policy: LeaderboardPolicy, attack: AttackModel
) -> dict[str, MeasuredValue]:
    """Return the average EER of the attack that decides, by the estimators that do not."""
    others = {estimator for metric, estimator in MEASURES if metric == "eer"} - {policy.privacy.estimator}
    found = (
        (estimator, _measured(values.average("eer", estimator, split=policy.split, attack_model=attack)))
        for estimator in sorted(others)
    )
    return {estimator: measured for estimator, measured in found if measured is not None}


def _find_tests(
    values: ObjectiveValues, track: Track, policy: LeaderboardPolicy, attack: AttackModel
) -> dict[str, int]:
    """Return by data set the run with the scores behind each EER that the average rests on."""
    metric, estimator = policy.privacy.metric, policy.privacy.estimator
    sets = list_averaged_sets(track, metric, policy.split) if values.run else []
    found = ((name, values.number(metric, estimator, data_set=name, attack_model=attack)) for name in sets)
    return {name: values.run or 0 for name, number in found if number is not None and number.is_recomputed}


def find_lower_attack(values: ObjectiveValues, policy: LeaderboardPolicy) -> tuple[str, Number] | None:
    """The attack model with the lowest average EER, where that is lower than the one that decides."""
    decides, ranked = policy.privacy, AttackModel(policy.attack_model)
    found = [
        (number.value, str(attack), number)
        for attack in set(AttackModel) - {AttackModel.UNPROTECTED}
        if (number := values.average(decides.metric, decides.estimator, split=policy.split, attack_model=attack))
    ]
    of = {attack: value for value, attack, _ in found}
    if ranked not in of or min(of.values()) >= of[ranked]:
        return None
    _, attack, number = min(found)
    return attack, number


def judge_average(values: ObjectiveValues, policy: LeaderboardPolicy, track: Track) -> Reliability:
    """Whether the attacks behind the average EER that decides are strong enough.

    Nothing speaks against attacks that were not trained on anonymised speech.
    """
    if AttackModel(policy.attack_model) is not AttackModel.SEMI_INFORMED:
        return Reliability((), ())
    decides = policy.privacy
    return values.judge_average(decides.metric, decides.estimator, policy.split, track)


def _gate_values(values: ObjectiveValues, policy: LeaderboardPolicy) -> dict[str, dict[str, MeasuredValue]]:
    found: dict[str, dict[str, MeasuredValue]] = {}
    for gate in policy.gates:
        numbers = values.gate_numbers(gate, AttackModel(policy.attack_model))
        found[gate.metric] = {name: measured for name, one in numbers.items() if (measured := _measured(one))}
    return found


def _missing(values: ObjectiveValues, metric: Metric) -> tuple[str, ...]:
    """What of a metric is missing, and how much of its set. In which files is between the team and its organizers."""
    start = f"{metric.label} of "
    return tuple(
        one.what.removeprefix(start) + (f" ({one.cause})" if one.cause else "")
        for one in values.missing
        if one.what.startswith(start)
    )


def _measured(number: Number | None) -> MeasuredValue | None:
    if number is None:
        return None
    return MeasuredValue(number.value, number.low, number.high, is_reported=not number.is_recomputed)


def make_original_entry(
    edition: Edition, track: Track, policy: LeaderboardPolicy, values: Iterable[ObjectiveValues]
) -> LeaderboardEntry | None:
    """The speech before anonymisation: as published with the recipe, as a submission's own test found it, or by itself.

    Numbers of one source where one has all of them; else each that is known from the first that has it.
    """
    published = {average.metric: _published(edition, average, policy.split) for average in track.averages}
    wanted = [policy.privacy.metric, *(utility.metric for utility in policy.utilities)]
    known = list(values)
    sources = [{metric: published.get(metric) for metric in wanted}, *(_tested(one, policy) for one in known)]
    sources.append(_evaluated(edition, policy))
    sources.sort(key=lambda one: None in one.values())  # whole ones first
    measured = {
        metric: number
        for metric in wanted
        if (number := next((found for one in sources if (found := one[metric]) is not None), None)) is not None
    }
    if not measured:
        return None
    privacy = measured.pop(policy.privacy.metric, None)
    words: dict[str, Any] = {"title": "Speech before anonymisation", "kind": "original"}
    averages = next(filter(None, (_predicted(one, policy, Speech.ORIGINAL) for one in known)), {})
    tests: dict[str, int] = {}
    for one in known:  # the first that has it
        tests = _find_tests(one, track, policy, AttackModel.UNPROTECTED) | tests
    words |= {"averages": averages, "tests": tests}
    return LeaderboardEntry(ORIGINAL, ORIGINAL_LABEL, privacy=privacy, utilities=measured, **words)


def _predicted(values: ObjectiveValues, policy: LeaderboardPolicy, speech: Speech) -> dict[str, MeasuredValue]:
    """The predicted naturalness, where it is known."""
    found = _measured(values.average(*PREDICTED, split=policy.split, speech=speech))
    return {} if found is None else {PREDICTED[0]: found}


def _evaluated(edition: Edition, policy: LeaderboardPolicy) -> dict[str, MeasuredValue | None]:
    """What the portal found of the originals before any system."""
    found, data_set = read_originals(edition, edition.frozen_at), f"{AVERAGE}{policy.split}"
    wanted = [(policy.privacy.metric, policy.privacy.estimator)]
    wanted += [(one.metric, one.estimator) for one in policy.utilities]
    keys = {metric: (metric, estimator, data_set) for metric, estimator in wanted}
    return {
        metric: MeasuredValue(found[key].value, found[key].low, found[key].high) if key in found else None
        for metric, key in keys.items()
    }


def _published(edition: Edition, average: Average, split: str) -> MeasuredValue | None:
    if edition.recipe.evaluation.by_portal:  # other evaluators than those of the published numbers
        return None
    weights = average.weights.get(split, {})
    sets = edition.recipe.data_sets
    values = [(name, value) for name in weights if (value := sets[name].original_value) is not None]
    try:
        return MeasuredValue(weighted_average(values, weights).value) if values else None
    except InputError:
        return None


def _tested(values: ObjectiveValues, policy: LeaderboardPolicy) -> dict[str, MeasuredValue | None]:
    """Unprotected EER and the utilities of original speech, as a submission has them."""
    split, privacy = policy.split, policy.privacy
    eer = values.average(privacy.metric, privacy.estimator, split=split, attack_model=AttackModel.UNPROTECTED)
    found = {privacy.metric: _measured(eer)}
    for one in policy.utilities:
        number = values.average(one.metric, one.estimator, split=split, speech=Speech.ORIGINAL)
        found[one.metric] = _measured(number)
    return found
