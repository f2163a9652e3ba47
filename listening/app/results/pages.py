"""What the results page of a study shows, and that of its listeners; and what organizers may do with them.

A page depends on the analysis, the kind of scores and what its reader may see, and on nothing else, so that it is made
once and kept (`listening.app.results.context`). Only what an organizer may do is asked of the database each time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from django.conf import settings
from django.db.models import prefetch_related_objects

from common.tables import Order, Table
from listening.analysis.tables import BY_SCORES, COMMON, DICTIONARY, EFFECTS, Results
from listening.app.models import Study
from listening.app.results import labels
from listening.app.results.answer_pages import list_answered
from listening.app.results.figures import Reader, ShownFigure
from listening.app.results.inputs import has_answers
from listening.app.results.opening import lead_of, read_lead, read_opening
from listening.app.results.rules import FEWEST_PEOPLE, warn_of_few
from listening.app.results.selectors import Shown, changes_since, outdating, running_job
from listening.app.results.services import FLAG_OF_RULE, NOT_PUBLISHED, publication_problems
from listening.app.results.tables import (
    Record,
    Shape,
    caption_of,
    headline,
    shown_table,
)
from listening.app.sessions.selectors import list_questions
from listening.app.studies.selectors import shown_text
from listening.app.studies.settings import BackgroundQuestion, label_in
from listening.texts import LANGUAGES, direction_of
from portal.jobs.selectors import with_estimates

MOST_PAIRS = 120  # more are in the file, and on the page of each system
Figures = Sequence[ShownFigure]


def chosen_scores(query: Mapping[str, str]) -> str:
    """Return the kind of scores that an address asks for; normalised ones where it asks for none that exist."""
    wanted = query.get("scores", "")
    return wanted if wanted in labels.SCORES else "normalised"


def results_page(
    results: Results, reader: Reader, figures: Figures, sorting: tuple[str, Order], *, is_imported: bool = False
) -> dict[str, Any]:
    """Return all of the page that its reader may see. Figures are those of the reader's scores."""
    scores, shape = reader.scores, Shape(reader, results)
    rated = tasks_of(results, scores)
    tasks = [one for task in rated if (one := _task_section(shape, task, figures, sorting))]
    comparisons = [one for task in tasks for one in task["comparisons"]]
    answered = list_answered(shape, figures)
    used = [id(one) for part in (*tasks, *comparisons, *answered) for one in part["figures"]]
    names = {
        str(name)
        for table in results.tables.values()
        for column in ("system", "condition", "against")
        if column in table.columns
        for name in table.values(column)
    }
    is_told = results.is_crossed or results.study["form"] == Study.Form.ANSWERS  # by the study, not by its tables
    compared = set(results.study["labels"]) if is_told else names - {results.original, labels.EVERY}
    return {
        "scores": scores,
        "opening": read_opening(shape, rated),
        "counts": results.counts,
        "is_crossed": results.is_crossed,
        "compared": len(compared),
        "reference": labels.refer_to_original(results) if results.original in names or not results.is_crossed else "",
        "notes": results.remarks,
        "left_out": _left_out(results),
        "tasks": tasks,
        "answered": answered,
        "sections": _sections(shape, [one for one in figures if id(one) not in used]),
        "formulas": list(labels.formulas(results, scores)),
        "settings": list(labels.settings_facts(results)),
        "sources": list(labels.sources(results)),
        "downloads": _downloads(results, reader),
        "attribution": str(results.study.get("attribution", "")),
        "is_imported": is_imported,
    }


def list_asked(study: Study) -> list[dict[str, Any]]:
    """Return by language what evaluators read before the trials, and what each trial asks; nothing if imported."""
    if study.imported:
        return []
    prefetch_related_objects([study], "texts")
    questions = list_questions(study)
    return [
        {
            "language": LANGUAGES.get(language, language),
            "code": language,
            "direction": direction_of(language),
            "texts": [shown_text(study, kind, language, below=2) for kind in ("role-play", "instructions")],
            "before": [(label_in(one.labels, language), _answers(one, language)) for one in questions],
            "in_trials": list(_asked_in_trials(study, language)),
        }
        for language in study.languages
    ]


