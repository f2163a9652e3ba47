"""Certify whether a plan of boards keeps what it promises, independent of how the plan was made.

Every constraint is computed again from the request and the plan alone. Nothing here is shared with the planner but the
shapes of its request and plan. What comes out is a `Certificate` like the one of the rated studies.

Conventions: "even" means that two counts differ by one at most.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest

from listening.design.boards import Board, BoardPlan, BoardRequest
from listening.design.certificate import (
    Certificate,
    Check,
    check_problems,
    list_neighbours,
    list_repeats,
    make_certificate,
    span_words,
)


def certify_boards(request: BoardRequest, plan: BoardPlan) -> Certificate:
    """Make all checks of a plan of boards."""
    boards = [board for block in plan.blocks for board in block]
    systems = [[board.system for board in block] for block in plan.blocks]
    checks = [
        _counts("boards", plan.blocks, request.evaluators, request.boards),
        _known_samples(request, boards),
        _board_sizes(request, boards),
        _speakers_of_boards(boards),
        _halves(boards),
        _sexes(request, boards),
        _heard_once([[sample.utterance for board in block for sample in board.samples] for block in plan.blocks]),
        *_systems(systems, request.systems, "boards"),
        _places_of_systems(systems, request.systems),
        _not_adjacent(systems, request.systems),
        _even_speakers(request, boards),
    ]
    mixed = any(len({sex for sex in sexes if sex}) > 1 for sexes in _sexes_on(request, boards))
    relaxed = ["Boards mix sexes: one sex has too few speakers for boards of its own."] if mixed else []
    numbers = {"evaluators": request.evaluators, "boards": request.boards, "samples": request.samples}
    numbers |= {"systems": len(request.systems), "utterances": len(request.pool)}
    return make_certificate(request, plan, numbers, relaxed, checks)


def _is_even(counts: Iterable[int]) -> bool:
    values = list(counts) or [0]
    return max(values) - min(values) <= 1


def _uneven(places: Mapping[str, Counter[str]], names: Sequence[str]) -> list[str]:
    """Return a problem for each place where the names do not occur equally often."""
    return [
        f"{place}: " + ", ".join(f"{name} {counts[name]}" for name in names)
        for place, counts in places.items()
        if not _is_even(counts[name] for name in names)
    ]


def _counts(what: str, blocks: Sequence[Sequence[object]], evaluators: int, each: int) -> Check:
    wrong = [f"evaluator {number} has {len(block)}" for number, block in enumerate(blocks, 1) if len(block) != each]
    if len(blocks) != evaluators:
        wrong.insert(0, f"{len(blocks)} evaluators")
    found = f"{len(blocks)} evaluators, {span_words(map(len, blocks))} {what} each"
    return check_problems(f"evaluators and {what}", f"{evaluators} evaluators, {each} {what} each", found, wrong)


def _heard_once(heard: Sequence[Sequence[str]]) -> Check:
    twice = list_repeats(heard)
    required = "each recording once in a session at most, in whatever form"
    return check_problems("no recording twice", required, f"{len(twice)} twice", twice)


def _systems(blocks: Sequence[Sequence[str]], systems: Sequence[str], what: str) -> Iterable[Check]:
    total = Counter(system for block in blocks for system in block)
    problems = [f"{system} is not of this study" for system in sorted(set(total) - set(systems))]
    if not _is_even(total[system] for system in systems):
        problems.append(", ".join(f"{system}: {total[system]}" for system in systems))
    found = f"{span_words(total[system] for system in systems)} {what} each"
    yield check_problems("systems", f"every system in equally many {what}", found, problems)
    each = {f"evaluator {number}": Counter(names) for number, names in enumerate(blocks, 1)}
    of_each = span_words(counts[system] for counts in each.values() for system in systems)
    required = f"every system in equally many {what} of each evaluator"
    yield check_problems("systems of an evaluator", required, of_each, _uneven(each, systems))


def _places_of_systems(blocks: Sequence[Sequence[str]], systems: Sequence[str]) -> Check:
    heard = zip_longest(*blocks)
    off = _uneven({f"place {place}": Counter(names) for place, names in enumerate(heard, 1)}, systems)
    return check_problems(
        "places of systems", "every system equally often at each place", f"{len(off)} places uneven", off
    )


def _not_adjacent(blocks: Sequence[Sequence[str]], systems: Sequence[str]) -> Check:
    touching = list_neighbours(blocks) if len(systems) > 1 else []
    found = f"{len(touching)} do" if len(systems) > 1 else "only one system: does not apply"
    return check_problems("systems apart", "no system follows itself", found, touching)


def _known_samples(request: BoardRequest, boards: Sequence[Board]) -> Check:
    pool = {one.key: one for one in request.pool}
    wrong = []
    for board in boards:
        for sample in board.samples:
            known = pool.get(sample.utterance)
            if known is None or known.speaker != sample.speaker:
                wrong.append(f"{sample.utterance} on {board.key} is not in the pool, or of another speaker")
            elif sample.system and (sample.system != board.system or sample.system not in known.systems):
                wrong.append(f"{sample.utterance} on {board.key} has no version of {board.system}")
            elif known.role != ("trial" if sample.system else "enrolment"):
                wrong.append(f"{sample.utterance} on {board.key} is a {known.role} utterance")
    keys = Counter(board.key for board in boards)
    wrong += [f"{key} names {count} boards" for key, count in keys.items() if count > 1]
    required = "originals are enrolment utterances, the others trial utterances anonymised by the board's one system"
    found = f"{sum(len(board.samples) for board in boards)} samples, {len(wrong)} wrong"
    return check_problems("samples", required, found, wrong)


def _board_sizes(request: BoardRequest, boards: Sequence[Board]) -> Check:
    wrong = [f"{board.key} has {len(board.samples)}" for board in boards if len(board.samples) != request.samples]
    found = f"{span_words(len(board.samples) for board in boards)} samples"
    return check_problems("size of boards", f"{request.samples} samples on each board", found, wrong)


def _speakers_of_boards(boards: Sequence[Board]) -> Check:
    wrong, numbers = [], []
    for board in boards:
        of = Counter(sample.speaker for sample in board.samples)
        numbers.append(len(of))
        if not 3 <= len(of) <= 4 or not _is_even(of.values()):
            wrong.append(f"{board.key}: " + ", ".join(f"{name} {count}" for name, count in of.items()))
    required = "three or four speakers on each board, with equally many samples"
    return check_problems("speakers of a board", required, f"{span_words(numbers)} speakers", wrong)


def _halves(boards: Sequence[Board]) -> Check:
    wrong = []
    for board in boards:
        originals = Counter(sample.speaker for sample in board.samples if not sample.system)
        others = Counter(sample.speaker for sample in board.samples if sample.system)
        names = {*originals, *others}
        if abs(originals.total() - others.total()) > 1 or any(abs(originals[n] - others[n]) > 1 for n in names):
            wrong.append(f"{board.key}: {originals.total()} originals, {others.total()} anonymised")
        elif any(not originals[name] or not others[name] for name in names):
            wrong.append(f"{board.key}: a speaker is heard in one form only")
    required = "half of each board's and of each speaker's samples originals, half anonymised"
    return check_problems("original and anonymised", required, f"{len(wrong)} boards differ", wrong)


def _sexes_on(request: BoardRequest, boards: Sequence[Board]) -> list[set[str]]:
    """Return the sexes of each board's speakers."""
    sex_of: dict[str, str] = {one.speaker: one.sex for one in request.pool}
    return [{sex_of.get(sample.speaker, "") for sample in board.samples} for board in boards]


