"""The design of a study as its rows hold it, whether those rows are a balanced design, and the certificate of that.

Nothing here trusts what was stored when the design was made: the request and the design are read from items, samples,
blocks and trials and certified again. Each check of what stands around the scored trials gives what was required, what
was found and a sentence with the first problems. `compute_fingerprint` is the SHA-256 of every trial with its
recordings, so that a change that happens to keep the balance is found as well.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from typing import Any

from evaluation.metrics.word_errors import normalise_transcript
from listening.app.models import Condition, Presentation, Study, Trial
from listening.app.studies.rules import count_items_aside, known_answers, right_answers
from listening.app.studies.selectors import (
    StimulusPool,
    StoredPresentation,
    codes_of,
    pool_of,
    read_presentations,
)
from listening.design.boards import BOARDS_VERSION, Board, BoardPlan, BoardRequest, BoardSample
from listening.design.boards_certificate import certify_boards
from listening.design.certificate import Certificate, certify, check_problems
from listening.design.crossed import (
    CROSSED_VERSION,
    CrossedPlan,
    CrossedRequest,
    PlannedTrial,
    certify_crossed,
    draw_items,
    draw_of_each_text,
)
from listening.design.places import bound_by_chance
from listening.design.requirements import VERSION, Candidate, Design, DesignRequest, Extension, PoolUtterance
from listening.questions import REFERENCE, Screen, list_slots

Kind = Condition.Kind


@dataclass(frozen=True)
class BlockRow:
    """A block with its trials as (position, key of the item) in the order of positions."""

    number: int
    wave: int
    trials: tuple[tuple[int, str], ...]


@dataclass(frozen=True)
class DesignRows:
    """Everything that a study's design is made from. `items` are by key, in the order in which they were made."""

    study: Study
    systems: tuple[str, ...]
    items: dict[str, StoredPresentation]
    blocks: tuple[BlockRow, ...]
    pool: StimulusPool = field(repr=False)

    def scored_of(self, block: BlockRow) -> tuple[str, ...]:
        """Return the keys of the scored items of a block in their order."""
        return tuple(key for _, key in block.trials if key in self.items and self.items[key].is_scored)

    def waves(self) -> list[int]:
        """Return how many blocks each wave has, the first one first."""
        counts = Counter(block.wave for block in self.blocks)
        return [counts[wave] for wave in sorted(counts)]


def read_rows(study: Study, pool: StimulusPool | None = None) -> DesignRows:
    """Return the design of a study in five queries, besides those of its pool where none is given."""
    systems = codes_of(study)
    if pool is None:
        pool = pool_of(study)
    items = {item.key: item for item in read_presentations(study).values()}
    trials: dict[int, list[tuple[int, str]]] = defaultdict(list)
    rows = Trial.objects.filter(block__study=study).order_by("position")
    for block, position, key, owner in rows.values_list(
        "block", "position", "presentation__key", "presentation__study"
    ):
        trials[block].append((position, key if owner == study.pk else f"of another study: {key}"))
    blocks = tuple(
        BlockRow(block.number, block.wave, tuple(trials[block.pk])) for block in study.blocks.order_by("number")
    )
    return DesignRows(study, systems, items, blocks, pool)


def certify_rows(rows: DesignRows) -> list[Certificate]:
    """Return the certificate of the scored trials; of a study of boards one for each wave.

    What cannot even be read as a design fails a check, it raises nothing.
    """
    study = rows.study
    if study.is_crossed:
        sessions = (tuple(_crossed_trial(rows, key) for key in rows.scored_of(block)) for block in rows.blocks)
        plan = CrossedPlan(CROSSED_VERSION, study.seed, tuple(sessions))
        return [certify_crossed(crossed_request(study, rows.systems, rows.pool, sum(rows.waves())), plan)]
    if study.form == Study.Form.RATING:
        return [certify(rating_request(rows), rating_design(rows))]
    sizes, start, found = rows.waves() or [0], 0, []
    for wave, size in enumerate(sizes):
        blocks = rows.blocks[start : start + size]
        start += size
        asked = (study, rows.systems, rows.pool, study.evaluators if wave == 0 else size, wave)
        boards = BoardPlan(BOARDS_VERSION, study.seed + wave, tuple(_boards(rows, block) for block in blocks))
        found.append(certify_boards(board_request(*asked), boards))
    return found


