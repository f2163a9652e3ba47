"""Items, samples, stimuli, blocks and trials of a design: written in few queries, and taken away again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from django.utils.crypto import salted_hmac

from listening.models import Block, Item, ItemSample, Stimulus, Study, StudySystem, Trial
from listening.studies.pools import Pool
from portal.jobs.services import NotPossible


@dataclass(frozen=True)
class PlannedItem:
    """An item to be written; `samples` as (slot, system, utterance)."""

    key: str
    purpose: str
    system: str
    is_target: bool | None
    samples: tuple[tuple[str, str, str], ...]
    expected: dict[str, list[int]] = field(default_factory=dict)


@dataclass(frozen=True)
class PlannedDesign:
    """Every item, and for each block the keys of its items in the order of presentation."""

    items: tuple[PlannedItem, ...]
    blocks: tuple[tuple[str, ...], ...]


def clear_design(study: Study) -> None:
    """Take blocks and items away with every preview of them; recordings that were prepared stay for the next design.

    The caller saves the study.

    Raises:
        NotPossible: somebody has listened already.
    """
    if study.is_launched or study.sessions.filter(is_preview=False).exists():
        raise NotPossible("Evaluators have begun, so the design stays as it is.")
    study.sessions.all().delete()
    study.blocks.all().delete()
    study.items.all().delete()
    study.certificate, study.stimuli = {}, {}
    study.state = Study.State.DRAFT


def write_design(study: Study, planned: PlannedDesign, pool: Pool, *, wave: int, first_number: int) -> None:
    """Items with their samples and stimuli that are not there yet, then blocks and trials; few queries, many rows."""
    systems: Mapping[str, StudySystem] = {one.code: one for one in study.systems.all()}
    held = set(study.items.values_list("key", flat=True))
    new = [one for one in planned.items if one.key not in held]
    stimuli = _stimuli(study, new, pool, systems)
    made = Item.objects.bulk_create(
        Item(
            study=study,
            purpose=one.purpose,
            key=one.key,
            system=systems.get(one.system),
            is_target=one.is_target,
            expected=one.expected,
        )
        for one in new
    )
    ItemSample.objects.bulk_create(
        ItemSample(item=item, slot=slot, stimulus=stimuli[system, utterance])
        for item, one in zip(made, new, strict=True)
        for slot, system, utterance in one.samples
    )
    keys = dict(study.items.values_list("key", "pk"))
    blocks = Block.objects.bulk_create(
        Block(study=study, number=number, wave=wave)
        for number in range(first_number, first_number + len(planned.blocks))
    )
    Trial.objects.bulk_create(
        (
            Trial(block=block, position=position, item_id=keys[key])
            for block, order in zip(blocks, planned.blocks, strict=True)
            for position, key in enumerate(order, 1)
        ),
        batch_size=2000,
    )


def _lot(study: Study, system: str, utterance: str) -> str:
    return salted_hmac("listening.stimuli", f"{study.pk} {system} {utterance}", algorithm="sha256").hexdigest()


def _stimuli(
    study: Study, items: Iterable[PlannedItem], pool: Pool, systems: Mapping[str, StudySystem]
) -> dict[tuple[str, str], Stimulus]:
    """The stimulus of each (system, utterance); one whose recording has changed is made again."""
    wanted = sorted({(system, utterance) for one in items for _, system, utterance in one.samples})
    rows = study.stimulus_files.select_related("system", "utterance")
    held = {(one.system.code if one.system else "", one.utterance.name): one for one in rows}
    for place in wanted:
        one = held.get(place)
        if one is not None and one.source != pool.audio_of(*place):
            one.source, one.file, one.bytes, one.duration_s, one.facts = pool.audio_of(*place), "", 0, 0, {}
            one.save()
    # Organizers see the numbers of the rows while the study recruits: their order must not tell the systems.
    missing = sorted((place for place in wanted if place not in held), key=lambda place: _lot(study, *place))
    made = Stimulus.objects.bulk_create(
        Stimulus(
            study=study,
            system=systems.get(system),
            utterance_id=pool.recordings[utterance].utterance,
            source=pool.audio_of(system, utterance),
        )
        for system, utterance in missing
    )
    return held | dict(zip(missing, made, strict=True))


def drop_unused_stimuli(study: Study) -> None:
    used = ItemSample.objects.filter(item__study=study).values("stimulus")
    study.stimulus_files.exclude(pk__in=used).delete()