def _sexes(request: BoardRequest, boards: Sequence[Board]) -> Check:
    of_boards = _sexes_on(request, boards)
    mixed = sum(len(sexes) > 1 for sexes in of_boards)
    able = _able(request)
    if any(len(names) < 3 for names in able.values()):
        return check_problems("sexes", "boards may mix sexes, as one has fewer than three speakers", f"{mixed} do", [])
    counts = Counter(min(sexes) for sexes in of_boards if len(sexes) == 1)
    problems = [f"{mixed} boards mix sexes"] if mixed else []
    if not _is_even(counts[sex] for sex in able):
        problems.append(", ".join(f"{sex}: {counts[sex]} boards" for sex in sorted(able)))
    found = ", ".join(f"{counts[sex]} of {sex}" for sex in sorted(able))
    return check_problems("sexes", "speakers of one sex on a board, equally many boards of each", found, problems)


def _able(request: BoardRequest) -> dict[str, set[str]]:
    """Return by sex the speakers with utterances enough for a board of three speakers."""
    needed = (request.samples + 5) // 6
    kinds: dict[str, Counter[bool]] = defaultdict(Counter)
    for one in request.pool:
        if one.role == "enrolment" or set(request.systems) <= one.systems:
            kinds[one.speaker][one.role == "enrolment"] += 1
    able: dict[str, set[str]] = defaultdict(set)
    for one in request.pool:
        if min(kinds[one.speaker][True], kinds[one.speaker][False]) >= needed:
            able[one.sex].add(one.speaker)
    return dict(able)


def _even_speakers(request: BoardRequest, boards: Sequence[Board]) -> Check:
    count = Counter(name for board in boards for name in {sample.speaker for sample in board.samples})
    able = _able(request)
    if any(len(names) < 3 for names in able.values()):
        able = {"all": set().union(*able.values())}
    problems, found = [], []
    for sex, names in sorted(able.items()):
        counts = [count[name] for name in sorted(names)]
        found.append(f"{sex}: {span_words(counts)}")
        if not _is_even(counts) and any(counts):
            problems.append(f"speakers ({sex}) are on {span_words(counts)} boards")
    return check_problems("speakers", "every speaker of a sex on equally many boards", ", ".join(found), problems)