def crossed_request(study: Study, codes: tuple[str, ...], pool: StimulusPool, evaluators: int) -> CrossedRequest:
    """Return what a study asks for in which every condition has every item."""
    aside = {*draw_aside(study, codes, pool)}
    shared = (one for one in list_shared(study, codes, pool) if one.key not in aside)
    items = draw_items(shared, study.items_at_most, study.seed)
    return CrossedRequest(
        evaluators=evaluators,
        trials=study.trials_per_evaluator,
        conditions=codes,
        items=items,
        seed=study.seed,
        screen=study.screen,
        has_items_once=study.form == Study.Form.TRANSCRIPTION,
        against=read_against(study),
        original=study.original_name,
    )


def read_against(study: Study) -> str | None:
    """Return the code of the condition with which alone the others are compared; None for each with each other."""
    return "" if study.against == study.original_name else study.against or None


def draw_aside(study: Study, codes: tuple[str, ...], pool: StimulusPool) -> tuple[str, ...]:
    """Return the items of practice and control trials, which no scored trial has; once launched those there are."""
    if not (wanted := count_items_aside(study.asked, *count_made(study))):
        return ()
    if study.is_launched:
        unscored = study.presentations.exclude(purpose=Presentation.Purpose.SCORED)
        held = set(unscored.values_list("samples__stimulus__item__name", flat=True))
        return tuple(one.key for one in list_shared(study, codes, pool) if one.key in held)
    return draw_items(list_shared(study, codes, pool), wanted, study.seed + 1)


def count_made(study: Study) -> tuple[int, int]:
    """Return how many practice and how many control trials have no recording of their own among one's own."""
    own = study.stimulus_files.filter(condition__kind__in=Condition.UNSCORED).values_list("condition__kind", flat=True)
    held = Counter(own) if study.has_own_recordings else Counter()
    practice, gold = study.practice_trials - held[Kind.PRACTICE], study.gold_trials - held[Kind.CONTROL]
    return max(0, practice), max(0, gold)


def list_shared(study: Study, codes: tuple[str, ...], pool: StimulusPool) -> list[PoolUtterance]:
    """Return the utterances that every condition has; where words are written down, one of each text."""
    trials = (one for one in pool.utterances if one.role == "trial")
    shared = [one for one in trials if all(not code or (code, one.key) in pool.versions for code in codes)]
    if study.form != Study.Form.TRANSCRIPTION:
        return shared
    texts = {one.key: normalise_transcript(pool.recordings[one.key].transcript) for one in shared}
    return draw_of_each_text(shared, texts, study.seed)


def _crossed_trial(rows: DesignRows, key: str) -> PlannedTrial:
    """Return the conditions of a trial in the order of its slots, without the reference, and its item."""
    samples = rows.items[key].samples
    conditions = tuple(sample.system for slot, sample in samples.items() if slot != REFERENCE)
    return conditions, next(iter(samples.values())).utterance if samples else ""


def rating_request(rows: DesignRows) -> DesignRequest:
    """Return what was asked for, as the study and its scored items say."""
    candidates = tuple(_candidate(item) for item in rows.items.values() if item.is_scored)
    return make_request(rows.study, rows.systems, candidates)


def rating_design(rows: DesignRows) -> Design:
    """Return who hears what, as blocks and trials say."""
    extensions = tuple(
        Extension(blocks=size, seed=rows.study.seed + wave) for wave, size in enumerate(rows.waves()) if wave
    )
    blocks = tuple(rows.scored_of(block) for block in rows.blocks)
    return Design(VERSION, rows.study.seed, blocks, extensions)


def make_request(study: Study, systems: tuple[str, ...], candidates: tuple[Candidate, ...]) -> DesignRequest:
    """Return what a study of ratings asks for."""
    return DesignRequest(
        evaluators=study.evaluators,
        trials=study.trials_per_evaluator,
        originals=study.originals_per_evaluator,
        systems=systems,
        candidates=candidates,
        seed=study.seed,
        **read_relaxations(study),
    )


def read_relaxations(study: Study) -> dict[str, bool]:
    """Return which rules of the design may give way in a study."""
    names = {"sources": "sources_may_repeat", "enrolments": "enrolments_may_repeat", "sexes": "sexes_as_in_pool"}
    return {field: name in study.relaxations for name, field in names.items()}


def board_request(
    study: Study, systems: tuple[str, ...], pool: StimulusPool, evaluators: int, wave: int = 0
) -> BoardRequest:
    """Return what a study of boards asks for."""
    seed = study.seed + wave
    boards, samples = study.trials_per_evaluator, study.board_samples
    return BoardRequest(evaluators, boards, samples, systems, pool.utterances, seed)