def _answers(question: BackgroundQuestion, language: str) -> str:
    """Return the answers among which evaluators chose; empty where they were free."""
    return " · ".join(label_in(one.labels, language) for one in question.choices)


def _asked_in_trials(study: Study, language: str) -> Iterator[str]:
    """Yield each question with its hint and the words of its points; of a board what else is asked on it."""
    for one in study.asked:
        words = one.words(language)
        labels_of_points = (
            [f"{point}: {label}" for point, label in one.labels(language).items()] if one.is_rated else []
        )
        yield " ".join(filter(None, (words.question, words.hint, "; ".join(labels_of_points or words.labels))))


# Parts ---------------------------------------------------------------------------------------------


def tasks_of(results: Results, scores: str) -> list[str]:
    """Return the tasks that were rated, in the order of asking."""
    rated = {row["task"] for row in results.records(scores, "summary")}
    return [task for task in results.questions if task in rated]


def _task_section(shape: Shape, task: str, figures: Figures, sorting: tuple[str, Order]) -> dict[str, Any] | None:
    """Return what listeners said in a task: the headline, what it rests on, and figures."""
    table = headline(shape, task, sorting)
    if table is None:
        return None
    main = f"{'eer' if shape.results.questions[task].compares_voices else 'violin'}-{task}"
    return {
        "name": task,
        "words": shape.results.questions[task],
        "headline": table,
        "is_sorted": bool(sorting[0]),
        "has_letters": any(one.key in {"group", "rate_group"} for one in table.columns),
        "lead": _lead(shape, task),
        "more": _of_task(shape, task, "summary", "detection", "model_effects", "model_variance"),
        "figures": sorted(
            (one for one in figures if one["task"] == task and one["place"] == "task"),
            key=lambda one: one["name"] != main,  # that of all systems with their intervals stands in sight
        ),
        "comparisons": list(_comparisons(shape, task, figures)),
    }


def _of_task(shape: Shape, task: str, *names: str) -> list[Table]:
    """Return the rows of a task in tables of the reader's scores, where there are any."""
    caption, without = caption_of(task, shape), shape.without("task")
    hiding = {"model_effects": without.without("se", "low", "high")} if shape.few else {}  # no intervals anywhere
    shown = (
        shown_table(
            name,
            caption,
            hiding.get(name, without),
            shape.records(name, task=task),
            csv=shape.reader.csv(shape.scores, name),
        )
        for name in names
    )
    return [one for one in shown if one is not None]


def _lead(shape: Shape, task: str) -> dict[str, Any] | None:
    """Return from which system to which the number of a task reaches."""
    if shape.results.questions[task].compares_voices:
        return read_lead(shape, shape.records("detection", task=task), "detection", "eer")
    return lead_of(shape, task)


def _comparisons(shape: Shape, task: str, figures: Figures) -> Iterator[dict[str, Any]]:
    """Yield systems against each other in a task, each test under its own heading: by rates, if any, and by means."""
    of_rates = shape.records("eer_differences", task=task) if shape.results.questions[task].compares_voices else []
    of_means = shape.records("differences", task=task)
    if of_rates:
        yield _comparison(shape, task, "eer_differences", of_rates, figures)
    if of_means:
        yield _comparison(shape, task, "differences", of_means, figures) | {"is_another_measure": bool(of_rates)}


def _comparison(shape: Shape, task: str, table: str, records: Sequence[Record], figures: Figures) -> dict[str, Any]:
    """Return systems against each other in a task by one test, whose rows are those of `table`."""
    few, is_of_rates = len(records) <= MOST_PAIRS, table == "eer_differences"
    tested = [row["is_told_apart"] for row in records if row["is_told_apart"] is not None]
    name = f"{'eer-difference' if is_of_rates else 'significance'}-{task}"
    return {
        "task": shape.results.questions[task],
        "pairs": len(tested),
        "apart": sum(map(bool, tested)),
        "is_of_rates": is_of_rates,
        "tables": _of_task(shape, task, table) if few else [],
        "as_in_2020": _of_task(shape, task, "mann_whitney") if few and not is_of_rates else [],
        "figures": [one for one in figures if one["name"] == name],
        "left_out": 0 if few else len(records),
        **find_decided_otherwise(shape, task, table, records),
    }


