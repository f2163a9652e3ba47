"""The file that describes a test of one's own recordings: by the API, by ``vp``, and written for others."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from common.errors import ProblemsError
from listening.app.models import Study
from listening.app.recordings.choosing import ChosenTestForm
from listening.app.recordings.files import read_test_file, write_test_file
from listening.app.studies.selectors import newest_text
from listening.app.studies.services import change_questions, change_text, change_words
from listening.app.studies.settings import DEFAULT_SCREENING, SHIPPED_QUESTIONS
from listening.questions import Wording
from portal.accounts.tokens import create_token
from portal.client.main import main
from tests.listening.own_factories import make_own_prepared, pack, recordings, run_jobs
from tests.portal.factories import make_organizer

FILE = """
title = "Three codecs"
original = "clean"

[sound]
rate_hz = 48000
loudness = "p56"

[sessions]
trials_per_evaluator = 3
languages = ["fr"]

[consent]
responsible = "Test University"
"""


def token_of(user):
    return create_token(user=user, name="vp", scopes=["read", "organize"], expires_at=None)[1]


def read(file):
    """Return what a file chooses, and the fields of its study."""
    chosen = read_test_file(file).choose()
    return chosen, chosen.study


def post(user, **given):
    return Client(headers={"Authorization": f"Bearer {token_of(user)}"}).post("/api/studies/", given)


@pytest.mark.django_db
def test_file_chooses_what_it_names_and_leaves_the_rest_to_the_recordings():
    reply = post(make_organizer(), test=FILE, archive=pack(recordings()))
    assert (reply.status_code, reply.json()["name"], reply.json()["trials"]) == (201, "three-codecs", 3)
    study = Study.objects.get()
    assert (study.rate_hz, study.channels, study.loudness, study.languages) == (48000, 1, "p56", ["fr"])
    assert (study.responsible, study.conditions.get(kind="original").code) == ("Test University", "")


@pytest.mark.django_db
def test_api_tells_everything_that_is_wrong_with_a_file_or_an_archive():
    organizer = make_organizer()
    wrong = post(organizer, test='titel = "x"\n[sound]\nrate_hz = 1\n[more]\n', archive=pack(recordings()))
    told = [one["detail"] for one in wrong.json()["errors"]]
    assert wrong.status_code == 400
    assert "[sound] rate_hz: Expected one of 16000, 22050, 24000, 32000, 44100, 48000, found 1." in told
    assert len(told) == 4  # the title is missing, too
    wrong = post(organizer, test=FILE, archive=pack({"notes.txt": b"x"}))
    assert [one["field"] for one in wrong.json()["errors"]] == ["archive"]
    assert not Study.objects.exists()


@pytest.mark.django_db
def test_written_file_repeats_the_test():
    screening = DEFAULT_SCREENING | {"sound": False, "environment": "gate", "native_languages": ["fr"]}
    told = {"screening": screening, "role_play": "call-centre", "plays_at_most": None}
    study = make_own_prepared(make_organizer(), title="Two “codecs”", rate_hz=24000, **told)
    fields = read(write_test_file(study))[1]
    names = ("title", "rate_hz", "trials_per_evaluator", "seed")
    assert [fields[name] for name in names] == ["Two “codecs”", 24000, 6, 2022]
    assert {name: fields[name] for name in told} == told


@pytest.mark.django_db
def test_written_file_holds_platform_background_questions_and_own_texts_but_no_codes():
    organizer = make_organizer()
    hours = {"name": "hours_a_day", "kind": "number", "labels": {"en": "Hours a day?"}, "required": False}
    told = {
        "platform": "prolific",
        "platform_settings": {"parameters": {"person": "PID"}, "codes": {"complete": "C0DE"}, "confirm_by_api": True},
        "questionnaire": [SHIPPED_QUESTIONS["age"], hours],
        "role_play": "own",
        "pay_per_hour": 12,
        "lease_minutes": 20,
        "places_per_network": 3,
    }
    study = make_own_prepared(organizer, **told)
    story = 'You are a “judge”.\n\n- of "voices"\\'
    change_text(study=study, kind="role-play", language="en", text=story, by=organizer)
    text = write_test_file(study)
    chosen, fields = read(text)
    told["platform_settings"] = told["platform_settings"] | {"codes": {}}
    assert {name: fields[name] for name in told} == told
    assert (chosen.texts, "C0DE" in text) == ({("role-play", "en"): story}, False)
    page = Client()
    page.force_login(organizer)
    assert "does not hold the codes of Prolific" in page.get(study.get_absolute_url()).text
    reply = post(organizer, test=text.replace("Own test", "Again"), archive=pack(recordings()))
    assert reply.status_code == 201, reply.json()
    again = Study.objects.get(name=reply.json()["name"])
    assert write_test_file(again) == text.replace("Own test", "Again")


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        (
            '[texts.consents]\nen = "x"',
            "[texts]: expected tables consent, role-play, instructions, thanks, words, each of",
        ),
        ("[texts.consent]\nen = 1", "each of texts by language."),
        ('[texts.consent]\nde = "x"', "[texts]: the test has no language de. Add it to languages."),
        ("[texts.consent]\nen = 1979-05-27", "each of texts by language."),
        ('[texts.words]\nfr = "x"', "[texts.words] fr: the words of this language are shipped."),
        ('[texts.words]\nde = "x"', "[texts.words] de: expected a JSON array"),
        ('[texts.thanks]\nen = "a\\u0000b"', "has the character U+0000. Leave it out."),
        ('[""]\ntitle = "y"', "[]: there is no such table"),
        (f"[sessions]\nhalf_width = {'9' * 400}", "[sessions] half_width: expected a number, found '999"),
        ('[platform]\nplatform = "prolific"\n[sessions]\npay_per_hour = 0', "People from such a platform are paid."),
        ('[platform]\nparameter_person = "a b"', "[platform] platform: The parameter for the person"),
        ('[screening]\nown_questions = "Do you sing?"', "[screening] own_questions: Line 1: expected a question"),
    ],
)
def test_text_question_or_platform_that_cannot_be_used_is_refused(lines, sentence):
    with pytest.raises(ProblemsError) as refused:
        read_test_file(f'title = "x"\n{lines}\n')
    assert sentence in str(refused.value)


@pytest.mark.django_db
@pytest.mark.parametrize("preset", ["abx", "p835"])
def test_written_file_has_the_preset_and_what_it_compares(preset):
    file = f'title = "Codecs"\npreset = "{preset}"\noriginal = "clean"\nreferences = ["codec"]\nanchors = [3500]\n'
    assert post(make_organizer(), test=file, archive=pack(recordings())).status_code == 201
    text = write_test_file(Study.objects.get())
    chosen, fields = read(text)
    assert fields["orders"] == ("swap-first-two" if preset == "p835" else "as-listed")
    assert (chosen.preset, chosen.original, chosen.references) == (preset, "clean", ("codec",))
    assert (chosen.anchors, "[[questions]]" in text) == ((3500,), False)


@pytest.mark.django_db
def test_changed_wording_is_in_the_written_file():
    organizer = make_organizer()
    study = make_own_prepared(organizer, preset="mushra", conditions=("", "codec"))
    words = Wording('“Quoted” "words"\n\x7f\\ and more', hint="# no comment", labels=study.asked[0].words("en").labels)
    changed = replace(study.asked[0], wording={**study.asked[0].wording, "en": words, "pt-BR": words})
    change_questions(study=study, by=organizer, questions=[changed, *study.asked[1:]])
    text = write_test_file(Study.objects.get())
    chosen, _ = read(text)
    assert chosen.asked == (changed, *study.asked[1:])


@pytest.mark.django_db
def test_translated_words_are_in_the_written_file():
    organizer = make_organizer()
    study = make_own_prepared(organizer, languages=["en", "de"])
    change_words(study=study, language="de", translations={("Begin", 0): "Los"}, by=organizer)
    chosen, _ = read(write_test_file(study))
    assert chosen.texts["words", "de"] == newest_text(study, "words", "de").text


@pytest.mark.django_db
@pytest.mark.parametrize("questions", ["[]", "0", "{}", "false"])
def test_questions_that_are_none_are_refused(questions):
    with pytest.raises(ProblemsError):
        read_test_file(f'title = "x"\nquestions = {questions}\n')


@pytest.mark.django_db
def test_questions_of_a_file_are_read_as_presets_have_them():
    file = (
        'title = "x"\n[[questions]]\nkey = "comfort"\npoints = 5\n[questions.wording.en]\nquestion = "Comfortable?"\n'
    )
    chosen, _ = read(file)
    assert [(one.key, one.points, one.question) for one in chosen.asked] == [("comfort", 5, "Comfortable?")]


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        ('key = "x"', "questions]] 1: expected a question with a key and its wording by language, found 'wording'"),
        ('key = ["x"]\nwording = {en = {question = "?"}}', "found no text, but ['x']"),
        ('key = "x"\nwording = {en = {question = "?", labels = "ab"}}', "found no list of labels, but 'ab'"),
        ('key = "x"\nlisten_again = "no"\nwording = {en = {question = "?"}}', "found neither true nor false, but no"),
        ('key = "x"\nsize = 3\nwording = {en = {question = "?"}}', "unexpected keyword argument 'size'"),
        ('key = "x"\npoints = 5.5\nwording = {en = {question = "?"}}', "expected 2 to 10 points, found 5.5"),
        (
            'key = "x"\nresults = {foo = "x"}\nwording = {en = {question = "?"}}',
            "results have title, reading, worse, best",
        ),
        ('key = "x"\nwording = {"<b>" = {question = "?"}}', "expected a language such as en, found '<b>'"),
        (f'key = "x"\nwording = {{en = {{question = "{"?" * 401}"}}}}', "at most 400 characters, found 401."),
        ('key = "x"\nscreen = "voices"\nwording = {en = {question = "?"}}', "need one of these screens"),
    ],
)
def test_question_that_cannot_be_asked_is_refused_with_a_sentence(lines, sentence):
    with pytest.raises(ProblemsError) as refused:
        read_test_file(f'title = "x"\n[[questions]]\n{lines}\n')
    assert sentence in str(refused.value)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("anchors = [5000]", "anchors: Expected frequencies in Hz, of 3500, 7000."),
        ("anchors = [[]]", "anchors: Expected frequencies in Hz"),
        ('questions = ["x"]', "questions: expected tables [[questions]]."),
        (
            'preset = "linkability"',
            "preset: Expected one of ab, abx, ccr, dcr, emotion, mos, mushra, p835, transcription, own",
        ),
        ("[screening]\nsound = 1", "[screening] sound: expected true or false, found '1'."),
    ],
)
def test_field_that_is_not_as_expected_is_refused_with_what_was(line, sentence):
    with pytest.raises(ProblemsError) as refused:
        read_test_file(f'title = "x"\n{line}\n')
    assert sentence in str(refused.value)


@pytest.mark.parametrize(
    "line", ["original = " + "[" * 20000, "original = " + "9" * 5000, "[sessions]\nseed = 0x" + "f" * 5000]
)
def test_value_that_cannot_be_read_is_refused_with_a_sentence(line):
    with pytest.raises(ProblemsError, match="a number is too long, or lists are nested too deeply"):
        read_test_file(f'title = "x"\n{line}\n')


@pytest.mark.django_db
@pytest.mark.parametrize("amount", ["1000.01", "0.001", "nan", "true"])
def test_pay_is_an_amount_that_can_be_kept(amount):
    with pytest.raises(ProblemsError, match=r"pay_per_hour: (Give an amount from 0 to 1000|expected a number)"):
        read_test_file(f'title = "x"\n[sessions]\npay_per_hour = {amount}\n')


@pytest.mark.parametrize("languages", ['["<b>"]', "[1]"])
def test_languages_are_codes_as_on_the_page(languages):
    with pytest.raises(ProblemsError, match="languages: Expected a code of a language such as en or fr, found"):
        read_test_file(f'title = "x"\n[sessions]\nlanguages = {languages}\n')


@pytest.mark.django_db
def test_numbers_that_do_not_fit_what_is_asked_are_refused_all_at_once():
    numbers = '[sessions]\norders = "swap-first-two"\nplays_at_most = 2\ngold_trials = 2\nhalf_width = 5.0\n'
    with pytest.raises(ProblemsError) as refused:
        read_test_file(f'title = "x"\npreset = "mushra"\nagainst = "clean"\n[sound]\nrate_hz = 1\n{numbers}')
    found = {problem.partition(":")[0] for problem in refused.value.problems}
    names = {"orders", "plays_at_most", "gold_trials", "most_evaluators"}
    assert found == {"against", "[sound] rate_hz", *(f"[sessions] {name}" for name in names)}


@pytest.mark.django_db
def test_file_saved_with_a_byte_order_mark_is_read():
    assert read_test_file('\ufefftitle = "Codecs"').given["title"] == "Codecs"


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("file", "sentence"),
    [
        (
            'preset = "mushra"\noriginal = "clean"\nanchors = []\n[sessions]\ntrials_per_evaluator = 4\n',
            "No evaluator hears the same item twice: all conditions of 3 recordings give at most 3 trials for each "
            "evaluator, found 4.",
        ),
        (
            'preset = "emotion"\n[sessions]\nhalf_width = 0.2\nmost_evaluators = 99\n',
            "[sessions] half_width: The intervals of texts and labels are not measured while a test is open: leave the "
            "half width empty.",
        ),
    ],
    ids=["more trials than there are", "half width of labels"],
)
def test_what_cannot_be_is_refused_by_the_api_before_anything_is_made(file, sentence):
    wrong = post(make_organizer(), test=f'title = "x"\n{file}', archive=pack(recordings()))
    assert [one["detail"] for one in wrong.json()["errors"]] == [sentence]
    assert not Study.objects.exists()


@pytest.mark.django_db
def test_api_refuses_what_is_no_archive_as_the_page_does():
    file = SimpleUploadedFile("recordings.mp3", b"x")
    wrong = post(make_organizer(), test=FILE, archive=file)
    assert "Expected an archive (.zip, " in wrong.json()["errors"][0]["detail"]


@pytest.mark.django_db
def test_file_of_the_documentation_is_read():
    systems, recordings = Path("docs/listening.md").read_text().split("```toml\n")[1:]
    assert read(systems.split("```")[0])[0].systems == ("T08-1", "T25-1")
    chosen, fields = read(recordings.split("```")[0])
    assert (chosen.preset, chosen.anchors, fields["half_width"]) == ("mushra", (3500, 7000), 5.0)
    assert fields["screening"]["environment"] == "flag"


def test_file_that_is_no_toml_is_refused_with_its_place():
    with pytest.raises(ProblemsError, match=r"no TOML: .*line 1"):
        read_test_file("title: x")


@pytest.mark.django_db(transaction=True)
def test_command_makes_the_test_of_a_folder(monkeypatch, live_server, tmp_path, capsys):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("VP_SERVER", live_server.url)
    monkeypatch.setenv("VP_TOKEN", token_of(make_organizer()))
    for path, content in recordings().items():
        (tmp_path / "set" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "set" / path).write_bytes(content)
    (tmp_path / "test.toml").write_text(FILE.replace("\n[sound]", 'preset = "abx"\n\n[sound]'))
    monkeypatch.setattr("portal.client.study.time.sleep", lambda _: run_jobs())
    assert main(["study", "new", str(tmp_path / "test.toml"), str(tmp_path / "set")]) == 0
    assert "/studies/three-codecs/" in capsys.readouterr().out
    assert main(["study", "new", str(tmp_path / "test.toml"), str(tmp_path / "set")]) == 0
    again = capsys.readouterr()
    assert "made the test already" in again.err
    assert "/studies/three-codecs/" in again.out
    assert main(["study", "new", str(tmp_path / "test.toml"), str(tmp_path / "nothing")]) == 2
    study = Study.objects.get()
    assert (study.conditions.count(), study.screen, study.presentations.first().samples.count()) == (2, "triple", 3)


@pytest.mark.django_db
def test_form_is_made_again_of_what_was_sent_of_it():
    for part in Path("docs/listening.md").read_text().split("```toml\n")[1:]:
        form = read_test_file(part.split("```")[0])
        again = ChosenTestForm(json.loads(json.dumps(form.sent)))
        assert (again.is_valid(), again.choose()) == (True, form.choose())