def _candidate(item: StoredPresentation) -> Candidate:
    a, b = item.samples.get("a"), item.samples.get("b")
    return Candidate(
        key=item.key,
        system=item.system,
        speaker=a.speaker if a else "",
        sex=a.sex if a else "f",  # type: ignore[arg-type]
        is_target=bool(item.is_target),
        source=a.utterance if a else "",
        enrolment=b.utterance if b else "",
    )


def _boards(rows: DesignRows, block: BlockRow) -> tuple[Board, ...]:
    items = [rows.items[key] for key in rows.scored_of(block)]
    return tuple(
        Board(
            one.key,
            one.system,
            tuple(BoardSample(s.utterance, s.speaker, s.system) for s in one.samples.values()),
        )
        for one in items
    )


SHOWN_PROBLEMS = 3
NOT_CERTIFIED = "There is no certified design. Make the design first."
CHANGED = (
    "The trials in the database are not those that were certified: their fingerprint is {found}, the certificate's is "
    "{stored}. Make the design again."
)


def build_certificate(rows: DesignRows) -> dict[str, Any]:
    """Return everything that is known of a design, as it is stored and downloaded: nothing of it depends on a clock."""
    parts = [certificate.as_json() for certificate in certify_rows(rows)]
    checks = row_checks(rows)
    whole = {
        "study": rows.study.name,
        "form": rows.study.form,
        "seed": rows.study.seed,
        "passes": all(part["passes"] for part in parts) and all(check["passed"] for check in checks),
        "fingerprint": compute_fingerprint(rows),
        "parts": parts,
        "rows": checks,
        "waves": rows.waves(),
    }
    kept: dict[str, Any] = json.loads(json.dumps(whole))  # as a database gives it back
    return kept


def list_failures(certificate: dict[str, Any]) -> list[str]:
    """Return the sentences of the checks that failed."""
    checks = [*(check for part in certificate["parts"] for check in part["checks"]), *certificate["rows"]]
    return [check["sentence"] for check in checks if not check["passed"]]


def launch_problems(rows: DesignRows) -> list[str]:
    """Return why the design in the rows may not be launched, as sentences; empty when it may."""
    stored = rows.study.certificate
    if not stored or not rows.blocks:
        return [NOT_CERTIFIED]
    found = build_certificate(rows)
    problems = list_failures(found)
    if not problems and not found["passes"]:
        problems.append("The certificate does not pass.")
    if found["fingerprint"] != stored.get("fingerprint"):
        problems.append(CHANGED.format(found=found["fingerprint"][:12], stored=str(stored.get("fingerprint"))[:12]))
    elif found != stored:
        problems.append("The stored certificate is not the one that the rows give. Make the design again.")
    missing = {s.utterance for item in rows.items.values() for s in item.samples.values() if not s.file}
    if missing:
        problems.append(f"{len(missing)} recordings are not prepared yet, such as {min(missing)}. Prepare the stimuli.")
    return problems


def compute_fingerprint(rows: DesignRows) -> str:
    """Return the SHA-256 of all trials of all blocks: position, item, purpose, and which file each slot presents."""
    digest = hashlib.sha256()
    for block in rows.blocks:
        for position, key in block.trials:
            item = rows.items.get(key)
            samples = [[n, s.system, s.utterance, s.source] for n, s in item.samples.items()] if item else None
            told = [item.purpose, item.system, item.is_target, item.expected] if item else None
            line = [block.number, block.wave, position, key, told, samples]
            digest.update(json.dumps(line, sort_keys=True, ensure_ascii=False).encode() + b"\n")
    return digest.hexdigest()


def row_checks(rows: DesignRows) -> list[dict[str, Any]]:
    """Return blocks, positions, samples, controls: each with what was required and what was found."""
    checks = [_blocks(rows), _positions(rows), _samples(rows), _sources(rows)]
    study = rows.study
    if study.practice_trials or study.gold_trials if study.is_crossed else study.form == Study.Form.RATING:
        checks += [_controls(rows), _control_places(rows), _control_recordings(rows), _gold(rows)]
    return checks


def _check(name: str, required: str, problems: Sequence[str]) -> dict[str, Any]:
    found = f"{len(problems)} {'problem' if len(problems) == 1 else 'problems'}" if problems else "as required"
    return asdict(check_problems(name, required, found, problems))


