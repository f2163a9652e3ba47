"""The design of a study as its rows hold it, and whether those rows are a balanced design.

Nothing here trusts what was stored when the design was made: the request and the design are read from items, samples,
blocks and trials and certified anew; what stands around the scored trials is checked by `listening.studies.row_checks`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any

from evaluation.formats.transcripts import normalise_transcript
from listening.design.board_certificate import certify_boards, certify_transcription
from listening.design.boards import VERSION as BOARDS_VERSION
from listening.design.boards import Board, BoardPlan, BoardRequest, BoardSample
from listening.design.certificate import Certificate, certify
from listening.design.plan import VERSION, Candidate, Design, DesignRequest, Extension
from listening.design.transcription import VERSION as TRANSCRIPTION_VERSION
from listening.design.transcription import TranscriptionPlan, TranscriptionRequest, Writing
from listening.models import Item, ItemSample, Study, Task, Trial
from listening.studies.pools import Pool, make_pool


@dataclass(frozen=True)
class SampleRow:
    """What a slot of an item presents; `system` is empty for the original."""

    slot: str
    system: str
    utterance: str
    speaker: str
    sex: str
    source: str
    has_file: bool


@dataclass(frozen=True)
class ItemRow:
    """An item with its samples in the order of their slots; `system` is empty for original speech."""

    pk: int
    key: str
    purpose: str
    system: str
    is_target: bool | None
    expected: dict[str, Any]
    samples: tuple[SampleRow, ...]

    @property
    def is_scored(self) -> bool:
        return self.purpose == Item.Purpose.SCORED


@dataclass(frozen=True)
class BlockRow:
    """A block with its trials as (position, key of the item) in the order of positions."""

    number: int
    wave: int
    trials: tuple[tuple[int, str], ...]


@dataclass(frozen=True)
class DesignRows:
    """Everything that a study's design is made of. `items` are by key, in the order in which they were made."""

    study: Study
    systems: tuple[str, ...]
    items: dict[str, ItemRow]
    blocks: tuple[BlockRow, ...]
    pool: Pool = field(repr=False)

    def scored_of(self, block: BlockRow) -> tuple[str, ...]:
        """Keys of the scored items of a block in their order."""
        return tuple(key for _, key in block.trials if key in self.items and self.items[key].is_scored)

    def waves(self) -> list[int]:
        """How many blocks each wave has, the first one first."""
        counts = Counter(block.wave for block in self.blocks)
        return [counts[wave] for wave in sorted(counts)]


def read_rows(study: Study, pool: Pool | None = None) -> DesignRows:
    """The design of a study in four queries, besides those of its pool where none is given."""
    systems = {one.code: one.submission for one in study.systems.select_related("submission").order_by("code")}
    if pool is None:
        pool = make_pool(study.data_sets.all(), systems)
    samples = _samples_by_item(study)
    items = {
        item.key: ItemRow(
            pk=item.pk,
            key=item.key,
            purpose=item.purpose,
            system=item.system.code if item.system else "",
            is_target=item.is_target,
            expected=item.expected,
            samples=tuple(sorted(samples[item.pk], key=_slot_order)),
        )
        for item in study.items.select_related("system").order_by("pk")
    }
    trials: dict[int, list[tuple[int, str]]] = defaultdict(list)
    rows = Trial.objects.filter(block__study=study).order_by("position")
    for block, position, key, owner in rows.values_list("block", "position", "item__key", "item__study"):
        trials[block].append((position, key if owner == study.pk else f"of another study: {key}"))
    blocks = tuple(
        BlockRow(block.number, block.wave, tuple(trials[block.pk])) for block in study.blocks.order_by("number")
    )
    return DesignRows(study, tuple(systems), items, blocks, pool)


def certify_rows(rows: DesignRows) -> list[Certificate]:
    """The certificate of the scored trials; of a study without ratings one for each wave.

    What cannot even be read as a design fails a check, it raises nothing.
    """
    study = rows.study
    if study.form == Study.Form.RATING:
        return [certify(rating_request(rows), rating_design(rows))]
    sizes, start, found = rows.waves() or [0], 0, []
    for wave, size in enumerate(sizes):
        blocks = rows.blocks[start : start + size]
        start += size
        evaluators = study.evaluators if wave == 0 else size
        if study.form == Study.Form.LINKABILITY:
            plan = BoardPlan(BOARDS_VERSION, study.seed + wave, tuple(_boards(rows, block) for block in blocks))
            found.append(certify_boards(board_request(study, rows.systems, rows.pool, evaluators, wave), plan))
        else:
            written = tuple(_writings(rows, block) for block in blocks)
            plan_of_wave = TranscriptionPlan(TRANSCRIPTION_VERSION, study.seed + wave, written)
            request = transcription_request(study, rows.systems, rows.pool, evaluators, wave)
            found.append(certify_transcription(request, plan_of_wave))
    return found


