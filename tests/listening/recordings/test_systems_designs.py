"""Systems of an edition that are heard in the same utterances: what is drawn, changed, refused, repeated by a file."""

import pytest
from django.core.exceptions import ValidationError
from django.test import Client

from common.errors import ProblemsError
from listening.app.models import Condition, Study
from listening.app.recordings.files import read_test_file, write_test_file
from listening.app.studies.designing import extend_design, make_design
from listening.app.studies.forms import StudyForm, read_initial
from listening.app.studies.selectors import submissions_to_hear
from listening.app.studies.services import change_questions, change_study, make_crossed_study, make_study
from listening.app.studies.stored_design import launch_problems, read_rows
from listening.design.crossed import draw_items
from listening.design.requirements import PoolUtterance
from listening.questions import load_preset
from portal.accounts.tokens import create_token
from tests.listening.edition_factories import add_system, make_draft, make_edition_with_speech
from tests.listening.own_factories import run_jobs
from tests.portal.factories import make_organizer

ANCHOR = "anchor-3.5k"


def make_crossed(edition, preset="mushra", **fields):
    by = edition.organizers.first()
    chosen = {"name": "compared", "title": "Compared", "size": "small", "questions": load_preset(preset).questions}
    return make_crossed_study(edition=edition, by=by, **chosen | fields)


def codes_of(study):
    return sorted(study.conditions.values_list("code", flat=True))


def test_items_are_drawn_evenly_over_sexes_and_speakers():
    pool = [
        PoolUtterance(f"{speaker}-{number}", speaker, "f" if speaker < "c" else "m", "trial", frozenset())
        for speaker in "abcdef"
        for number in range(5)
    ]
    drawn = draw_items(pool, 8, seed=1)
    assert list(drawn) == sorted(drawn)
    assert sorted(one[0] for one in drawn) == ["a", "a", "b", "b", "c", "d", "e", "f"]
    assert (draw_items(pool, None, 1), len(draw_items(pool, 99, 1))) == (tuple(one.key for one in pool), 30)
    assert draw_items(pool, 8, seed=2) != drawn


@pytest.mark.django_db
@pytest.mark.parametrize("preset", ["mushra", "dcr", "ccr", "ab", "abx", "emotion", "mos", "p835"])
def test_every_system_is_heard_in_utterances_that_all_have(preset):
    edition = make_edition_with_speech(systems=3)
    submission = submissions_to_hear(edition)[0]
    lacking = submission.files.order_by("utterance__name").first()
    lacking.delete()
    study = make_crossed(edition, preset)
    run_jobs()
    assert codes_of(study) == ["", "T01-p1", "T02-p1", "T03-p1"] + ([ANCHOR] if preset == "mushra" else [])
    names = set(study.items.values_list("name", flat=True))
    assert lacking.utterance.name not in names
    assert len(names) == study.items_at_most + study.practice_trials
    assert study.stimulus_files.count() == len(names) * study.conditions.count()
    assert Study.objects.get().certificate["passes"]
    assert [one for one in launch_problems(read_rows(Study.objects.get())) if "prepared" not in one] == []


@pytest.mark.django_db
def test_anchor_is_made_of_the_original_and_a_system_of_its_submission():
    study = make_crossed(make_edition_with_speech(with_audio=True, speakers=4, utterances=4))
    run_jobs()
    study.refresh_from_db()
    assert (study.state, study.sound.loudness) == (Study.State.PREPARED, "p56")
    item = study.items.first()
    made = {one.condition.code: one for one in study.stimulus_files.filter(item=item).select_related("condition")}
    assert made[""].source == made[ANCHOR].source == item.utterance.audio
    assert made["T01-p1"].source == item.utterance.submitted_files.get(submission__system__label="T01-p1").audio
    assert len({one.file for one in made.values()}) == len(made)


@pytest.mark.django_db
def test_edit_page_changes_systems_and_further_conditions_and_takes_the_design_away():
    edition = make_edition_with_speech(systems=3)
    study = make_crossed(edition, "ab")
    run_jobs()
    form = StudyForm(study=Study.objects.get())
    assert {"further", "items_at_most", "half_width"} <= form.fields.keys()
    assert {"practice_trials", "gold_trials", "against"} <= form.fields.keys()
    assert not {"bridge_trials", "relaxations", "originals_per_evaluator", "rate_hz"} & form.fields.keys()
    study = Study.objects.get()
    study.state = Study.State.DRAFT
    study.save()
    kept = [one for one in submissions_to_hear(edition) if str(one.system) != "T03-p1"]
    change_study(study=study, by=study.created_by, systems=kept, further=[ANCHOR])
    study = Study.objects.get()
    change_study(study=study, by=study.created_by, trials_per_evaluator=12)
    study = Study.objects.get()
    assert (codes_of(study), study.is_designed) == (["T01-p1", "T02-p1", ANCHOR], False)
    make_design(study, study.created_by)
    samples = study.presentations.values_list("samples__stimulus__condition__code", flat=True)
    assert set(samples) == {"T01-p1", "T02-p1", ANCHOR}
    assert not study.stimulus_files.filter(condition__kind=Condition.Kind.ORIGINAL).exists()


