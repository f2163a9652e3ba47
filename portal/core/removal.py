"""What can be archived and deleted, and what goes with it.

Each feature declares in its module `removal` its kinds of things (an edition, a corpus), the words and the stored files
of its rows, and why one of them must stay. What goes with a thing is not listed anywhere: it is every row that cannot
be without it, found along the foreign keys that cascade or protect, so that no table is forgotten.

Conventions: a rule is a sentence, or "" where nothing stands in the way; sizes are in bytes.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.core.files.storage import default_storage
from django.db.models import CASCADE, PROTECT, ForeignKey, JSONField, Model, Q, QuerySet
from django.http import Http404
from django.shortcuts import get_object_or_404

from portal.core.storage import delete_old, is_older

KEYS_AT_ONCE = 500
BATCH = 500
FILES_MEASURED = 200  # more are estimated from so many of them
Rule = Callable[[Any], str]
Rows = dict[type[Model], QuerySet[Any]]
Guard = Callable[[Rows], str]


@dataclass(frozen=True)
class RemovableKind:
    """A kind of things that people can put away.

    Attributes:
        name: in addresses, such as ``editions``.
        word: such as ``edition``.
        owned: the things that a person may rename, archive and delete.
        renamed: those that the person may rename at least.
        lookup: the field that addresses hold.
        edit: the address of the form that changes its other names, or all of them; empty where there is none.
        name_problem: why the name in its address cannot change any more; empty where `edit` can change it.
        rename: writes other names; takes `thing`, `by` and the fields of `names`.
        names: the fields that `rename` takes, with their labels.
        jobs: which jobs are of it beside those that its rows name.
        archiving_problem: why it cannot be archived now.
        archives: whether it can be archived at all.
        archiving_note: what else leaves lists while it is archived, or what stays public; empty where nothing does.
        root: what is really deleted, where that is more than the thing.
        edition: the edition whose audit log tells of it, or None.
        trail: the pages above its own, each with its name and address.
        needed_by: the things that this person may open and without whose end it cannot be deleted.
    """

    name: str
    word: str
    model: type[Model]
    owned: Callable[[Any], QuerySet[Any]]
    renamed: Callable[[Any], QuerySet[Any]] | None = None
    lookup: str = "name"
    edit: Callable[[Any], str] = lambda _thing: ""
    name_problem: Rule = lambda _thing: ""
    rename: Callable[..., Any] | None = None
    names: Callable[[Any], Mapping[str, str]] = lambda _thing: {}
    jobs: Callable[[Any], Q] | None = None
    archiving_problem: Rule = lambda _thing: ""
    archives: bool = True
    archiving_note: Rule = lambda _thing: ""
    root: Callable[[Any], Any] = lambda thing: thing
    edition: Callable[[Any], Any] = lambda _thing: None
    trail: Callable[[Any], Sequence[tuple[str, str]]] = lambda _thing: ()
    needed_by: Callable[[Any, Any], Iterable[Any]] = lambda _thing, _user: ()


_kinds: dict[str, RemovableKind] = {}
_words: dict[type[Model], str] = {}
_files: dict[type[Model], tuple[str, ...]] = {}
_rules: dict[type[Model], list[Rule]] = {}
_guards: dict[type[Model], Guard] = {}
_owned: dict[type[Model], dict[type[Model], Callable[[list[Any]], Q]]] = {}


def declare_kind(kind: RemovableKind) -> None:
    """Let things of this kind be managed."""
    _kinds[kind.name] = kind


def declare_rows(model: type[Model], words: str = "", *, files: tuple[str, ...] = ()) -> None:
    """Say what rows of a model are to a reader, such as ``submissions``, and which fields hold keys of stored files.

    Args:
        words: empty for rows that no preview counts.
        files: names of text fields, and of JSON fields whose items or values are keys.
    """
    if words:
        _words[model] = words
    if files:
        _files[model] = files


def declare_owned(
    model: type[Model], *, by: type[Model] | None = None, find: Callable[[list[Any]], Q] | None = None
) -> None:
    """Let rows of this model go with the rows that name them, such as the job that a run names.

    Args:
        by: a model whose rows have more of them, which no foreign key tells.
        find: which these are, by the keys of rows of `by`.
    """
    more = _owned.setdefault(model, {})
    if by is not None and find is not None:
        more[by] = find


def declare_rule(model: type[Model], rule: Rule) -> None:
    """Add a reason for which a thing cannot be deleted."""
    _rules.setdefault(model, []).append(rule)


def declare_guard(model: type[Model], guard: Guard) -> None:
    """Add a reason for which rows of a model cannot go along, whatever they go along with.

    Args:
        guard: takes all rows that would go, some of `model` among them.
    """
    _guards[model] = guard


def find_kind(name: str) -> RemovableKind:
    """The kind of this name in an address, or "not found"."""
    if name not in _kinds:
        raise Http404
    return _kinds[name]


def find_thing(kind: RemovableKind, user: Any, key: str) -> tuple[Any, bool]:
    """A thing by its key in an address, and whether this person may do more than rename it; or "not found"."""
    is_number = key.isdecimal() and len(key) < 19
    if "\0" in key or (kind.lookup == "pk" and not is_number):
        raise Http404
    wanted = {kind.lookup: key}
    if owned := kind.owned(user).filter(**wanted).first():
        return owned, True
    renamed = kind.renamed(user) if kind.renamed else kind.model._default_manager.none()
    return get_object_or_404(renamed, **wanted), False


def list_kinds() -> list[RemovableKind]:
    """All kinds, in the order in which they were declared."""
    return list(_kinds.values())


def find_problems(thing: Model) -> list[str]:
    """Every sentence for which a thing cannot be deleted."""
    found = [rule(thing) for rule in _rules.get(type(thing), ())]
    rows = find_rows(thing)
    found += [guard(rows) for model, guard in _guards.items() if model in rows]
    return list(dict.fromkeys(filter(None, found)))


# What goes with a thing ----------------------------------------------------------------------------


def find_rows(thing: Model) -> Rows:
    """The rows that cannot be without a thing, its own first, then those that rest on them: by their model."""
    return find_rows_of(type(thing)._default_manager.filter(pk=thing.pk))


def find_rows_of(things: QuerySet[Any]) -> Rows:
    """The rows that cannot be without one of these.

    Few rows are held by their keys and many by a query, which finds nothing any more once what it rests on is gone.
    """
    found: Rows = {}
    for model in _resting_on(things.model):
        if model is things.model:
            found[model] = things
            continue
        rests = Q()
        for field in _holding_fields(model):
            if field.related_model in found and field.related_model is not model:
                rests |= Q(**{f"{field.name}__in": found[field.related_model].order_by().values("pk")})
        if not rests:
            continue
        rows = model._default_manager.filter(rests).order_by()
        some = list(rows.values_list("pk", flat=True)[: KEYS_AT_ONCE + 1])
        if some:
            found[model] = rows if len(some) > KEYS_AT_ONCE else model._default_manager.filter(pk__in=some)
    return found


def _resting_on(model: type[Model]) -> list[type[Model]]:
    """A model and those whose rows may rest on its rows, each after all that it rests on itself."""
    reached, waiting = {model}, [model]
    while waiting:
        for other in _models_holding(waiting.pop()):
            if other not in reached:
                reached.add(other)
                waiting.append(other)
    ordered: list[type[Model]] = []

    def place(one: Any) -> None:
        if one in ordered:
            return
        for field in _holding_fields(one):
            target = field.related_model
            if target is not one and target in reached:
                place(target)
        ordered.append(one)

    place(model)
    for one in sorted(reached, key=lambda other: other._meta.label):
        place(one)
    return ordered


def _models_holding(model: type[Model]) -> Iterator[type[Model]]:
    for relation in model._meta.get_fields(include_hidden=True):
        other: Any = getattr(relation, "related_model", None)
        is_reverse = relation.auto_created and not relation.concrete and other is not None
        if is_reverse and not other._meta.auto_created and getattr(relation, "on_delete", None) in (CASCADE, PROTECT):
            yield other


def _holding_fields(model: type[Model]) -> list[ForeignKey[Any, Any]]:
    """The foreign keys without which a row of this model cannot be."""
    return [
        field
        for field in model._meta.concrete_fields
        if isinstance(field, ForeignKey) and field.remote_field.on_delete in (CASCADE, PROTECT)
    ]


def find_owned(rows: Rows) -> Rows:
    """The rows that go because these name them, by whatever field, or have them otherwise."""
    found: Rows = {}
    for model, more in _owned.items():
        ours = Q(pk__in=_named_by(rows, model))
        for holder, find in more.items():
            if holder in rows:
                ours |= find(list(rows[holder].order_by().values_list("pk", flat=True)))
        found[model] = model._default_manager.filter(ours)
    return found


def _named_by(rows: Rows, owned: type[Model]) -> set[Any]:
    return {
        key
        for model, found in rows.items()
        for field in model._meta.concrete_fields
        if isinstance(field, ForeignKey) and field.related_model is owned
        for key in found.order_by().values_list(field.attname, flat=True)
        if key is not None
    }


@dataclass(frozen=True)
class Preview:
    """What goes with a thing.

    Attributes:
        counts: words and number of the rows that a reader knows.
        files: how many stored files they name.
        bytes: how large these are; estimated where `is_estimated`.
    """

    counts: tuple[tuple[str, int], ...]
    files: int
    bytes: int
    is_estimated: bool

    @property
    def is_big(self) -> bool:
        """Whether it holds what nobody can make again: then its name is typed once more."""
        return bool(self.files or self.counts)


def count_rows(rows: Rows) -> int:
    return sum(found.count() for found in rows.values())


def count_named(rows: Rows) -> dict[str, int]:
    """By what they are to a reader how many rows there are, those without a name for readers left out."""
    return {_words[model]: found.count() for model, found in rows.items() if model in _words}


def preview_removal(rows: Rows) -> Preview:
    """Count what goes with a thing, itself left out."""
    counted = itertools.islice(rows.items(), 1, None)
    counts = [(_words[model], found.count()) for model, found in counted if model in _words]
    keys = sorted(set(list_files(rows)))
    measured = keys[:: max(1, len(keys) // FILES_MEASURED)] if keys else []
    size = sum(map(measure_file, measured))
    return Preview(
        counts=tuple((words, count) for words, count in counts if count),
        files=len(keys),
        bytes=round(size * len(keys) / len(measured)) if measured else 0,
        is_estimated=len(measured) < len(keys),
    )


def measure_file(key: str) -> int:
    """Bytes of a stored file; 0 where there is none."""
    try:
        size: int = default_storage.size(key)
    except OSError:
        return 0
    return size


def list_files(rows: Rows) -> Iterator[str]:
    """The keys of the stored files that rows name; some come more than once."""
    for model, found in rows.items():
        for name in _files.get(model, ()):
            for value in found.order_by().values_list(name, flat=True).distinct().iterator():
                yield from _keys(value)


def list_folder(folder: str) -> Iterator[str]:
    """The keys of all stored files below a folder."""
    try:
        folders, names = default_storage.listdir(folder)
    except FileNotFoundError:
        return
    yield from (f"{folder}/{name}" for name in sorted(names))
    for one in sorted(folders):
        yield from list_folder(f"{folder}/{one}")


def list_held_files() -> Iterator[tuple[str, str]]:
    """Of every stored file that a row names, what the row is to a reader, and the key; some come more than once."""
    for model in _files:
        words = _words.get(model, str(model._meta.verbose_name_plural))
        yield from ((words, key) for key in list_files({model: model._default_manager.all()}))


def _keys(value: Any) -> Iterable[str]:
    """The keys in a field: its text, or what an object or a list holds."""
    if isinstance(value, str):
        return [value] if value else []
    values = value.values() if isinstance(value, Mapping) else value or ()
    return [one for one in values if one]


def list_separable(rows: Rows) -> Rows:
    """Of these rows those that may go some time before the others: nothing that stays until the end rests on them.

    The first stay, the thing itself, and those by which owned rows are found.
    """
    first = next(iter(rows))
    staying = {first, *_owned, *(model for more in _owned.values() for model in more)}
    found: Rows = {}
    for model, some in reversed(rows.items()):
        targets = {field.related_model for field in model._meta.concrete_fields if isinstance(field, ForeignKey)}
        if model in staying or targets & _owned.keys():
            staying |= {model, *(field.related_model for field in _holding_fields(model))}
        else:
            found[model] = some
    return dict(reversed(found.items()))


def take_pieces(rows: Rows) -> Iterator[Rows]:
    """A few rows at a time, those first that rest on others; each piece is deleted before the next is asked for."""
    for model, found in reversed(rows.items()):
        for field in _holding_fields(model):
            if field.related_model is model and field.null:
                found.update(**{field.name: None})
        while some := list(found.order_by().values_list("pk", flat=True)[:BATCH]):
            yield {model: model._default_manager.filter(pk__in=some)}


def delete_rows(rows: Rows) -> None:
    """Delete the rows, those first that rest on others; in a transaction."""
    for piece in take_pieces(rows):
        for found in piece.values():
            found.delete()


def delete_unheld_files(keys: Iterable[str], before: float) -> list[str]:
    """Delete those of these stored files that no row names any more; the keys of what is gone or stays.

    Equal content is stored once, so that another row may need the same file. What was stored since `before` waits: the
    row that needs it may come only at the end of a long import.

    Args:
        before: seconds since 1970.
    """
    old = [key for key in keys if is_older(key, before)]
    held = _held(set(old))
    return [key for key in old if key in held or delete_old(key, before)]


def _held(keys: set[str]) -> set[str]:
    held: set[str] = set()
    for model, names in _files.items():
        for name in names:
            rows = model._default_manager.order_by()
            if isinstance(model._meta.get_field(name), JSONField):
                for value in rows.values_list(name, flat=True).iterator() if keys else ():
                    held.update(keys.intersection(_keys(value)))
            else:
                held.update(rows.filter(**{f"{name}__in": keys}).values_list(name, flat=True))
    return held