def find_decided_otherwise(shape: Shape, task: str, table: str, records: Sequence[Record]) -> dict[str, Any]:
    """Return the pairs that differ significantly with one kind of scores only, and what the other kind is called."""
    scores = "raw" if shape.scores == "normalised" else "normalised"
    others = shape.records(table, scores=scores, task=task)
    there = {frozenset((row["first"], row["second"])): row["is_told_apart"] for row in others}
    decided = [(row, there.get(frozenset((row["first"], row["second"])))) for row in records]
    unlike = [
        row for row, other in decided if None not in (other, row["is_told_apart"]) and other != row["is_told_apart"]
    ]
    pairs = [
        tuple(labels.label_of(str(row[end]), shape.system_labels) for end in ("first", "second")) for row in unlike
    ]
    return {"other_scores": shape.name_scores(scores).lower(), "otherwise": pairs}


def _sections(shape: Shape, figures: Figures) -> list[dict[str, Any]]:
    """Return everything after the tasks that this study has: tables and figures under a heading.

    What the form of the study is about stands open, with its first figure; everything else is folded.
    """
    made: list[dict[str, Any]] = []
    parts, form = labels.METHOD["sections"], shape.results.study["form"]
    for part in parts:
        tables = [shown for name in part["tables"] if (shown := _whole_table(shape, name))]
        drawn = [one for one in figures if one["place"] == part["anchor"]]
        empty = "" if tables or drawn else part.get("empty", "")
        if tables or drawn or (empty and shape.results.table(shape.scores, "summary") is not None):
            told = {"tables": tables, "figures": drawn, "empty": empty, "is_open": part["anchor"] == form}
            made.append(part | told)
    made.sort(key=lambda one: not one["is_open"])
    rest = [one for one in figures if one["place"] not in {"task", *(part["anchor"] for part in parts)}]
    return [*made, {"anchor": "figures", "title": "Further figures", "figures": rest}] if rest else made


def _whole_table(shape: Shape, name: str) -> Table | None:
    """Return a table of the reader's scores, or of neither; the effect of rules is that of the standing ones."""
    scores = "common" if name in {one.name for one in COMMON} else shape.scores
    records = shape.records(name, scores=scores)
    if name in EFFECTS:
        records = _changed(row for row in records if row["rule"] == "standing")
        shape = shape.without("rule")
    if name == "correlations":  # what it compares are no systems
        shape = replace(shape, has_links=False)
    return shown_table(name, shape.name_scores(scores), shape, records, csv=shape.reader.csv(scores, name))


def _changed(records: Iterable[Record]) -> list[Record]:
    """Return the systems whose number of ratings a rule changes."""
    return [row for row in records if row["n_before"] != row["n_after"]]


def _left_out(results: Results) -> list[tuple[str, int]]:
    """Return why listeners are left out, and how many for each reason; who they are is not told."""
    reasons: dict[str, set[str]] = {}
    for row in results.records("raw", "listeners"):
        if row["excluded"]:
            reasons.setdefault(str(row["excluded"]), set()).add(str(row["listener"]))
    return sorted(((reason, len(people)) for reason, people in reasons.items()), key=lambda one: (-one[1], one[0]))


