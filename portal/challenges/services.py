"""Everything that changes an edition: making it, changing it, copying it. What does not hold together is not saved."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from django.core.exceptions import ValidationError
from django.db import transaction

from common.errors import ProblemsError
from common.line_texts import fold_line
from evaluation.protocols.recipes import Recipe, load_recipe
from portal.challenges import rules
from portal.challenges.models import EDITION_FIELDS, Edition
from portal.challenges.rules import contradictions, read_recipe_text, track_problem
from portal.challenges.selectors import DATA_FILES, editions_for, export_recipe, has_submissions, held_sets, may_pass_on
from portal.core import audit
from portal.jobs.models import Job, JobState
from portal.jobs.services import create_job

RECIPE_FIELDS = frozenset({"protocol", "recipe_text", "track", "corpus"})
DEMO = "demo"  # the name of the demo edition and of its corpus
RESERVED_NAMES = frozenset({"new"})  # addresses beside those of editions
DATA_FIELDS = RECIPE_FIELDS | {"shares_data"}  # the files for teams follow from these
NOT_YOURS = "Only the owner of the corpus {corpus} or an operator may let teams download its speech."
LOCKED = (
    "Something was submitted to this edition, and its results depend on this. Change averages and conditions on the "
    "page “Recipe” of the leaderboard, or copy the edition to try something else."
)


@transaction.atomic
def create_edition(*, by: Any, organizers: Iterable[Any], **fields: Any) -> Edition:
    """Return a new edition; `fields` as in `EDITION_FIELDS`, those left out get their default.

    Raises:
        ValidationError: the recipe cannot be read or contradicts the corpus, or other fields do not fit together.
    """
    edition = Edition(**fields)
    _hold_together(edition, list(organizers), by=by, with_title=True)
    _require_owner(edition, by)
    edition.save()
    edition.organizers.set(organizers)
    audit.record("edition.created", edition, actor=by)
    prepare_data_files(edition=edition, by=by)
    return edition


@transaction.atomic
def change_edition(*, edition: Edition, by: Any, organizers: Iterable[Any] | None = None, **fields: Any) -> Edition:
    """Other fields of an edition; recipe, track, corpus and name only until the first submission.

    Another recipe or track ranks as it says: what organizers ranked by until now is dropped.

    Raises:
        ValidationError: as `create_edition`, or a field cannot change any more.
    """
    edition = Edition.objects.select_for_update().get(pk=edition.pk)
    changed = {name: value for name, value in fields.items() if getattr(edition, name) != value}
    if changed.keys() & RECIPE_FIELDS - {"corpus"} and edition.leaderboard_policy:
        changed["leaderboard_policy"] = {}
    before = {name: getattr(edition, name) for name in changed}
    locked = rules.locked_fields(has_submissions=has_submissions(edition)) & changed.keys()
    if locked:
        raise ValidationError({name: [LOCKED] for name in sorted(locked)})
    for name, value in changed.items():
        setattr(edition, name, value)
    people = list(edition.organizers.all()) if organizers is None else list(organizers)
    with_recipe, with_title = bool(RECIPE_FIELDS & changed.keys()), "title" in changed or bool(changed.get("is_listed"))
    _hold_together(edition, people, by=by, with_recipe=with_recipe, with_title=with_title)
    if {"shares_data", "corpus"} & changed.keys():
        _require_owner(edition, by)
    if "name" in changed and "recipe_text" not in changed:
        _rename_in_recipe(edition, before, changed)
    edition.save()
    if "name" in changed:  # jobs know their edition by its name
        Job.objects.filter(edition=before["name"]).update(edition=edition.name)
    organizers = sorted(edition.organizers.all(), key=str)
    if set(people) != set(organizers):
        edition.organizers.set(people)
        before["organizers"], changed["organizers"] = organizers, sorted(people, key=str)
    if changed:
        audit.record("edition.changed", edition, actor=by, changes=audit.changes(before, changed))
    if "title" in changed:
        _rename_tests(edition, before["title"], by)
    if DATA_FIELDS & changed.keys():
        prepare_data_files(edition=edition, by=by)
    return edition


def _name_in_recipe(text: str, before: str, name: str) -> str:
    old, new = (f'\nedition = "{one}"\n' for one in (before, name))
    return f"\n{text}".replace(old, new, 1)[1:]


def _rename_in_recipe(edition: Edition, before: dict[str, Any], changed: dict[str, Any]) -> None:
    """Let a recipe that names its edition by the short name follow the new one; both dictionaries tell of it."""
    text = _name_in_recipe(edition.recipe_text, before["name"], edition.name)
    if text != edition.recipe_text:
        before["recipe_text"], changed["recipe_text"] = edition.recipe_text, text
        edition.recipe_text = text


def _rename_tests(edition: Edition, before: str, by: Any) -> None:
    """Let listening tests with the proposed title of an edition follow its new one; results of closed ones name it."""
    proposed = {"title": rules.propose_test_title(before)}
    renamed = {"title": rules.propose_test_title(edition.title)}
    for study in edition.studies.filter(**proposed).exclude(state__in=("preparing", "closed")):
        study.title = renamed["title"]
        study.save(update_fields=["title"])
        audit.record("study.changed", study, actor=by, changes=audit.changes(proposed, renamed))


@transaction.atomic
def copy_edition(*, edition: Edition, by: Any, name: str, title: str) -> Edition:
    """Return the same edition under another name, with its recipe as text to change, without teams, not listed.

    It gives its teams speech only where `by` may decide that.

    Raises:
        ValidationError: the name or the title is taken.
    """
    fields = {field: getattr(edition, field) for field in EDITION_FIELDS}
    own: dict[str, Any] = {"name": name, "title": title, "protocol": "", "is_listed": False}
    own["recipe_text"] = _name_in_recipe(export_recipe(edition), edition.name, name)
    own["speech_kept_until"] = None
    own["shares_data"] = edition.shares_data and may_pass_on(by, edition.corpus)
    copied = Edition(**fields | own)
    # The recipe of the original holds, or held when it was stored.
    _hold_together(copied, [by], by=by, with_recipe=False, with_title=True)
    copied.save()
    copied.organizers.set([by])
    audit.record("edition.copied", copied, actor=by, original=edition.name)
    prepare_data_files(edition=copied, by=by)
    return copied


@transaction.atomic
def prepare_data_files(*, edition: Edition, by: Any = None) -> Job | None:
    """Start the job that makes the files for teams; None where the edition shares none, or one waits already."""
    if not edition.shares_data or edition.corpus_id is None:
        return None
    waiting = Job.objects.filter(kind=DATA_FILES, edition=edition.name, state=JobState.WAITING)
    if waiting.exists():
        return None
    return create_job(
        kind=DATA_FILES,
        title=f"Data files for the teams of {edition}",
        parameters={"edition": edition.pk},
        by=by,
        edition=edition.name,
    )


def find_problems(fields: Mapping[str, Any], *, with_recipe: bool = True) -> dict[str, list[str]]:
    """Return what does not hold together in the fields of an edition: sentences by the name of the field.

    Args:
        with_recipe: whether recipe, track and corpus are looked at; a corpus that grew must not block other changes.
    """
    problems = {name: [sentence] for name, sentence in rules.date_problems(fields).items()}
    if not with_recipe:
        return problems
    own = fields.get("recipe_text") or ""
    place = "recipe_text" if own else "protocol"
    try:
        recipe = _recipe(own, fields.get("protocol") or "", fields.get("name") or "recipe")
    except ProblemsError as error:
        return problems | {place: list(error.problems)}
    if sentence := track_problem(recipe, fields.get("track") or ""):
        problems["track"] = [sentence]
    corpus = fields.get("corpus")
    if corpus and (found := contradictions(recipe, corpus.name, held_sets(corpus))):
        problems["corpus"] = found
    return problems


def _require_owner(edition: Edition, by: Any) -> None:
    if edition.shares_data and edition.corpus is not None and not may_pass_on(by, edition.corpus):
        raise ValidationError({"shares_data": [NOT_YOURS.format(corpus=edition.corpus)]})


def _recipe(text: str, protocol: str, name: str) -> Recipe:
    return read_recipe_text(text, file=f"{name}.toml") if text else load_recipe(protocol)


def title_problem(title: str, *, by: Any, besides: Edition | None = None) -> str:
    """Return why an edition cannot have this title: who gives it would take it for another one's that they see."""
    seen = editions_for(by) if by else Edition.objects.all()
    others = seen.filter(archived_at=None).exclude(pk=(besides and besides.pk) or 0).values_list("title", "name")
    wanted = fold_line(title)
    same = next((name for other, name in others if fold_line(other) == wanted), "")
    return f"The edition {same} has this title. Choose another one, such as with its year." if same else ""


