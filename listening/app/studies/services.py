"""Everything that an organizer does to a study: make, change, word, design, prepare, launch, pause, close, preview.

What belongs to the plan of a study (which recordings are heard, how many, on which scale) can change until the launch,
and a change takes the design with it, because the certificate would no longer tell the truth. A small design is made at
once, a large one as a job: what takes long is the order of so many trials, whatever their number of systems. A study
has one job at a time; one whose stimuli are being made cannot be changed, and how that job ends settles it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import chain
from typing import Any

from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import QuerySet
from django.urls import reverse

from common.errors import NotPossible, ProblemsError
from common.wording import counted, name_some
from listening import texts
from listening.analysis.reading.inputs import ORIGINAL
from listening.app.models import Condition, Question, Session, Study, StudyText
from listening.app.studies import interface_words, rules, selectors
from listening.app.studies.designing import clear_design, make_design
from listening.app.studies.planning import (
    CROSSED_AT_ONCE_AT_MOST,
    DESIGNED_AT_ONCE_AT_MOST,
    TRIED_IN_REQUEST_S,
    judge_plan,
    limit_time,
)
from listening.app.studies.selectors import lock_study, newest_text
from listening.app.studies.settings import DEFAULT_QUESTIONNAIRE, DEFAULT_SCREENING
from listening.app.studies.sizes import choose_crossed_size, choose_size, explain_room, list_sizes
from listening.app.studies.stored_design import launch_problems, read_rows
from listening.questions import (
    FEWEST_TO_SWAP,
    FIRST_PRESET,
    MOST_AT_ONCE,
    NEEDS_REFERENCE,
    OF_CORPUS,
    PAIRED,
    AskedQuestion,
    Kind,
    Orders,
    Screen,
    are_crossed,
    find_form,
    list_question_problems,
    load_preset,
)
from listening.stimuli.anchors import ANCHORS_HZ, list_anchors, name_anchor
from listening.stimuli.making import USUAL
from portal.challenges.models import DataSet, Edition, Role, TrialList
from portal.challenges.rules import propose_test_title
from portal.core import audit
from portal.jobs.models import Job, JobState
from portal.jobs.services import create_job
from portal.submissions.models import Submission
from portal.submissions.services import refuse_deleted, refuse_without_speech

State, Form = Study.State, Study.Form
DESIGN_JOB, PREPARATION_JOB = "design-study", "prepare-study"
MOST_SYSTEMS = 20
BUSY = "Something is being made for this study already. Wait for it, or cancel it first."
FIRST_SETTINGS: dict[str, Any] = {
    "screening": DEFAULT_SCREENING,
    "questionnaire": DEFAULT_QUESTIONNAIRE,
    "platform_settings": {"parameters": {}, "codes": {}, "confirm_by_api": False},
}


@transaction.atomic
def create_study(
    *,
    edition: Edition | None,
    by: Any,
    systems: Iterable[Submission] = (),
    data_sets: Iterable[DataSet] = (),
    further: Iterable[str] = (),
    questions: Sequence[AskedQuestion] | None = None,
    own_texts: Mapping[tuple[str, str], str] | None = None,
    **fields: Any,
) -> Study:
    """Return a draft with its systems, recordings, questions, and the shipped wording of texts in its languages.

    Args:
        further: as of `selectors.list_further`.
        questions: those of the first preset where they are left out.
        own_texts: by kind and language, instead of those that are shipped.
        fields: of `Study`; those left out get their default.

    Raises:
        ValidationError: the name or the title is taken, the name not usable, or the questions do not go together.
        NotPossible: a submission is being deleted.
    """
    study = Study(edition=edition, created_by=by, **FIRST_SETTINGS | _known_of(edition, by) | fields)
    study.languages = study.languages or list(texts.SHIPPED_LANGUAGES)
    check_names(study, by)
    study.save()
    ask_questions(study, load_preset(FIRST_PRESET).questions if questions is None else questions)
    study.data_sets.set(data_sets)
    _set_systems(study, systems)
    _set_further(study, further)
    for (kind, language), wording in (_wordings(study) | {**(own_texts or {})}).items():
        _add_text(study, kind, language, wording, by)
    audit.record("study.created", study, actor=by, edition=edition.name if edition else "")
    return study


@transaction.atomic
def change_study(
    *,
    study: Study,
    by: Any,
    systems: Iterable[Submission] | None = None,
    data_sets: Iterable[DataSet] | None = None,
    further: Iterable[str] | None = None,
    **fields: Any,
) -> Study:
    """Change fields of a study; a change of its plan takes the design away, and after the launch it is refused.

    Raises:
        NotPossible: the stimuli are being made, the study is closed, or a new submission is being deleted.
        ValidationError: a field cannot change any more, or the name or the title is taken.
    """
    study = lock_study(study, rules.CHANGEABLE, "changed")
    changed = {name: value for name, value in fields.items() if getattr(study, name) != value}
    before = {name: getattr(study, name) for name in changed}
    relations: dict[str, list[Any]] = {
        "systems": list(selectors.heard_submissions(study).values()),
        "data_sets": list(study.data_sets.all()),
        "further": selectors.list_further(study),
    }
    wanted: dict[str, Any] = {"systems": systems, "data_sets": data_sets, "further": further}
    for name, chosen in wanted.items():
        if chosen is not None and set(chosen) != set(relations[name]):
            before[name], changed[name] = sorted(map(str, relations[name])), sorted(map(str, chosen))
    if study.is_launched and (fixed := rules.LOCKED_AFTER_LAUNCH & changed.keys()):
        sentence = "This is fixed since the launch, because answers depend on it."
        raise ValidationError({name: [sentence] for name in sorted(fixed)})
    wordings = _wordings(study)
    for name, value in changed.items():
        if name not in relations:
            setattr(study, name, value)
    check_names(study, by, with_title="title" in changed)
    emptied = [name for name in rules.CONSENT_FIELDS if name in changed and not changed[name]]
    if study.is_launched and emptied:
        raise ValidationError({name: ["Evaluators are told this; it cannot be empty any more."] for name in emptied})
    if study.is_launched and (problems := rules.platform_problems(study)):  # evaluators may come at any moment
        raise ValidationError({"platform": problems})
    if rules.PLAN_FIELDS & changed.keys():
        clear_design(study)
        if study.job is not None and study.job.has_ended:
            study.job = None  # what it told was about another plan
    study.save()
    if "screening" in changed:  # a preview may stand before a test that is gone
        study.sessions.filter(is_preview=True).delete()
    if "systems" in changed:
        _set_systems(study, systems or ())
    if "further" in changed:
        _set_further(study, further or ())
    if "data_sets" in changed:
        study.data_sets.set(data_sets or ())
    _follow_wording(study, wordings, by)
    if changed:
        audit.record("study.changed", study, actor=by, changes=audit.changes(before, changed))
    return study


def ask_questions(study: Study, questions: Sequence[AskedQuestion]) -> None:
    """Let a study ask these questions and no others.

    Raises:
        ValidationError: they do not go together.
    """
    if problems := list_question_problems(questions):
        raise ValidationError({"questions": problems})
    if len(questions) < FEWEST_TO_SWAP and study.orders != Orders.AS_LISTED:
        study.orders = Orders.AS_LISTED
        study.save(update_fields=["orders"])
    study.questions.all().delete()
    Question.objects.bulk_create(
        Question(study=study, position=position, **one.as_data()) for position, one in enumerate(questions, 1)
    )
    study.__dict__.pop("asked", None)


@transaction.atomic
def change_questions(*, study: Study, by: Any, questions: Sequence[AskedQuestion]) -> Study:
    """Change questions or their wording; what is not wording alone takes the design away.

    Raises:
        NotPossible: the study is launched, or its stimuli are being made.
        ValidationError: the questions do not go together, or the control trials have no known answer any more.
    """
    study = lock_study(study, rules.DESIGNABLE, "changed in what it asks")
    is_own, was_crossed = study.has_own_recordings, study.is_crossed
    unfit = find_unfit_questions(questions, is_own=is_own)
    if is_own and any(one.kind == Kind.TEXT for one in questions):
        recordings = selectors.read_pool_of_rows(study).recordings
        unfit += explain_missing_texts(name for name, one in recordings.items() if not one.transcript)
    needs_original = any(one.screen in NEEDS_REFERENCE for one in questions)
    if is_own and needs_original and not study.conditions.filter(kind=Condition.Kind.ORIGINAL).exists():
        unfit.append("Each trial would play the original, and no condition is. Make a new test and name it there.")
    if unfit:
        raise ValidationError({"questions": unfit})
    before, wordings = study.asked, _wordings(study)
    ask_questions(study, questions)
    if study.asked == before:
        return study
    if study.is_crossed and not was_crossed:
        for name in rules.NOT_CROSSED:
            setattr(study, name, 0)
    study.against = study.against if study.screen in PAIRED else ""
    problems = _find_number_problems(study)
    for item in study.items.filter(stimuli__condition__kind=Condition.Kind.CONTROL):
        if not rules.read_known_answer(study.asked[0], item.answer):
            sentence = f"The right answer to {item}, {item.answer}, would be none of the answers any more."
            problems.append(sentence)
    if problems:
        raise ValidationError({"questions": problems})
    if [replace(one, wording={}, results={}) for one in study.asked] != [
        replace(one, wording={}, results={}) for one in before
    ]:
        clear_design(study)
    if not is_own and (was_crossed or study.is_crossed):
        kept = {*selectors.list_further(study), *([] if was_crossed and not needs_original else [ORIGINAL])}
        _set_further(study, kept if study.is_crossed else ())
    study.save()
    _follow_wording(study, wordings, by)
    keys = [one.key for one in before], study.asked_keys
    audit.record("study.questions_changed", study, actor=by, changes={"questions": list(keys)})
    return study


def _find_number_problems(study: Study) -> list[str]:
    names = (*rules.NUMBERS, "has_own_recordings", "half_width", "most_evaluators", "plays_at_most")
    problems = rules.plan_number_problems({name: getattr(study, name) for name in names})
    return list(chain.from_iterable(problems.values()))


def find_unfit_questions(questions: Iterable[AskedQuestion], *, is_own: bool) -> list[str]:
    """Return why these questions cannot be asked, as sentences.

    Args:
        is_own: about recordings of one's own; else about the systems of an edition.
    """
    asked = list(questions)
    is_of_corpus = any(one.screen in OF_CORPUS for one in asked)
    if is_own and is_of_corpus:
        fitting = ", ".join(sorted(set(Screen) - OF_CORPUS))
        return [f"Questions about your own recordings need one of these screens: {fitting}."]
    if is_of_corpus and any(one.kind == Kind.CHOICE for one in asked):
        return ["A choice of labels cannot stand beside a question about two voices. Make a test for each of the two."]
    return []


def explain_missing_texts(names: Iterable[str]) -> list[str]:
    """Return why what is heard of these items cannot be compared with what was said; empty where there are none."""
    if not (missing := sorted(names)):
        return []
    found = f"{counted(len(missing), 'item')}: {name_some(missing)}"
    return [f"What is written is compared with the text of each item, which items.csv lacks for {found}."]


def design_and_prepare(study: Study, by: Any) -> None:
    """Make the design of a new test, and start making its stimuli unless the design takes a job of its own.

    Raises:
        ProblemsError: the plan cannot be met.
    """
    if start_design(study, by) is None:
        prepare_study(Study.objects.get(pk=study.pk), by)


@transaction.atomic
def change_text(*, study: Study, kind: str, language: str, text: str, by: Any) -> StudyText | None:
    """Store the text that evaluators read from now on, as a new version; None where it says nothing new.

    Raises:
        NotPossible: the study is closed.
    """
    study = lock_study(study, [state for state in State if state != State.CLOSED], "reworded")
    made = _add_text(study, kind, language, text, by)
    if made is not None:
        audit.record("study.text_changed", study, actor=by, kind=kind, language=language, version=made.version)
    return made


@transaction.atomic
def change_words(
    *, study: Study, language: str, translations: Mapping[interface_words.Key, str], by: Any
) -> StudyText | None:
    """Store the words of buttons and hints from now on, all of them, as a new version; None where they are as before.

    Raises:
        NotPossible: the study is closed.
    """
    text = interface_words.write_words(translations)
    return change_text(study=study, kind=StudyText.Kind.WORDS, language=language, text=text, by=by)


def start_design(study: Study, by: Any) -> Job | None:
    """Make a small design now, which gives None; start the job that makes one that is large or takes long.

    Raises:
        ProblemsError: the plan of a small one cannot be met.
        NotPossible: the study is launched, something is being made for it, or a submission is being deleted.
    """
    most = CROSSED_AT_ONCE_AT_MOST if study.is_crossed else DESIGNED_AT_ONCE_AT_MOST
    if study.screen == Screen.MANY:  # where each trial has samples in an order of its own
        most //= len(rules.slots_of_trial(study))
    if study.evaluators * study.trials_per_evaluator > most:
        return _start_design_job(study, by)
    with transaction.atomic():
        _lock_to_design(study)
    try:
        make_design(study, by, progress=limit_time(TRIED_IN_REQUEST_S))
    except TimeoutError:
        return _start_design_job(study, by)
    Study.objects.filter(pk=study.pk, job=study.job_id).update(job=None)  # what it told was about the design before
    return None


@transaction.atomic
def _start_design_job(study: Study, by: Any) -> Job:
    now = _lock_to_design(study)
    now.job = _start_job(DESIGN_JOB, f"Make the design of {study}", now, by)
    now.save(update_fields=["job"])
    return now.job


def _lock_to_design(study: Study) -> Study:
    now = lock_study(study, rules.DESIGNABLE, "designed again")
    if now.job is not None and not now.job.has_ended:
        raise NotPossible(BUSY)
    refuse_deleted(selectors.heard_submissions(now).values())
    refuse_without_speech(selectors.heard_submissions(now).values())
    return now


@transaction.atomic
def prepare_study(study: Study, by: Any) -> Job:
    """Start making the stimulus files that are missing. A study that is open stays open meanwhile.

    Raises:
        NotPossible: there is no design yet, they are being made, the study is closed, or a submission is being deleted.
    """
    study = Study.objects.select_for_update(of=("self",)).select_related("edition", "job").get(pk=study.pk)
    if study.job is not None and not study.job.has_ended:
        what = "The stimuli are" if study.job.kind == PREPARATION_JOB else "The design is"
        raise NotPossible(f"{what} being made already.")
    if study.state == Study.State.CLOSED:
        raise NotPossible("The study is closed; nobody listens to it any more.")
    count = study.stimulus_files.count()
    if not study.is_designed or not count:
        raise NotPossible("There is no design yet, so the recordings are not known. Make the design first.")
    refuse_deleted(selectors.heard_submissions(study).values())
    refuse_without_speech(selectors.heard_submissions(study).values())
    study.job = _start_job(PREPARATION_JOB, f"Make the {count} stimuli of {study}", study, by)
    if study.state not in rules.LAUNCHED:
        study.state = Study.State.PREPARING
    study.save(update_fields=["job", "state"])
    audit.record("study.preparing", study, actor=by, stimuli=count)
    return study.job


def _start_job(kind: str, title: str, study: Study, by: Any) -> Job:
    parameters = {"study": study.pk}
    edition = study.edition.name if study.edition else ""
    return create_job(kind=kind, title=title[:200], parameters=parameters, by=by, edition=edition)


@transaction.atomic
def settle_preparation(job: Job) -> None:
    """Carry the study on in the transaction that ends its job: ready to launch, or a draft again."""
    study = Study.objects.select_for_update().filter(job=job, state=Study.State.PREPARING).first()
    if study is not None:
        is_made = job.state == JobState.SUCCEEDED
        study.state = Study.State.PREPARED if is_made else Study.State.DRAFT
        study.save(update_fields=["state"])
        audit.record("study.prepared" if is_made else "study.not_prepared", study, actor=None)


@transaction.atomic
def launch_study(*, study: Study, by: Any, now: datetime) -> Study:
    """Open a study to evaluators. Its certificate is computed from its rows at this moment, whatever was stored.

    Raises:
        NotPossible: it is not ready to launch.
        ValidationError: the rows are not a balanced design, a stimulus, a text or a setting is missing.
    """
    study = lock_study(study, [State.PREPARED], "launched")
    problems = [*launch_problems(read_rows(study)), *(sentence for sentence, _ in missing_for_launch(study))]
    if problems:
        raise ValidationError(problems)
    study.state, study.launched_at = State.OPEN, now
    study.save(update_fields=["state", "launched_at"])
    audit.record("study.launched", study, actor=by, certificate=study.certificate["fingerprint"])
    return study


@transaction.atomic
def pause_study(*, study: Study, by: Any) -> Study:
    """Let no new session begin; those under way can be finished.

    Raises:
        NotPossible: it is not open.
    """
    return change_state(study, [State.OPEN], State.PAUSED, "paused", by)


@transaction.atomic
def resume_study(*, study: Study, by: Any) -> Study:
    """Let evaluators begin again.

    Raises:
        NotPossible: it is not paused, recordings of an extension are not prepared yet, or consent lacks something.
    """
    if problems := rules.consent_problems(study):
        raise NotPossible(" ".join(problems.values()))
    if missing := study.stimulus_files.filter(file="").count():
        raise NotPossible(f"{missing} recordings are not prepared yet. Prepare the stimuli first.")
    return change_state(study, [State.PAUSED], State.OPEN, "resumed", by)


def change_state(study: Study, states: Iterable[str], state: str, action: str, by: Any) -> Study:
    study = lock_study(study, states, action)
    study.state = state
    study.save(update_fields=["state"])
    audit.record(f"study.{action}", study, actor=by)
    return study


@transaction.atomic
def preview_session(*, study: Study, by: Any) -> Session:
    """Begin a session in which an organizer meets what an evaluator will meet; it takes no block and counts nowhere.

    Raises:
        NotPossible: there is nothing to hear yet.
    """
    study = lock_study(study, [State.PREPARED, State.OPEN, State.PAUSED, State.CLOSED], "listened to")
    block = study.blocks.order_by("number").first()
    if block is None:
        raise NotPossible("There is no design to listen to. Make one first.")
    participant, _ = study.participants.get_or_create(person_key=f"preview-{by.pk}")
    audit.record("study.previewed", study, actor=by)
    return study.sessions.create(participant=participant, block=block, is_preview=True, language=study.languages[0])


def check_names(study: Study, by: Any, *, with_title: bool = True) -> None:
    """Refuse a short name that is taken, by a study or by an address, and a title that reads as another study's.

    Args:
        by: who gives them; a title is compared with those of the studies that they see.

    Raises:
        ValidationError: one of them is taken.
    """
    if study.name in selectors.RESERVED_NAMES:
        raise ValidationError({"name": [f"The address of “{study.name}” is taken. Choose another name."]})
    if Study.objects.filter(name=study.name).exclude(pk=study.pk).exists():
        raise ValidationError({"name": [f"Another study is called {study.name}. Choose another name."]})
    if with_title and (same := selectors.find_titled(study.title, by=by, besides=study)):
        raise ValidationError({"title": [f"The listening test {same} has this title. Choose another one."]})


# What stands in the way -----------------------------------------------------------------------------


def missing_for_launch(study: Study) -> list[tuple[str, str]]:
    """Return what is missing for the launch besides design and stimuli: sentences with the address to correct each."""
    pages = ("edit", "texts", "questions")
    edit, texts, questions = (reverse(f"studies:{page}", args=[study.name]) for page in pages)
    return [
        *((sentence, questions) for sentence in _wording_problems(study)),
        *((sentence, texts) for sentence in _text_problems(study)),
        *((sentence, f"{edit}?open=platform#platform") for sentence in rules.platform_problems(study)),
        *((sentence, f"{edit}#id_systems") for sentence in _submission_problems(study)),
        *((sentence, f"{edit}#id_{field}") for field, sentence in rules.consent_problems(study).items()),
    ]


def _wording_problems(study: Study) -> list[str]:
    """Return which questions have no wording in a language of the study, as sentences."""
    return [
        f"The question “{one.key}” is not written in the language {language}. Write it on the page of questions."
        for one in study.asked
        for language in study.languages
        if not one.has_words(language)
    ]


def _text_problems(study: Study) -> list[str]:
    """Return which texts evaluators would miss, as sentences."""
    newest = {(one.kind, one.language): one.text for one in study.texts.order_by("version")}
    return [
        f"The text “{kind.label.lower()}” is empty in the language {language}. Write it on the page of texts."
        for kind in StudyText.READ
        for language in study.languages
        if not (kind == StudyText.Kind.ROLE_PLAY and study.role_play == Study.RolePlay.NONE)
        if not newest.get((kind.value, language), "").strip()
    ]


def _submission_problems(study: Study) -> list[str]:
    """Return which systems may not be heard any more, as sentences."""
    gone = (Submission.State.WITHDRAWN, Submission.State.REFUSED)
    return [
        f"{one.submission} is {one.submission.get_state_display().lower()}. Leave it out of the systems of the study."
        for one in study.systems.filter(submission__state__in=gone).select_related("submission__system")
        if one.submission is not None
    ]


# What a new study begins with -----------------------------------------------------------------------


USUAL_MONTHS = 12  # for which answers are kept


def propose_study(edition: Edition, by: Any) -> dict[str, Any]:
    """Return initial values of a new study: its title, the size that the recordings allow, what consent says."""
    size = Study(**list_sizes(Form.RATING, "2022")[0])
    told = {"keep_months": USUAL_MONTHS} | _known_of(edition, None)
    group = "small" if explain_room(size, best_sets(edition)) else "2022"
    return {"title": selectors.free_title(propose_test_title(edition.title), by), "size": group} | told


def make_study(
    *,
    edition: Edition,
    by: Any,
    name: str,
    title: str,
    preset: str,
    size: str,
    systems: Iterable[Submission] = (),
    **fields: Any,
) -> Study:
    """Return a draft with the recordings of one subset and the questions of a preset; a crossed test is designed, too.

    Args:
        preset: of `listening.questions.list_presets`.
        size: of `sizes.SIZES`.
        systems: every one that can be heard where none is given.
        fields: of `Study`; what consent says is as in the newest study of the edition where it is left out or empty.

    Raises:
        ProblemsError, ValidationError: as of `make_crossed_study`; of others numbers do not fit, or the name is taken.
    """
    begun = load_preset(preset)
    fields = {field: value for field, value in fields.items() if value not in (None, "")}
    if are_crossed(begun.questions):
        told = {"edition": edition, "by": by, "name": name, "title": title, "size": size, "systems": systems}
        return make_crossed_study(**told, questions=begun.questions, **{**begun.study, **fields})
    form = find_form(begun.questions)
    if form != Form.RATING and (fields.get("practice_trials") or fields.get("gold_trials")):
        raise ProblemsError([f"{begun.title} of systems has neither practice nor control trials: leave both empty."])
    systems = list(systems or selectors.submissions_to_hear(edition)[:MOST_SYSTEMS])
    data_sets = best_sets(edition)
    with transaction.atomic():
        study = create_study(
            edition=edition,
            by=by,
            systems=systems,
            data_sets=data_sets,
            name=name,
            title=title,
            questions=begun.questions,
            **list_sizes(form, size)[0] | dict(begun.study) | fields,
        )
        for field, value in (choose_size(study, size, systems, data_sets) | fields).items():
            setattr(study, field, value)
        study.save()
        if problems := _find_number_problems(study):
            raise ProblemsError(problems)
    return study


def make_crossed_study(
    *,
    edition: Edition,
    by: Any,
    questions: Sequence[AskedQuestion],
    systems: Iterable[Submission] = (),
    data_sets: Iterable[DataSet] = (),
    further: Iterable[str] | None = None,
    size: str = "2022",
    **fields: Any,
) -> Study:
    """Return a test in which every system is heard in every item; its design is made and its stimuli are started.

    Args:
        systems: as many as can be heard where none is given.
        data_sets: the trial sets of one subset where none is given.
        further: as of `selectors.list_further`; None for the original and, where all conditions are heard at once, the
            anchors that the sampling rate can have.
        size: of `sizes.SIZES`, from which numbers follow that are not in `fields`.
        fields: of `Study`.

    Raises:
        ProblemsError: no design can be made.
        ValidationError: the name or the title is taken.
        NotPossible: a submission is being deleted.
    """
    screen = questions[0].screen
    if further is None:
        further = [ORIGINAL, *(name_anchor(hz) for hz in list_anchors(USUAL.rate_hz) if screen == Screen.MANY)]
    conditions = {*further, ORIGINAL} if screen in NEEDS_REFERENCE else set(further)
    room = MOST_AT_ONCE - len(conditions) if screen == Screen.MANY else MOST_SYSTEMS
    with transaction.atomic():
        study = create_study(
            edition=edition,
            by=by,
            systems=list(systems or selectors.submissions_to_hear(edition)[:room]),
            data_sets=list(data_sets) or [one for one in best_sets(edition) if one.role == Role.TRIAL],
            further=conditions,
            questions=questions,
            **dict.fromkeys(rules.NOT_CROSSED, 0) | fields,
        )
        for field, value in choose_crossed_size(study, size, fields).items():
            setattr(study, field, value)
        study.save()
        if problems := _find_number_problems(study) or judge_plan(study).problems:
            raise ProblemsError(problems)
    design_and_prepare(study, by)
    return study


def best_sets(edition: Edition) -> list[DataSet]:
    """Return an enrolment set and the trial sets compared with it: of the test where there is one, else the largest."""
    heard = {one.pk: one for one in selectors.sets_to_hear(edition)}
    lists = TrialList.objects.filter(trial_set__in=heard, enrolment_set__in=heard)
    by_enrolment: dict[int, list[int]] = {}
    for enrolment, trial in lists.order_by("trial_set__name").values_list("enrolment_set", "trial_set"):
        by_enrolment.setdefault(enrolment, []).append(trial)
    if not by_enrolment:
        return []
    sizes = {pk: heard[pk].utterances.exclude(audio="").count() for trials in by_enrolment.values() for pk in trials}
    best = max(
        by_enrolment,
        key=lambda pk: (heard[pk].split == "test", sum(sizes[one] for one in by_enrolment[pk]), heard[pk].name),
    )
    return [heard[pk] for pk in (best, *by_enrolment[best])]


def _known_of(edition: Edition | None, by: Any) -> dict[str, Any]:
    """Return what consent says in the newest study of the edition, or of this person; else their own address."""
    of_same = edition.studies.all() if edition is not None else selectors.studies_for(by).filter(edition=None)
    before = of_same.exclude(contact="").order_by("-pk").first()
    if before is None:
        return {"contact": by.email} if by is not None else {}
    return {name: getattr(before, name) for name in rules.CONSENT_FIELDS}


# Parts of a study -----------------------------------------------------------------------------------


def _set_systems(study: Study, systems: Iterable[Submission]) -> None:
    """Hear these submissions; recordings that were prepared of those that stay are kept."""
    chosen = {one.pk: one for one in systems}
    heard = study.conditions.filter(kind=Condition.Kind.SYSTEM)
    _leave_out(study, heard.exclude(submission__in=chosen))
    held = dict(heard.values_list("submission", "code"))
    added = [submission for pk, submission in chosen.items() if pk not in held]
    refuse_deleted(added)
    refuse_without_speech(added)
    new = (one for pk, one in chosen.items() if pk not in held)
    for code, submission in selectors.name_codes(new, taken=held.values()).items():
        study.conditions.create(submission=submission, code=code)


def _set_further(study: Study, further: Iterable[str]) -> None:
    """Compare the systems with these conditions, as of `selectors.list_further`, and with no others."""
    anchors, wanted = {name_anchor(hz): hz for hz in ANCHORS_HZ}, {*further}
    held = set(selectors.list_further(study))
    _leave_out(study, study.conditions.filter(code__in=["" if one == ORIGINAL else one for one in held - wanted]))
    for one in sorted(wanted - held):
        if one == ORIGINAL:
            study.conditions.create(kind=Condition.Kind.ORIGINAL)
        else:
            study.conditions.create(kind=Condition.Kind.ANCHOR, code=one, low_pass_hz=anchors[one])


def _leave_out(study: Study, conditions: QuerySet[Condition]) -> None:
    study.stimulus_files.filter(condition__in=conditions).delete()
    conditions.delete()


def _add_text(study: Study, kind: str, language: str, text: str, by: Any) -> StudyText | None:
    """Store the text as the newest version; None where it says nothing new."""
    newest = newest_text(study, kind, language)
    if not text or (newest is not None and newest.text == text):
        return None
    version = newest.version + 1 if newest else 1
    return study.texts.create(kind=kind, language=language, version=version, text=text, created_by=by)


def _wordings(study: Study) -> dict[tuple[str, str], str]:
    """Return the shipped wording of each kind and language of a study; organizers write what is not shipped."""
    return {
        (kind.value, language): selectors.shipped_text(study, kind, language)
        for kind in StudyText.READ
        for language in study.languages
        if language in texts.LANGUAGES
    }


def _follow_wording(study: Study, before: Mapping[tuple[str, str], str], by: Any) -> None:
    """Let texts follow what a study asks: those that nobody wrote, and the story of a role play that was chosen again.

    Args:
        before: the shipped wordings of what the study asked so far.
    """
    for (kind, language), wording in _wordings(study).items():
        newest = newest_text(study, kind, language)
        was = before.get((kind, language))
        is_untouched = newest is None or newest.text == was
        is_new_story = kind == StudyText.Kind.ROLE_PLAY and was is not None and was != wording
        if is_untouched or is_new_story:
            _add_text(study, kind, language, wording, by)
