"""A listening test of one's own recordings: from an archive to published results, without edition, corpus and team."""

import io

import numpy as np
import pytest
import soundfile
from django.core.files.storage import default_storage
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from listening.app.models import Study
from listening.app.recordings.files import read_test_file, write_test_file
from listening.app.studies.designing import make_design
from listening.app.studies.forms import StudyForm
from listening.app.studies.services import change_study
from listening.app.studies.sizes import choose_numbers
from portal.deletion.files import list_files
from portal.deletion.services import find_problems, find_rows_of
from tests.listening.design.test_crossed import make_request
from tests.listening.own_factories import ITEMS, pack, recordings, run_jobs, send_recordings, sound
from tests.portal.factories import make_organizer

pytestmark = pytest.mark.django_db


def noise():
    """Return a file with white noise."""
    file = io.BytesIO()
    soundfile.write(file, 0.1 * np.random.default_rng(1).standard_normal(24000), 24000, format="WAV")
    return file.getvalue()


def errors(reply):
    assert reply.status_code == 422
    return reply.context["form"].errors["archive"]


def address(study, page):
    return reverse(f"studies:{page}", args=[study.name])


def test_stimuli_keep_rate_and_channels_of_the_recordings_unless_told(place):
    send_recordings(place.client, recordings(rate_hz=48000, channels=2))
    send_recordings(place.client, recordings(rate_hz=48000, channels=2), title="At 16 kHz", rate_hz=16000, channels=1)
    run_jobs()
    kept, changed = Study.objects.order_by("pk")
    assert [(one.stimuli["rate_hz"], one.stimuli["channels"]) for one in (kept, changed)] == [(48000, 2), (16000, 1)]
    assert kept.stimulus_files.exclude(file="").count() == 6


def test_file_of_a_test_repeats_it_with_other_recordings(place):
    send_recordings(place.client, recordings(), preset="ab", original="clean")
    first = Study.objects.get()
    file = SimpleUploadedFile("codecs.toml", place.client.get(address(first, "test-file")).content)
    sent = {"test": file, "archive": pack(recordings(items=("x", "y", "z"))), "title": "Codecs again"}
    assert place.client.post("/studies/new/file/", sent).status_code == 302
    second = Study.objects.latest("pk")
    assert (second.title, second.asked, second.contact) == ("Codecs again", first.asked, first.contact)
    assert sorted(second.items.values_list("name", flat=True)) == ["x", "y", "z"]


def test_table_of_items_names_speakers_sexes_and_texts(place):
    table = "item,speaker,sex,text\na,p225,f,Hello there\nb.wav,p226,male,\n"
    send_recordings(place.client, recordings() | {"items.csv": table})
    rows = Study.objects.get().items.order_by("name").values_list("name", "speaker", "sex", "transcript")
    assert list(rows) == [("a", "p225", "f", "Hello there"), ("b", "p226", "m", ""), ("c", "", "", "")]


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        ("item,text\na,été\n".encode("latin-1"), "items.csv: expected text in UTF-8, found other bytes."),
        (b"item,text\na,x\na.wav,y\n", "items.csv, line 3: expected each item once, found a again."),
        (b"item,text\na," + b"x" * 200_000, "items.csv: expected a table with commas between its columns: field"),
    ],
)
def test_table_of_items_that_cannot_be_read_is_refused_with_a_sentence(place, table, sentence):
    reply = send_recordings(place.client, recordings() | {"items.csv": table})
    assert sentence in reply.context["form"].errors["archive"][0]
    assert not Study.objects.exists()


def test_no_folder_is_called_as_results_call_another_one(place):
    files = recordings(conditions=("clean", "original"))
    sentence = "A folder is called “original”, and is not chosen as the original. Choose it, or give it another name."
    for chosen in ("clean", ""):
        reply = send_recordings(place.client, files, original=chosen)
        assert reply.context["form"].errors["archive"] == [sentence]
    assert send_recordings(place.client, files, original="original").status_code == 302