def rating_request(rows: DesignRows) -> DesignRequest:
    """What was asked for, as the study and its scored items say."""
    candidates = tuple(_candidate(item) for item in rows.items.values() if item.is_scored)
    return make_request(rows.study, rows.systems, candidates)


def rating_design(rows: DesignRows) -> Design:
    """Who hears what, as blocks and trials say."""
    extensions = tuple(
        Extension(blocks=size, seed=rows.study.seed + wave) for wave, size in enumerate(rows.waves()) if wave
    )
    blocks = tuple(rows.scored_of(block) for block in rows.blocks)
    return Design(VERSION, rows.study.seed, blocks, extensions)


def make_request(study: Study, systems: tuple[str, ...], candidates: tuple[Candidate, ...]) -> DesignRequest:
    """What a study of ratings asks for."""
    return DesignRequest(
        evaluators=study.evaluators,
        trials=study.trials_per_evaluator,
        originals=study.originals_per_evaluator,
        systems=systems,
        candidates=candidates,
        seed=study.seed,
        **relaxations_of(study),
    )


def relaxations_of(study: Study) -> dict[str, bool]:
    """Which rules of the design may give way in a study."""
    names = {"sources": "sources_may_repeat", "enrolments": "enrolments_may_repeat", "sexes": "sexes_as_in_pool"}
    return {field: name in study.relaxations for name, field in names.items()}


def board_request(study: Study, systems: tuple[str, ...], pool: Pool, evaluators: int, wave: int = 0) -> BoardRequest:
    """What a study of boards asks for."""
    seed = study.seed + wave
    boards, samples = study.trials_per_evaluator, study.board_samples
    return BoardRequest(evaluators, boards, samples, systems, pool.utterances, seed)


def transcription_request(
    study: Study, systems: tuple[str, ...], pool: Pool, evaluators: int, wave: int = 0
) -> TranscriptionRequest:
    """What a study of transcriptions asks for."""
    return TranscriptionRequest(
        evaluators=evaluators,
        trials=study.trials_per_evaluator,
        originals=study.originals_per_evaluator,
        systems=systems,
        pool=pool.utterances,
        seed=study.seed + wave,
        sentences={name: normalise_transcript(one.transcript) for name, one in pool.recordings.items()},
    )


def has_pairs(study: Study) -> bool:
    """Whether voices are compared, so that a trial has a sample B."""
    return Task.VERIFIABILITY in study.tasks


def _samples_by_item(study: Study) -> dict[int, list[SampleRow]]:
    """By key of the item; plain values, as there are tens of thousands."""
    found: dict[int, list[SampleRow]] = defaultdict(list)
    rows = ItemSample.objects.filter(item__study=study).values_list(
        "item", "slot", "stimulus__system__code", "stimulus__utterance__name", "stimulus__utterance__speaker__name",
        "stimulus__utterance__speaker__gender", "stimulus__source", "stimulus__file",
    )  # fmt: skip
    for item, slot, system, utterance, speaker, sex, source, file in rows:
        found[item].append(SampleRow(slot, system or "", utterance, speaker, sex, source, bool(file)))
    return found


def _slot_order(sample: SampleRow) -> tuple[int, str]:
    return (int(sample.slot) if sample.slot.isdigit() else 0, sample.slot)


def _candidate(item: ItemRow) -> Candidate:
    a = next((one for one in item.samples if one.slot == "a"), None)
    b = next((one for one in item.samples if one.slot == "b"), None)
    return Candidate(
        key=item.key,
        system=item.system,
        speaker=a.speaker if a else "",
        sex=a.sex if a else "f",  # type: ignore[arg-type]
        is_target=item.is_target,
        source=a.utterance if a else "",
        enrolment=b.utterance if b else "",
    )


def _boards(rows: DesignRows, block: BlockRow) -> tuple[Board, ...]:
    items = [rows.items[key] for key in rows.scored_of(block)]
    return tuple(
        Board(one.key, one.system, tuple(BoardSample(s.utterance, s.speaker, s.system) for s in one.samples))
        for one in items
    )


def _writings(rows: DesignRows, block: BlockRow) -> tuple[Writing, ...]:
    items = [rows.items[key] for key in rows.scored_of(block) if rows.items[key].samples]
    return tuple(
        Writing(one.key, one.samples[0].utterance, one.samples[0].speaker, one.samples[0].sex, one.system)
        for one in items
    )