@pytest.mark.django_db
def test_more_evaluators_hear_what_was_launched_though_the_data_set_has_changed():
    edition = make_edition_with_speech()
    beside = {"practice_trials": 1, "gold_trials": 1}
    study = make_crossed(edition, "dcr", items_at_most=3, trials_per_evaluator=3, **beside)
    study.stimulus_files.update(file="derived/nothing.wav", bytes=1, duration_s=0.6)
    Study.objects.update(state=Study.State.OPEN, launched_at="2026-01-01T00:00Z")
    heard = set(study.items.values_list("name", flat=True))
    data_set = study.data_sets.first()
    data_set.utterances.remove(data_set.utterances.exclude(name__in=heard).first())
    assert extend_design(Study.objects.get(), 4, study.created_by)["passes"]
    assert set(study.items.values_list("name", flat=True)) == heard
    assert study.blocks.count() == study.evaluators + 4


@pytest.mark.django_db
def test_questions_that_compare_cross_a_study_of_ratings_and_back():
    study = make_draft(make_edition_with_speech())
    by = study.created_by
    change_questions(study=study, by=by, questions=load_preset("mushra").questions)
    study = Study.objects.get()
    assert (codes_of(study), study.gold_trials, study.originals_per_evaluator) == (["", "T01-p1", "T02-p1"], 0, 0)
    change_study(study=study, by=by, further=["original", ANCHOR], trials_per_evaluator=4)
    make_design(Study.objects.get(), by)
    change_questions(study=study, by=by, questions=load_preset("similarity").questions)
    assert codes_of(Study.objects.get()) == ["T01-p1", "T02-p1"]


@pytest.mark.django_db
def test_control_trials_need_a_question_whose_answer_is_known():
    study = make_crossed(make_edition_with_speech(), "dcr", items_at_most=3, trials_per_evaluator=3, gold_trials=1)
    Study.objects.update(state=Study.State.DRAFT)
    with pytest.raises(ValidationError, match="Control trials have a known answer"):
        change_questions(study=study, by=study.created_by, questions=load_preset("mos").questions)
    assert Study.objects.get().asked_keys == ["degradation"]


@pytest.mark.django_db
def test_what_cannot_be_compared_is_refused_and_nothing_is_made():
    edition = make_edition_with_speech(systems=0)
    with pytest.raises(ProblemsError, match="Choose at least one system"):
        make_crossed(edition)
    for number in range(12):
        add_system(edition, f"S{number:02d}")
    with pytest.raises(ProblemsError, match="expected at most 12, found 14"):
        make_crossed(edition, systems=list(submissions_to_hear(edition)))
    assert not Study.objects.exists()
    assert make_crossed(edition).conditions.count() == 12


@pytest.mark.django_db
def test_new_study_of_emotions_is_made_by_the_page():
    edition = make_edition_with_speech()
    chosen = {"name": "felt", "title": "Felt", "preset": "emotion", "size": "2022"}
    study = make_study(edition=edition, by=edition.organizers.first(), **chosen)
    assert (study.is_crossed, read_initial(study)["further"]) == (True, ["original"])


@pytest.mark.django_db
@pytest.mark.parametrize(("given", "trials"), [({}, 2), ({"practice_trials": 0}, 0)])
def test_practice_is_proposed_of_one_item_in_ten_unless_it_is_chosen(given, trials):
    edition = make_edition_with_speech(speakers=6, utterances=4)
    chosen = {"name": "rated", "title": "Rated", "preset": "dcr", "size": "small"}
    study = make_study(edition=edition, by=edition.organizers.first(), **chosen | given)
    assert study.practice_trials == trials
    assert study.presentations.filter(purpose="practice").count() == trials


def post(user, **given):
    token = create_token(user=user, name="vp", scopes=["read", "organize"], expires_at=None)[1]
    return Client(headers={"Authorization": f"Bearer {token}"}).post("/api/studies/", given)