def _downloads(results: Results, reader: Reader) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return the tables that this reader may have, by kind of scores."""
    found: list[tuple[str, list[tuple[str, str]]]] = []
    for scores, contents in (("normalised", BY_SCORES), ("raw", BY_SCORES), ("common", COMMON)):
        called = labels.name_scores(scores, results.study["form"]).lower()
        title = f"Tables of {called}" if called else "Other tables" if found else "Tables"
        links = [
            (one.title, reader.csv(scores, one.name))
            for one in contents
            if one.name in reader.tables and results.records(scores, one.name)
        ]
        if links:
            found.append((title, links))
    return found


# Listeners -----------------------------------------------------------------------------------------


def listeners_page(results: Results, reader: Reader) -> dict[str, Any]:
    shape = Shape(reader, results)
    tasks = dict.fromkeys(str(row["task"]) for row in shape.records("listeners"))
    asked = [one for one in results.questions.values() if one.key in tasks]
    tables = [(one.title, _of_task(shape, one.key, "listeners")) for one in asked]
    rules = dict.fromkeys(str(row["rule"]) for row in shape.records("screening", scores="common"))
    return {
        "tables": [(title, table) for title, found in tables for table in found],
        "rules": [_rule(shape, rule) for rule in rules],
    }


def _rule(shape: Shape, name: str) -> dict[str, Any]:
    """Return whom a screening rule would leave out, of how many, and every system before and after."""
    records = shape.records("screening", scores="common", rule=name)
    caught = [row for row in records if row["is_caught"]]
    of = shape.without("rule", "is_caught", "session")
    effects, compared, scores = "exclusion_effect", "system", shape.scores
    if shape.results.study["form"] == Study.Form.ANSWERS:
        effects, compared, scores = "answers_effect", "condition", "common"
    title, words = _words(name)
    what = shape.name_scores(scores).lower()
    effect = f"{title}: every {compared} before and after" + (f", {what}" if what else "")
    changed = _changed(shape.records(effects, scores=scores, rule=name))
    return {
        "name": name,
        "anchor": f"rule-{name}",
        "title": title,
        "words": words,
        "may_leave_out": name in FLAG_OF_RULE,
        "caught": len({row["listener"] for row in caught}),
        "looked_at": len({row["listener"] for row in records if row["value"] is not None}),
        "found": shown_table("screening", f"{title}: whom it would leave out", of, caught, title="Caught"),
        "effect": shown_table(effects, effect, of, changed, title="Before and after"),
    }


def _words(name: str) -> tuple[str, str]:
    """Return title and description of a rule; its name where it is none of today's."""
    rule = DICTIONARY["rules"].get(name)
    if rule is None:
        return name.replace("-", " ").capitalize(), ""
    return rule["title"], f"Looks at {rule['looks_at']}; catches {rule['threshold']} ({rule['source']})."


# What organizers do --------------------------------------------------------------------------------


def organizer_actions(shown: Shown) -> dict[str, Any]:
    """Return the analysis under way, and whether another may be started; nothing for who is no organizer."""
    if not shown.is_organizer:
        return {}
    study, job = shown.study, running_job(shown.study)
    is_busy = job is not None and not job.has_ended
    if job is not None and is_busy:
        with_estimates([job])
    is_locked = study.state != Study.State.CLOSED
    changes = changes_since(shown.analysis, study) if shown.analysis is not None else []
    return {
        "job": job,
        "is_busy": is_busy,
        "is_locked": is_locked,
        "may_analyse": not is_locked and not is_busy and has_answers(study),
        "changes": outdating(changes) or changes,
        "is_outdated": bool(outdating(changes)),
    }


def publication(shown: Shown, *, is_taking_back: bool = False, refusal: str = "") -> dict[str, Any]:
    """Return what a page says before results are published or taken back.

    Args:
        refusal: why it was not done just now; told where nothing stands in the way any more.
    """
    study, analysis = shown.study, shown.analysis
    if is_taking_back:
        problems = [] if study.results_published_at else [NOT_PUBLISHED]
    else:
        problems = publication_problems(study) or list(filter(None, [refusal]))
    return {
        "study": study,
        "analysis": analysis,
        "is_organizer": True,
        "is_taking_back": is_taking_back,
        "problems": problems,
        "counts": shown.results.counts if analysis else {},
        "few": warn_of_few(shown.results) if analysis else "",
        "tells_single_people": analysis is not None and shown.results.counts.get("listeners", 0) < FEWEST_PEOPLE,
        "fewest_people": FEWEST_PEOPLE,
        "audio_minutes": settings.AUDIO_LINK_S // 60,
    }