def _find_wrong_fields(edition: Edition) -> dict[str, list[str]]:
    """Return what the model refuses in single fields, such as a text that is too long."""
    others = {field.name for field in Edition._meta.fields}.difference(EDITION_FIELDS) | {"corpus"}
    try:
        edition.clean_fields(exclude=others)
    except ValidationError as error:
        return error.message_dict
    return {}


def _hold_together(
    edition: Edition, organizers: list[Any], *, by: Any, with_recipe: bool = True, with_title: bool = False
) -> None:
    problems = _find_wrong_fields(edition)
    problems |= find_problems({field: getattr(edition, field) for field in EDITION_FIELDS}, with_recipe=with_recipe)
    if with_title and (sentence := title_problem(edition.title, by=by, besides=edition)):
        problems["title"] = [sentence]
    if edition.name != edition.name.lower():  # names of systems are made of it, in small letters
        problems["name"] = [f"Expected small letters, found {edition.name}."]
    if Edition.objects.filter(name=edition.name).exclude(pk=edition.pk).exists():
        problems["name"] = [f"Another edition is called {edition.name}. Choose another name."]
    if edition.name in RESERVED_NAMES:
        problems["name"] = [f"The address of “{edition.name}” is taken. Choose another name."]
    if not organizers:
        problems["organizers"] = ["An edition needs an organizer: give the e-mail address of an account."]
    if problems:
        raise ValidationError(problems)
    edition.__dict__.pop("recipe", None)  # computed once from the text that may just have changed