@pytest.mark.django_db
def test_file_of_a_test_of_systems_repeats_it_by_the_api():
    organizer = make_organizer()
    edition = make_edition_with_speech(systems=3, organizer=organizer)
    file = f'title = "Two"\npreset = "ab"\nedition = "{edition.name}"\nsystems = ["T01-p1", "T03-p1"]\n'
    reply = post(organizer, test=file + "[sessions]\nevaluators = 6\ntrials_per_evaluator = 4\nitems_at_most = 4\n")
    assert (reply.status_code, reply.json()["name"]) == (201, "two"), reply.json()
    study = Study.objects.get()
    assert (codes_of(study), study.trials_per_evaluator) == (["T01-p1", "T03-p1"], 4)
    chosen = read_test_file(write_test_file(study)).choose()
    assert (chosen.edition, chosen.systems, chosen.original) == (edition.name, ("T01-p1", "T03-p1"), "")
    assert [chosen.study[name] for name in ("items_at_most", "evaluators", "seed")] == [4, 6, study.seed]
    again = post(organizer, test=write_test_file(study).replace("Two", "Again"))
    made = Study.objects.get(name=again.json()["name"])
    assert made.certificate["fingerprint"] == study.certificate["fingerprint"]


@pytest.mark.django_db
def test_words_are_written_of_utterances_that_say_different_things_and_each_once():
    edition = make_edition_with_speech(speakers=6, utterances=4)
    utterances = edition.corpus.utterances
    for speaker in edition.corpus.speakers.all():  # who read the same four sentences
        for number, one in enumerate(utterances.filter(speaker=speaker)):
            utterances.filter(pk=one.pk).update(transcript=f"Sentence, {number % 4}!" if number % 4 else "")
    chosen = {"name": "written", "title": "Written", "preset": "transcription", "size": "small"}
    by = edition.organizers.first()
    with pytest.raises(ProblemsError, match="3 conditions of 3 recordings give at most 3 trials"):
        make_study(edition=edition, by=by, trials_per_evaluator=4, **chosen)
    study = make_study(edition=edition, by=by, **chosen)
    assert (codes_of(study), study.evaluators, study.trials_per_evaluator) == (["", "T01-p1", "T02-p1"], 12, 3)
    assert len(set(study.items.values_list("transcript", flat=True))) == study.items.count() == 3
    assert set(study.items.values_list("sex", flat=True)) == {"f", "m"}
    assert len(set(study.items.values_list("speaker", flat=True))) == 3


@pytest.mark.django_db
def test_file_of_systems_sent_twice_leads_to_the_test_that_it_made():
    organizer = make_organizer()
    edition = make_edition_with_speech(organizer=organizer)
    file = f'title = "Two"\npreset = "ab"\nedition = "{edition.name}"\n'
    first, again = post(organizer, test=file), post(organizer, test=file)
    assert (again.status_code, again.json()["address"]) == (201, first.json()["address"])
    assert "has this title" in str(post(organizer, test=file.replace("ab", "abx")).json())
    assert Study.objects.count() == 1


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("", "Expected an archive of recordings, or an edition in the file of the test, found neither."),
        ('edition = "no-such"', "no-such: expected an edition with a corpus that you organise."),
        (
            'edition = "{edition}"\npreset = "own"\n[[questions]]\nkey = "same"\nkind = "scale"\nscreen = "voices"\n'
            'points = 5\n[questions.wording.en]\nquestion = "Same?"',
            "about voices is made on the page “New listening test” alone.",
        ),
        ('edition = "{edition}"\npreset = "ab"\nsystems = ["T09"]', "T09: there is no such system"),
        ('edition = "{edition}"\npreset = "ab"\noriginal = "clean"', "the original is called “original”"),
        ('edition = "{edition}"\npreset = "mushra"\nanchors = [7000]', "have the anchors 3500 alone"),
        ('edition = "{edition}"\npreset = "ab"\n[sound]\nchannels = 2', "always heard in mono"),
    ],
)
def test_api_says_what_is_wrong_with_a_file_of_systems(lines, said):
    organizer = make_organizer()
    edition = make_edition_with_speech(organizer=organizer)
    reply = post(organizer, test='title = "x"\n' + lines.replace("{edition}", edition.name))
    assert reply.status_code == 400
    [told] = [one["detail"] for one in reply.json()["errors"]]
    assert said in told
    other = make_organizer()
    if "no-such" not in lines and "edition" in lines:
        assert "that you organise" in str(post(other, test=f'title = "x"\nedition = "{edition.name}"').json())
    assert not Study.objects.exists()