def test_everything_to_look_at_is_told_with_names_before_the_launch(place):
    files = recordings() | {
        "codec/d.wav": sound(300),
        "clean/b.wav": sound(300, peak=1.0),
        "clean/c.wav": sound(300, seconds=1.4, rate_hz=48000, channels=2),
        "notes.txt": b"read me",
    }
    send_recordings(place.client, files)
    study = Study.objects.get()
    told = "\n".join(study.recordings["warnings"])
    for sentence in (
        "clean lacks 1 of 4 items, which are left out: d.",
        "Full scale is reached by 1 recording, which may be clipped: clean/b.wav.",
        "Sampling rates differ: 16,000 Hz 6 times, 48,000 Hz 1 times. Not as most are: clean/c.wav.",
        "Numbers of channels differ: mono 6 times, stereo 1 times. Not as most are: clean/c.wav.",
        "The versions of 1 item differ in length by more than 0.5 s: c (0.8 s).",
        "The versions of 1 item differ in level by more than 6 dB: b (10.5 dB).",
        "notes.txt: expected CONDITION/ITEM.wav or .flac, or items.csv, found another file. It was left out.",
    ):
        assert sentence in told
    page = place.client.get(study.get_absolute_url()).content.decode()
    assert "clean/b.wav" in page
    assert study.trials_per_evaluator == 6  # of the items that both have


def test_everything_that_cannot_be_used_is_told_at_once(place):
    files = recordings() | {
        "clean/a.wav": sound(300)[:200],
        "clean/b.wav": sound(300, peak=0),
        "codec/c.flac": sound(300, form="FLAC"),
        "items.csv": "item,sex\nb,x\n",
    }
    told = "\n".join(errors(send_recordings(place.client, files)))
    assert "clean/a.wav: expected" in told
    assert "clean/b.wav: expected sound, found silence." in told
    assert "codec: c is there 2 times, as codec/c.flac, codec/c.wav." in told
    assert "items.csv, line 2: expected f, m or nothing as the sex, found x." in told
    assert not Study.objects.exists()


@pytest.mark.parametrize(
    ("files", "sentence"),
    [
        ({"a.wav": sound(300)}, "There is no recording CONDITION/ITEM.wav or .flac in the archive"),
        ({"x/a.wav": sound(300), "y/b.wav": sound(300)}, "No item is in all 2 conditions"),
        ({"../x/a.wav": sound(300)}, "../x/a.wav"),
    ],
)
def test_archive_of_another_layout_is_refused(place, files, sentence):
    assert sentence in "\n".join(errors(send_recordings(place.client, files)))


def test_condition_that_is_not_there_is_refused_with_those_that_are(place):
    told = errors(send_recordings(place.client, recordings(), original="cleaner", references="codec, anchor"))
    assert told == ["There is no condition anchor, cleaner in the archive; there are: clean, codec."]


def test_preset_that_plays_a_reference_asks_for_the_original(place):
    reply = send_recordings(place.client, recordings(), preset="dcr")
    assert reply.status_code == 422
    assert "Every trial plays a reference" in str(reply.context["form"].errors["original"])
    assert not Study.objects.exists()


def test_anchors_of_mushra_are_low_passed_originals_at_the_level_of_all_others(place):
    files = {f"{condition}/{item}.wav": noise() for condition in ("clean", "codec") for item in ITEMS}
    assert send_recordings(place.client, files, preset="mushra", original="clean", loudness="bs1770").status_code == 302
    run_jobs()
    study = Study.objects.get()
    anchors = study.conditions.filter(kind="anchor")
    assert list(anchors.values_list("code", "low_pass_hz")) == [("anchor-3.5k", 3500), ("anchor-7k", 7000)]
    levels = {one.condition.code: one.facts["level_dbov"] for one in study.stimulus_files.select_related("condition")}
    assert max(levels.values()) - min(levels.values()) < 0.1
    for anchor in anchors:
        with default_storage.open(anchor.stimuli.first().file) as file:
            samples, rate_hz = soundfile.read(file)
        power = np.abs(np.fft.rfft(samples)) ** 2
        hertz = np.fft.rfftfreq(len(samples), 1 / rate_hz)
        passed, stopped = power[(hertz > 500) & (hertz < 3000)], power[hertz > anchor.low_pass_hz * 9 / 7]
        assert 10 * np.log10(passed.mean() / stopped.mean()) > 50


def test_usual_anchor_that_the_sampling_rate_cannot_have_is_left_out_with_a_warning(place):
    send_recordings(place.client, recordings(rate_hz=16000), preset="mushra", original="clean")
    study = Study.objects.get()
    assert sorted(study.conditions.values_list("code", flat=True)) == ["", "anchor-3.5k", "codec"]
    assert any("anchor-7k cannot be made" in sentence for sentence in study.recordings["warnings"])