def _blocks(rows: DesignRows) -> dict[str, Any]:
    first = sum(block.wave == 0 for block in rows.blocks)
    problems = [] if first == rows.study.evaluators else [f"{first} blocks"]
    numbers = [block.number for block in rows.blocks]
    if numbers != list(range(1, len(numbers) + 1)):
        problems.append(f"the numbers {', '.join(map(str, numbers[:SHOWN_PROBLEMS]))}, …")
    if (waves := [block.wave for block in rows.blocks]) != sorted(waves):
        problems.append("waves out of order")
    return _check("blocks", f"{rows.study.evaluators} blocks of the launch, numbered from 1 without a gap", problems)


def _positions(rows: DesignRows) -> dict[str, Any]:
    study = rows.study
    length = study.trials_per_evaluator + study.trials_beside
    right = list(range(1, length + 1))
    problems = [
        f"block {block.number} has {len(block.trials)} trials"
        + ("" if len(block.trials) != length else " with a gap between them")
        for block in rows.blocks
        if [position for position, _ in block.trials] != right
    ]
    problems += [
        f"block {block.number} has the trial {key}, which is not in the study"
        for block in rows.blocks
        for _, key in block.trials
        if key not in rows.items
    ]
    return _check("positions", f"the positions 1 to {length} in every block", problems)


def _samples(rows: DesignRows) -> dict[str, Any]:
    """Return whether every item presents what it says: system, speakers, and as many samples as its form has."""
    problems = [f"{item.key}: {problem}" for item in rows.items.values() if (problem := _sample_problem(rows, item))]
    required = "samples of every item from its system, with one or two speakers as it says"
    if rows.study.is_crossed:
        slots = ", ".join(slot.upper() for slot in list_slots(rows.study.screen, len(rows.systems)))
        required = f"one item in every trial, heard as {slots}"
        required += f", of which R is {rows.study.original_name}" if "R" in slots else ""
    return _check("samples", required, problems)


def _sample_problem(rows: DesignRows, item: StoredPresentation) -> str:
    if rows.study.is_crossed:
        return _crossed_problem(rows, item)
    slots, samples = list(item.samples), list(item.samples.values())
    if rows.study.form == Study.Form.LINKABILITY:
        wanted = [str(number) for number in range(1, rows.study.board_samples + 1)]
        strange = {sample.system for sample in samples} - {"", item.system}
    else:
        wanted = ["a", "b"]
        strange = {sample.system for sample in samples[:1]} - {item.system}
        strange |= {sample.system for sample in samples[1:]} - {""}
    if slots != wanted:
        return f"the samples {', '.join(slots) or 'none'} instead of {', '.join(wanted)}"
    if strange:
        return f"a sample of {' and '.join(one or 'the originals' for one in sorted(strange))}"
    if wanted == ["a", "b"]:
        a, b = samples
        same = a.speaker == b.speaker
        if same is not item.is_target:
            return f"its speakers are {'one' if same else 'two'}, against its own label"
        return "it compares a woman and a man" if a.sex != b.sex and item.purpose != Presentation.Purpose.GOLD else ""
    return "" if item.is_target is None else "it compares voices"


def _crossed_problem(rows: DesignRows, item: StoredPresentation) -> str:
    """Return what is wrong with a trial of a crossed test: its slots, its item, its reference."""
    wanted = list_slots(rows.study.screen, len(rows.systems))
    if set(item.samples) != set(wanted):
        return f"the samples {', '.join(item.samples) or 'none'} instead of {', '.join(wanted)}"
    names = sorted({sample.utterance for sample in item.samples.values()})
    may_differ = item.purpose == Presentation.Purpose.GOLD and rows.study.screen == Screen.TRIPLE
    if len(names) > 1 and not may_differ:
        return f"recordings of several items, {' and '.join(names)}"
    if REFERENCE in item.samples and item.samples[REFERENCE].system:
        return f"the reference is of {item.samples[REFERENCE].system}, not {rows.study.original_name}"
    if (item.samples["a"].system if "a" in item.samples else "") != item.system:
        return f"sample A is not of {item.system or rows.study.original_name}"
    return "" if item.is_target is None else "it compares voices"


