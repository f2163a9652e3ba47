"""What a trial's place tells of it, measured by counting, and random orders under the same rules to compare with.

Nothing here is shared with what makes or certifies designs. `shuffle_sessions` exchanges two trials of a session where
every rule of order at the head of `listening.design.requirements` stays met; after many such steps all are equally
likely.
"""

from collections import Counter
from fractions import Fraction
from itertools import pairwise
from math import ceil, floor
from random import Random

LABELS = {
    "kind": lambda one: "anonymised" if one.system else "original",
    "class": lambda one: one.is_target,
    "system": lambda one: one.system or None,
}


def sessions_of(request, design):
    known = {candidate.key: candidate for candidate in request.candidates}
    return [[known[key] for key in block] for block in design.blocks]


def guess_right(sessions, what, before, folds=4):
    """The part of labels that held-out evaluators' places, and so many kinds before, let others' counts guess."""
    right, total = 0, 0
    cued = [
        [
            ((place, *map(LABELS["kind"], session[max(0, place - before) : place])), label)
            for place, one in enumerate(session)
            if (label := LABELS[what](one)) is not None
        ]
        for session in sessions
    ]
    for fold in range(folds):
        seen = {}
        for session in (one for number, one in enumerate(cued) if number % folds != fold):
            for cue, label in session:
                seen.setdefault(cue, Counter())[label] += 1
        guess = {cue: counts.most_common(1)[0][0] for cue, counts in seen.items()}
        for session in cued[fold::folds]:
            right += sum(guess.get(cue) == label for cue, label in session)
            total += len(session)
    return right / total


def shuffle_sessions(sessions, sweeps, seed, longest_run=2, speaker_gap=3):
    """The same sessions in random orders; so many exchanges are tried for each place."""
    random, trials = Random(seed), len(sessions[0])
    edges = [quarter * trials // 4 for quarter in range(5)]
    quarter = [sum(place >= edge for edge in edges[1:]) for place in range(trials)]
    sizes = [after - before for before, after in pairwise(edges)]
    heard = Counter((one.system, quarter[place]) for session in sessions for place, one in enumerate(session))
    total = Counter(one.system for session in sessions for one in session)

    def may_stand(system, number):
        share = Fraction(total[system] * sizes[number], trials)
        slack = max(1, floor(share / 10))
        return not system or floor(share) - slack <= heard[system, number] <= ceil(share) + slack

    def keeps(session, place):
        one = session[place]
        near = session[max(0, place - speaker_gap + 1) : place + speaker_gap]
        beside = [*session[max(0, place - 1) : place], *session[place + 1 : place + 2]]
        is_apart = sum(other.speaker == one.speaker for other in near) == 1
        is_apart &= not one.system or all(other.system != one.system for other in beside)
        first, last = max(0, place - longest_run), min(trials, place + longest_run + 1)
        kinds = [bool(other.system) for other in session[first:last]]
        runs = [kinds[start : start + longest_run + 1] for start in range(len(kinds) - longest_run)]
        return is_apart and not any(len(set(run)) == 1 for run in runs)

    def is_even(session, number):
        part = session[edges[number] : edges[number + 1]]
        for is_in in (lambda other: not other.system, lambda other: bool(other.is_target)):
            share = Fraction(sum(map(is_in, session)) * len(part), trials)
            if not floor(share) <= sum(map(is_in, part)) <= ceil(share):
                return False
        return True

    found = [list(session) for session in sessions]
    for session in found:
        for _ in range(sweeps * trials):
            one, other = random.randrange(trials), random.randrange(trials)
            first, second = session[one], session[other]
            session[one], session[other] = second, first
            if not keeps(session, one) or not keeps(session, other):
                session[one], session[other] = first, second
                continue
            here, there = quarter[one], quarter[other]
            changes = [(second.system, here, 1), (second.system, there, -1)]
            changes += [(first.system, there, 1), (first.system, here, -1)]
            for system, number, by in changes:
                heard[system, number] += by
            is_right = here == there or (is_even(session, here) and is_even(session, there))
            if not is_right or not all(may_stand(system, number) for system, number, _ in changes):
                session[one], session[other] = first, second
                for system, number, by in changes:
                    heard[system, number] -= by
    return found
