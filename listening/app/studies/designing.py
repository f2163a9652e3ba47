"""From a plan to rows: making the design of a study, with the certificate that it is balanced, and extending it.

The plan takes its time and holds nothing; items, stimuli, presentations, samples, blocks and trials are written in few
queries and one transaction, which stores the certificate that `listening.app.studies.stored_design` computes from the
rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from typing import Any

from django.db import transaction
from django.utils.crypto import salted_hmac

from common.errors import NotPossible, ProblemsError
from listening.app.models import Block, Condition, Item, Presentation, PresentationSample, Stimulus, Study, Trial
from listening.app.studies.planning import (
    PlannedDesign,
    PlannedPresentation,
    explain_missing,
    plan_design,
    plan_extension,
)
from listening.app.studies.rules import DESIGNABLE, LAUNCHED, PLAN_FIELDS, RELATIONS
from listening.app.studies.selectors import (
    StimulusPool,
    codes_of,
    heard_submissions,
    lock_study,
    pool_of,
    require_state,
)
from listening.app.studies.stored_design import build_certificate, crossed_request, draw_aside, list_failures, read_rows
from listening.design.requirements import Progress
from portal.core import audit

State = Study.State
PLANNED = ("purpose", "key", "is_target", "expected")
CHANGED = "The study was changed while its design was made. Try again."
PAUSE_FIRST = "Pause the study first: its new blocks need further recordings, which have to be prepared."


def make_design(study: Study, by: Any, *, progress: Progress | None = None) -> dict[str, Any]:
    """Design a study again and store its certificate, which is returned.

    The planning takes its time and holds nothing; the rows are written in one transaction if the plan is the same.

    Args:
        progress: called with how many are done, of how many, and of what; whatever it raises leaves all as it was.

    Raises:
        ProblemsError: the plan cannot be met.
        NotPossible: the study is launched, its stimuli are being made, or it was changed meanwhile.
    """
    study = Study.objects.get(pk=study.pk)
    require_state(study, DESIGNABLE, "designed again")
    submissions = heard_submissions(study)
    sets = list(study.data_sets.all())
    if problems := [] if study.has_own_recordings else explain_missing(study, submissions, sets):
        raise ProblemsError(problems)
    pool, codes = pool_of(study), codes_of(study)
    planned = plan_design(study, codes, pool, progress=progress)
    if progress is not None:
        progress(0, 0, "writing")
    with transaction.atomic():
        now = lock_study(study, DESIGNABLE, "designed again")
        if (
            _make_plan(now) != _make_plan(study)
            or heard_submissions(now) != submissions
            or codes_of(now) != codes
            or set(now.data_sets.all()) != set(sets)
        ):
            raise NotPossible(CHANGED)
        clear_design(now)
        _write_design(now, planned, pool, wave=0, first_number=1)
        if not now.has_own_recordings:  # which are here alone
            used = PresentationSample.objects.filter(presentation__study=now).values("stimulus")
            unused = now.stimulus_files.exclude(pk__in=used)
            unused.exclude(item__name__in={item for _, item in _list_crossed(now, pool)}).delete()
            now.items.filter(stimuli=None).delete()
        _certify(now, pool)
        now.save(update_fields=["certificate", "state", "stimuli"])
        audit.record("study.designed", now, actor=by, seed=now.seed, fingerprint=now.certificate["fingerprint"])
    return now.certificate


def extend_design(study: Study, blocks: int, by: Any) -> dict[str, Any]:
    """Add blocks to a launched study: of ratings balanced together with those there are, else among themselves.

    Blocks of all tests but boards are of the same recordings. Those of boards need further ones, which have to be
    prepared before anybody meets them, so the study has to rest meanwhile.

    Raises:
        ProblemsError: no such blocks exist.
        NotPossible: the study is not launched, closed, has to be paused first, or was extended meanwhile.
    """
    study = Study.objects.get(pk=study.pk)
    require_state(study, LAUNCHED, "extended")
    if not (study.is_crossed or study.form == Study.Form.RATING) and study.state != State.PAUSED:
        raise NotPossible(PAUSE_FIRST)
    rows = read_rows(study)
    wave = len(rows.waves())
    planned = plan_extension(rows, blocks, wave)
    with transaction.atomic():
        now = lock_study(study, LAUNCHED, "extended")
        if now.certificate.get("fingerprint") != study.certificate.get("fingerprint") or now.state != study.state:
            raise NotPossible(CHANGED)
        _write_design(now, planned, rows.pool, wave=wave, first_number=len(rows.blocks) + 1)
        _certify(now, rows.pool)
        now.save(update_fields=["certificate"])
        fingerprint = now.certificate["fingerprint"]
        audit.record("study.extended", now, actor=by, blocks=blocks, wave=wave, fingerprint=fingerprint)
    return now.certificate


def clear_design(study: Study) -> None:
    """Take blocks and presentations away with their previews; recordings that were prepared stay for the next design.

    The caller saves the study.

    Raises:
        NotPossible: somebody has listened already.
    """
    if study.is_launched or study.sessions.filter(is_preview=False).exists():
        raise NotPossible("Evaluators have begun, so the design stays as it is.")
    study.sessions.all().delete()
    study.blocks.all().delete()
    study.presentations.all().delete()
    study.certificate, study.stimuli = {}, {}
    study.state = Study.State.DRAFT


# Rows --------------------------------------------------------------------------------------------


def _write_design(study: Study, planned: PlannedDesign, pool: StimulusPool, *, wave: int, first_number: int) -> None:
    """Write presentations, samples and stimuli that are not there yet, then blocks and trials, in few queries."""
    if not study.is_crossed:
        study.conditions.get_or_create(code="", defaults={"kind": Condition.Kind.ORIGINAL})
    conditions = {one.code: one for one in study.conditions.all()}
    held = set(study.presentations.values_list("key", flat=True))
    new = [one for one in planned.items if one.key not in held]
    stimuli = _stimuli(study, new, pool, conditions)
    made = Presentation.objects.bulk_create(
        Presentation(study=study, condition=conditions[one.system], **{name: getattr(one, name) for name in PLANNED})
        for one in new
    )
    PresentationSample.objects.bulk_create(
        PresentationSample(presentation=row, slot=slot, stimulus=stimuli[system, utterance])
        for row, one in zip(made, new, strict=True)
        for slot, system, utterance in one.samples
    )
    keys = dict(study.presentations.values_list("key", "pk"))
    blocks = Block.objects.bulk_create(
        Block(study=study, number=number, wave=wave)
        for number in range(first_number, first_number + len(planned.blocks))
    )
    Trial.objects.bulk_create(
        (
            Trial(block=block, position=position, presentation_id=keys[key])
            for block, order in zip(blocks, planned.blocks, strict=True)
            for position, key in enumerate(order, 1)
        ),
        batch_size=2000,
    )


def _stimuli(
    study: Study, planned: Iterable[PlannedPresentation], pool: StimulusPool, conditions: Mapping[str, Condition]
) -> dict[tuple[str, str], Stimulus]:
    """Return the stimulus of each (system, utterance); one whose recording has changed is made again."""
    wanted = sorted({*_list_crossed(study, pool), *((code, name) for one in planned for _, code, name in one.samples)})
    rows = study.stimulus_files.select_related("condition", "item")
    held = {(one.condition.code, one.item.name): one for one in rows}
    for place in wanted:
        one = held.get(place)
        if one is not None and one.source != pool.audio_of(*place):
            one.source, one.file, one.bytes, one.duration_s, one.facts = pool.audio_of(*place), "", 0, 0, {}
            one.save()
    # Organizers see the numbers of the rows while the study is open: their order must not tell the systems.
    missing = sorted((place for place in wanted if place not in held), key=lambda place: draw_lot(study, *place))
    items = {} if study.has_own_recordings else _items(study, {utterance for _, utterance in wanted}, pool)
    made = Stimulus.objects.bulk_create(
        Stimulus(
            study=study,
            condition=conditions[system],
            item=items[utterance],
            source=pool.audio_of(system, utterance),
        )
        for system, utterance in missing
    )
    return held | dict(zip(missing, made, strict=True))


def _list_crossed(study: Study, pool: StimulusPool) -> Iterator[tuple[str, str]]:
    """Yield every condition with every item of a crossed test, whether or not a trial plays them yet."""
    if study.is_crossed:
        codes = codes_of(study)
        items = crossed_request(study, codes, pool, study.evaluators).items
        yield from product(codes, (*items, *draw_aside(study, codes, pool)))


def _items(study: Study, names: set[str], pool: StimulusPool) -> dict[str, Item]:
    """Return the items of these utterances by their names, as the corpus has them now."""
    of_pool = {one.key: one for one in pool.utterances if one.key in names}
    rows = [
        Item(
            study=study,
            name=name,
            speaker=one.speaker,
            sex=one.sex,
            transcript=pool.recordings[name].transcript,
            utterance_id=pool.recordings[name].utterance,
        )
        for name, one in sorted(of_pool.items())
    ]
    told = ["speaker", "sex", "transcript", "utterance"]
    Item.objects.bulk_create(rows, update_conflicts=True, update_fields=told, unique_fields=["study", "name"])
    return {one.name: one for one in study.items.filter(name__in=names)}


def draw_lot(study: Study, system: str, utterance: str) -> str:
    """Return what sorts stimuli so that the numbers of their rows do not tell the systems."""
    return salted_hmac("listening.stimuli", f"{study.pk} {system} {utterance}", algorithm="sha256").hexdigest()


def _make_plan(study: Study) -> dict[str, Any]:
    """Return what a design is made from, besides systems and data sets."""
    return {name: getattr(study, name) for name in sorted(PLAN_FIELDS - RELATIONS)}


def _certify(study: Study, pool: StimulusPool) -> None:
    """Put the certificate of the rows on the study.

    Raises:
        ProblemsError: it does not pass.
    """
    certificate = build_certificate(read_rows(study, pool))
    if not certificate["passes"]:
        raise ProblemsError(list_failures(certificate))
    study.certificate = certificate