def _sources(rows: DesignRows) -> dict[str, Any]:
    """Return whether every sample is made from the file that the corpus or the submission holds."""
    pool, problems = rows.pool, set()
    for item in rows.items.values():
        for sample in item.samples.values():
            held = pool.recordings.get(sample.utterance)
            right = pool.versions.get((sample.system, sample.utterance)) if sample.system else held and held.audio
            if not right or sample.source != right:
                problems.add(f"{sample.utterance} as {sample.system or rows.study.original_name}")
    return _check(
        "recordings",
        "every recording from the corpus, from the submission of its system, or as it was uploaded",
        sorted(problems),
    )


def _controls(rows: DesignRows) -> dict[str, Any]:
    study = rows.study
    wanted = {
        Presentation.Purpose.PRACTICE.value: study.practice_trials,
        Presentation.Purpose.GOLD.value: study.gold_trials,
        Presentation.Purpose.BRIDGE.value: study.bridge_trials,
    }
    controls = Counter(item.key for item in rows.items.values() if not item.is_scored)
    kinds = Counter(item.purpose for item in rows.items.values() if not item.is_scored)
    problems = [f"{kinds[kind]} of the kind {kind}" for kind, count in wanted.items() if kinds[kind] != count]
    for block in rows.blocks:
        held = Counter(key for _, key in block.trials if key in rows.items and not rows.items[key].is_scored)
        if held != controls:
            problems.append(f"block {block.number} has {held.total()} of them, or one twice")
    words = f"{study.practice_trials} practice, {study.gold_trials} control and {study.bridge_trials} bridge trials"
    return _check("unscored trials", f"{words}, each once in every block", problems)


def _control_places(rows: DesignRows) -> dict[str, Any]:
    """Return whether practice comes first, and controls stand apart and at each place as often as chance allows."""
    problems = []
    taken: Counter[int] = Counter()
    longest = 0
    for block in rows.blocks:
        purposes = [rows.items[key].purpose for _, key in block.trials if key in rows.items]
        first = purposes[: rows.study.practice_trials]
        rest = purposes[rows.study.practice_trials :]
        if set(first) - {Presentation.Purpose.PRACTICE} or Presentation.Purpose.PRACTICE in rest:
            problems.append(f"block {block.number} has practice among the others")
        beside = [one != Presentation.Purpose.SCORED for one in rest]
        taken.update(place for place, is_control in enumerate(beside, len(first) + 1) if is_control)
        longest = max(longest, len(rest))
        if any(one and other for one, other in pairwise(beside)):
            problems.append(f"block {block.number} has two control or bridge trials in a row")
    if longest:
        bounds = bound_by_chance(len(rows.blocks), taken.total() / (len(rows.blocks) * longest))
        places = range(rows.study.practice_trials + 1, rows.study.practice_trials + longest + 1)
        problems += [
            f"place {place} has one in {taken[place]} blocks" for place in places if taken[place] not in bounds
        ]
    return _check(
        "positions of unscored trials",
        "practice first, control and bridge trials never next to each other and at no place more or less often than"
        " chance explains",
        problems,
    )


def _control_recordings(rows: DesignRows) -> dict[str, Any]:
    scored = {s.utterance for item in rows.items.values() if item.is_scored for s in item.samples.values()}
    problems = {
        f"{sample.utterance} of {item.key}"
        for item in rows.items.values()
        if not item.is_scored
        for sample in item.samples.values()
        if sample.utterance in scored
    }
    return _check("recordings of unscored trials", "recordings that no scored trial has", sorted(problems))


def _gold(rows: DesignRows) -> dict[str, Any]:
    """Return whether every control trial has the answer that its recordings make sure."""
    problems = []
    for item in rows.items.values():
        if item.purpose != Presentation.Purpose.GOLD or len(item.samples) == 1:
            continue
        if rows.study.is_crossed:
            heard = {slot: (sample.system, sample.utterance) for slot, sample in item.samples.items()}
            if not item.expected or item.expected != known_answers(rows.study.asked, heard):
                problems.append(f"{item.key} expects {item.expected}")
            continue
        a, b = item.samples.values()
        is_same = a.speaker == b.speaker
        is_sure = a.utterance != b.utterance and (is_same or a.sex != b.sex)
        right = right_answers(rows.study, is_same=is_same)
        if item.system or not is_sure or item.expected != right:
            problems.append(f"{item.key} expects {item.expected}")
    return _check(
        "control trials",
        "the right answer that their recordings make sure: one recording twice, or in ABX two items"
        if rows.study.is_crossed
        else "original pairs of one speaker in two recordings, or of a woman and a man, with the right answer",
        problems,
    )