def test_chosen_anchor_that_the_sampling_rate_cannot_have_is_refused(place):
    told = errors(
        send_recordings(place.client, recordings(rate_hz=16000), preset="dcr", original="clean", anchors="3500 7000")
    )
    assert told == [
        "anchor-7k cannot be made: the original and the stimuli have 16,000 Hz, expected at least 18,000 Hz. "
        "Choose other anchors, or none."
    ]
    assert not Study.objects.exists()


def test_sampling_rate_stays_one_that_anchors_can_have(place):
    send_recordings(place.client, recordings(rate_hz=24000), preset="mushra", original="clean")
    form = StudyForm({"rate_hz": 16000}, study=Study.objects.get())
    assert form.errors["rate_hz"] == ["anchor-7k needs at least 18,000 Hz. Choose a higher sampling rate."]


def test_conditions_that_cannot_be_heard_at_once_are_refused_before_anything_is_made(place):
    files = recordings(conditions=[f"c{number}" for number in range(11)], items=("a",), rate_hz=24000)
    told = errors(send_recordings(place.client, files, preset="mushra", original="c0"))
    assert told == ["All conditions are heard at once: expected at most 12, found 13. Leave some out."]
    assert not Study.objects.exists()


def test_one_condition_alone_is_not_compared(place):
    told = errors(send_recordings(place.client, recordings(conditions=("codec",)), preset="ab"))
    assert told == ["Conditions are compared with each other: expected at least 2, found 1."]


@pytest.mark.parametrize(
    ("screen", "conditions", "items", "numbers"),
    [
        ("single", 3, 20, (24, 60)),
        ("pair", 12, 10, (132, 60)),
        ("triple", 2, 100, (24, 60)),
        ("many", 4, 40, (24, 20)),
    ],
)
def test_evaluators_and_trials_follow_from_what_a_trial_plays(screen, conditions, items, numbers):
    assert choose_numbers(make_request(0, 0, conditions, items, screen=screen)) == numbers


def test_each_condition_is_compared_with_one_alone_until_the_organizer_chooses_otherwise(place):
    files = recordings(conditions=("clean", "codec", "coder"))
    told = errors(send_recordings(place.client, files, preset="ccr", original="clean", against="cleaner"))
    assert "There is no condition cleaner in the archive; there are: clean, codec, coder." in " ".join(told)
    send_recordings(place.client, files, preset="ccr", original="clean", against="clean")
    study = Study.objects.get()
    assert (study.against, study.trials_per_evaluator, study.certificate["passes"]) == ("clean", 6, True)
    pairs = [set(one.samples.values_list("stimulus__condition__code", flat=True)) for one in study.presentations.all()]
    assert all("" in pair and len(pair) == 2 for pair in pairs)
    assert read_test_file(write_test_file(study)).given["against"] == "clean"
    run_jobs()
    form = place.client.get(address(study, "edit")).context["form"]
    assert [name for name, _ in form.fields["against"].choices] == ["", "clean", "codec", "coder"]
    change_study(study=Study.objects.get(), by=place.organizer, against="")
    make_design(Study.objects.get(), place.organizer)
    assert Study.objects.get().presentations.filter(key__contains="codec/coder").exists()


def test_folder_around_the_recordings_does_not_count(place):
    send_recordings(place.client, {f"my test/{path}": content for path, content in recordings().items()})
    assert sorted(Study.objects.get().conditions.values_list("code", flat=True)) == ["clean", "codec"]


def test_own_tests_and_their_jobs_are_listed_for_who_made_them_alone(place):
    send_recordings(place.client, recordings())
    other = Client()
    other.force_login(make_organizer())
    for page in ("/", "/studies/", "/jobs/"):
        assert ("Codecs" in place.client.get(page).content.decode(), page) == (True, page)
        assert ("Codecs" in other.get(page).content.decode(), page) == (False, page)


def test_test_is_deleted_with_its_recordings(place):
    send_recordings(place.client, recordings())
    study = Study.objects.get()
    assert find_problems(study) == []
    files = set(list_files(find_rows_of(study)))
    assert files == set(study.stimulus_files.values_list("upload", flat=True))
    assert all(default_storage.exists(key) for key in files)


def test_recording_too_short_for_its_loudness_is_refused_before_the_design(place):
    files = recordings() | {"clean/a.wav": sound(300, seconds=0.2)}
    told = errors(send_recordings(place.client, files, loudness="bs1770"))
    assert "clean/a: expected at least 0.4 s of sound. Leave them out, or keep the levels." in told
    assert not Study.objects.exists()
