"""What the page of an anonymised utterance says about one instant: for whom, of which files, and what it refuses."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import threading
import time
from contextlib import contextmanager
from xml.etree import ElementTree

import numpy as np
import pytest

from anonymization.app.models import AnonymizationRun
from anonymization.app.voice_assignment import find_pseudo_speaker
from anonymization.explanation.drawing import request_drawing
from anonymization.explanation.explain import explain
from anonymization.methods.registry import get_method
from evaluation.app.models import UtteranceMeasure
from evaluation.figures.explanation import draw_explanation, explanation_curves, explanation_numbers
from portal.core.drawing import DrawingError, DrawingProcess
from portal.core.storage import keep_audio, load_audio, store_bytes
from portal.submissions.models import SubmittedFile
from portal.systems.utterances import pages
from tests.pages import read_page
from tests.portal.factories import (
    add_files,
    make_corpus,
    make_edition,
    make_operator,
    make_organizer,
    make_submission,
    make_system,
    make_team,
    make_team_system,
    make_user,
    store_tone,
    tone,
)
from tests.portal.measured import anonymized, measured

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def patient_drawing_process():
    explanation_process = DrawingProcess("anonymization.explanation.drawing", draws_within_s=600, waits_s=600)
    yield explanation_process
    explanation_process.close()


@pytest.fixture(autouse=True)
def explanation_process(patient_drawing_process, monkeypatch):
    """Of these tests alone: on a busy machine, or where another test left pictures to draw, it refuses none."""
    monkeypatch.setattr(pages, "explanation_process", patient_drawing_process)
    return patient_drawing_process


@pytest.fixture
def system():
    """Of the portal's own B2, each utterance 0.6 s long."""
    system = make_system(make_corpus("tones"))
    for data_set in system.corpus.data_sets.all():
        anonymized(system, data_set)
    return system


@pytest.fixture
def file(system):
    return file_of(system)


@pytest.fixture
def organizer(client):
    client.force_login(make_organizer())
    return client


@pytest.fixture
def team_system():
    """A submission of a team, made elsewhere, with the audio of every utterance."""
    system = make_team_system(make_team(make_edition(make_corpus("tones"))))
    add_files(make_submission(system), store_tone(250))
    return system


def numbers_of(shown):
    """The table of numbers beneath the figure, as texts."""
    return [[cell.text for cell in row.cells] for row in shown["figure"]["numbers"].rows]


def file_of(system):
    return SubmittedFile.objects.select_related("utterance").filter(submission__system=system).order_by("pk").first()


def page_of(file):
    return f"/systems/{file.submission.system.name}/files/{file.pk}/"


def picture_of(file, query=""):
    return f"{page_of(file)}explanation.svg{query}"


def wait_until(holds):
    for _ in range(6000):
        if holds():
            return
        time.sleep(0.01)
    pytest.fail("what was waited for for a minute did not come")


def explained(response):
    return response.context["explanation"]


# Who may look --------------------------------------------------------------------------------------


def test_picture_is_for_organizers_of_a_baseline_and_for_nobody_else(client, file):
    assert client.get(picture_of(file)).headers["Location"].startswith("/log-in/?next=")
    for make in (make_user, make_operator):
        client.force_login(make())
        assert client.get(picture_of(file)).status_code == 404
    client.force_login(make_organizer())
    response = client.get(picture_of(file))
    assert (response.status_code, response["Content-Type"]) == (200, "image/svg+xml")


def test_picture_of_a_team_is_for_the_team_and_its_organizers(client, team_system):
    file = file_of(team_system)
    for user, status in (
        (team_system.team.memberships.get().user, 200),
        (team_system.edition.organizers.get(), 200),
        (make_team(team_system.edition).memberships.get().user, 404),
        (make_organizer(), 404),
    ):
        client.force_login(user)
        assert client.get(picture_of(file)).status_code == status
        assert client.get(page_of(file)).status_code == status


def test_picture_of_another_system_is_not_found_under_this_one(organizer, system):
    other = file_of(make_system(system.corpus, name="other"))
    assert organizer.get(f"/systems/b2-tones/files/{other.pk}/explanation.svg").status_code == 404


def test_picture_is_kept_by_no_cache_but_the_browsers_and_runs_nothing(organizer, file):
    response = organizer.get(picture_of(file))
    assert response["Cache-Control"].startswith("private, max-age=")
    assert response["Content-Security-Policy"].startswith("default-src 'none'")
    tags = {element.tag.rpartition("}")[2] for element in ElementTree.fromstring(response.content).iter()}
    assert not tags & {"script", "style", "image", "foreignObject"}


@pytest.mark.parametrize("method", ["mcadams-2022", "pitch-shift-psola", "world-formant-f0"])
def test_others_get_what_two_recordings_show_and_nothing_of_the_voice(client, method):
    """All that a team gets is what anybody draws from the two recordings, which it has."""
    edition = make_edition(make_corpus("tones"))
    system = make_team_system(make_team(edition))
    data_set = edition.corpus.data_sets.get(name="tones_trials_f")
    make_submission(system).files.create(
        data_set=data_set, utterance=data_set.utterances.first(), audio=store_tone(250), samples=9600, rate_hz=16000
    )
    anonymized(system, data_set, method=method)
    file = file_of(system)
    samples, rate = load_audio(file.utterance.audio)
    output, _ = load_audio(file.audio)
    seen = explain(None, samples, output, rate, at_s=0.3)
    client.force_login(edition.organizers.get())
    of_organizer = client.get(picture_of(file, "?at=0.3"))
    client.force_login(system.team.memberships.get().user)
    response = client.get(picture_of(file, "?at=0.3"))
    assert response.content == draw_explanation(seen) != of_organizer.content
    # Nor does a browser that both have used show the one's picture to the other.
    assert "Cookie" in of_organizer["Vary"]
    for kind, numbers in (("csv", explanation_numbers), ("curves", explanation_curves)):
        assert numbers(seen).csv().splitlines() == (
            client.get(picture_of(file, f"?at=0.3&format={kind}")).content.decode().splitlines()
        )
    figure = explained(client.get(f"{page_of(file)}?at=0.3"))["figure"]
    assert (figure["words"], figure["caption"]) == (seen.sentences[0], pages.READING)
    assert figure["alt"].endswith(seen.sentences[0])


def test_voice_is_told_to_organizers_alone(client):
    """A baseline in an edition: its team hears it and sees what changed, but not with which α."""
    edition = make_edition(make_corpus("tones"))
    system = make_team_system(make_team(edition))
    submission = make_submission(system)
    data_set = edition.corpus.data_sets.get(name="tones_trials_f")
    utterance = data_set.utterances.first()
    submission.files.create(data_set=data_set, utterance=utterance, audio=store_tone(250), samples=9600, rate_hz=16000)
    anonymized(system, data_set)
    file = file_of(system)
    for user, is_told in ((edition.organizers.get(), True), (system.team.memberships.get().user, False)):
        client.force_login(user)
        response = client.get(page_of(file))
        assert explained(response)["is_known"] is is_told
        assert ("McAdams coefficient α =" in read_page(response)) is is_told
        assert ("φ becomes φ^" in read_page(client.get(picture_of(file)))) is is_told
        assert (b"pole 1, angle" in client.get(picture_of(file, "?format=csv")).content) is is_told


# What is shown -------------------------------------------------------------------------------------


def test_page_shows_the_best_instant_with_its_numbers_and_words(organizer, file):
    response = organizer.get(page_of(file))
    shown, text = explained(response), read_page(response)
    run = AnonymizationRun.objects.get(submission=file.submission, data_set=file.data_set)
    samples, rate = load_audio(file.utterance.audio)
    output, _ = load_audio(file.audio)
    expected = explain(get_method(run.method), samples, output, rate, find_pseudo_speaker(run, file.utterance))
    assert (shown["asked"], shown["latest"], shown["error"]) == (f"{expected.at_s:.2f}", "0.60", "")
    for sentence in expected.sentences:
        assert sentence in text
        assert sentence in shown["figure"]["alt"]
    rows = {row[0]: row[1:] for row in numbers_of(shown)}
    assert rows["F0, Hz"] == [f"{expected.original.f0_hz:.0f}", f"{expected.anonymised.f0_hz:.0f}"]
    to_hz = 16000 / (2 * np.pi)
    first = [f"{angles[0] * to_hz:.0f}" for angles in (expected.poles.angles_before, expected.poles.angles_after)]
    assert rows[f"pole 1, angle, Hz (radius {expected.poles.radii[0]:.3f})"] == first
    assert "What the method did" in text
    assert "<details>" in text


def test_picture_is_that_of_the_instant_and_of_the_theme(organizer, file):
    run = AnonymizationRun.objects.get(submission=file.submission, data_set=file.data_set)
    samples, rate = load_audio(file.utterance.audio)
    output, _ = load_audio(file.audio)
    voice = find_pseudo_speaker(run, file.utterance)
    for at_s, theme, shape in ((0.2, "light", ""), (0.41, "dark", "narrow")):
        expected = explain(get_method(run.method), samples, output, rate, voice, run.options, at_s)
        response = organizer.get(picture_of(file, f"?at={at_s}&theme={theme}&shape={shape}"))
        assert response.content == draw_explanation(expected, theme, narrow=shape == "narrow")


def test_addresses_of_the_page_lead_to_pictures_and_tables_of_its_instant(organizer, file):
    figure = explained(organizer.get(f"{page_of(file)}?at=0.33"))["figure"]
    addresses = [figure["image"], figure["dark"], figure["narrow"]["image"], figure["narrow"]["dark"]]
    pictures = [organizer.get(address).content for address in addresses]
    assert len(set(pictures)) == 4
    assert all(b"Original and anonymised voice at 0.33 s" in picture for picture in pictures)
    starts = {
        "SVG": b"<?xml",
        "PNG": b"\x89PNG",
        "PDF": b"%PDF",
        "numbers (CSV)": b"quantity,",
        "curves (CSV)": b"freq",
    }
    for download in figure["downloads"]:
        response = organizer.get(download["url"])
        assert response.content.startswith(starts.pop(download["label"]))
        assert f"b2-tones-{file.utterance.name}-0.33s" in response["Content-Disposition"]
    assert starts == {}


def test_numbers_as_csv_are_those_of_the_page(organizer, file):
    shown = numbers_of(explained(organizer.get(page_of(file))))
    rows = list(csv.reader(io.StringIO(organizer.get(picture_of(file, "?format=csv")).content.decode())))[1:]
    names = [f"{quantity}, {unit}" for quantity, unit, *_ in rows if unit]
    assert [row[0].partition(" (")[0] for row in shown] == names
    assert float(rows[1][2]) == pytest.approx(float(shown[1][1].replace("−", "-")), abs=0.05)


def test_f0_of_the_picture_is_the_measured_one(organizer, system, file):
    measured(system, file.data_set)
    measure = UtteranceMeasure.objects.get(file=file)
    for side, hertz in (("original", 111.0), ("anonymised", 0.0)):
        packed = io.BytesIO()
        np.savez(packed, hz=np.full(60, hertz), start_s=0.005, step_s=0.01, estimator="test")
        setattr(measure, f"f0_{side}", store_bytes(packed.getvalue(), ".npz"))
    measure.save()
    assert numbers_of(explained(organizer.get(f"{page_of(file)}?at=0.3")))[0] == ["F0, Hz", "111", "none"]
    measure.f0_original = "lost.npz"
    measure.save()
    assert numbers_of(explained(organizer.get(f"{page_of(file)}?at=0.3")))[0][1] != "111"


def test_file_made_elsewhere_gets_the_general_picture(client, team_system):
    client.force_login(team_system.team.memberships.get().user)
    file = file_of(team_system)
    response = client.get(page_of(file))
    assert not AnonymizationRun.objects.exists()
    assert explained(response)["is_known"] is False
    assert "What changed" in read_page(response)
    names = [row[0] for row in numbers_of(explained(response))]
    assert names[0] == "F0, Hz"
    assert not [name for name in names if name.startswith("pole")]
    assert b"Waveforms" in client.get(picture_of(file)).content


def test_picture_of_a_method_by_pitch_marks_has_them(organizer, file):
    method = get_method("pitch-shift-psola")
    AnonymizationRun.objects.update(method=method.name, voices={})
    run = AnonymizationRun.objects.get(submission=file.submission, data_set=file.data_set)
    samples, rate = load_audio(file.utterance.audio)
    voice = find_pseudo_speaker(run, file.utterance)
    output = method.anonymize(samples, rate, voice)
    SubmittedFile.objects.filter(pk=file.pk).update(audio=keep_audio(output, rate))
    expected = explain(method, samples, output, rate, voice, at_s=0.3)
    assert expected.marks.before_s.size >= 3
    response = organizer.get(picture_of(file, "?at=0.3"))
    assert b"Waveforms and pitch marks" in response.content
    drawn = ElementTree.fromstring(response.content)
    alike = ElementTree.fromstring(draw_explanation(expected))
    paths = [[each.get("d") for each in root.iter("{http://www.w3.org/2000/svg}path")] for root in (drawn, alike)]
    assert paths[0] == paths[1]


def test_method_that_is_gone_leaves_the_general_picture(organizer, file):
    AnonymizationRun.objects.update(method="a-plug-in-of-old")
    assert explained(organizer.get(page_of(file)))["is_known"] is False
    assert organizer.get(picture_of(file)).status_code == 200


# What is refused -----------------------------------------------------------------------------------


def test_unknown_instant_is_refused_in_a_sentence(organizer, file):
    for asked in ("-0.1", "0.61", "nan", "inf", "1e999", "now", "0,2", "٣", "<b>", "9" * 500):
        response = organizer.get(picture_of(file), {"at": asked})
        assert response.status_code == 422, asked
        assert response["Content-Type"].startswith("text/plain"), asked
        words = response.content.decode()
        assert words.startswith(
            "An instant is a number of seconds from 0 to 0.60, where both recordings are; found “"
        ), asked
        assert len(words) < 120, asked
        page = organizer.get(page_of(file), {"at": asked})
        assert page.status_code == 200, asked
        assert explained(page)["error"] == words
        assert "<b>”" not in read_page(page), asked
        assert "Original and anonymised voice at" in read_page(page), asked


def test_instants_of_both_recordings_are_shown(organizer, file):
    for asked in ("0", "0.0", "0.004", "0.6", ".3"):
        assert organizer.get(picture_of(file), {"at": asked}).status_code == 200, asked


def test_unknown_kind_of_picture_is_not_found(organizer, file):
    for query in ("?theme=blue", "?format=exe", "?shape=round", "?format=../svg"):
        assert organizer.get(picture_of(file, query)).status_code == 404, query


def test_audio_that_cannot_be_read_is_no_picture_and_a_sentence_on_the_page(organizer, file):
    other_rate = np.zeros(4800, np.int16) + tone(200)[:4800]
    cases = {
        store_bytes(b"no audio", ".flac"): "expected a WAV or FLAC file",
        "content/00/gone.flac": "expected the stored recording, found none.",
        keep_audio(other_rate, 8000): "the original has 16000 Hz, the anonymised one 8000 Hz.",
    }
    for key, words in cases.items():
        SubmittedFile.objects.filter(pk=file.pk).update(audio=key)
        assert organizer.get(picture_of(file)).status_code == 404
        page = organizer.get(page_of(file))
        assert page.status_code == 200
        assert words in read_page(page)
        assert "explanation.svg" not in read_page(page)


def test_recordings_of_unlike_length_are_compared_where_both_are(organizer, file):
    SubmittedFile.objects.filter(pk=file.pk).update(audio=keep_audio(tone(200)[:4567], 16000))
    assert explained(organizer.get(page_of(file)))["latest"] == "0.28"
    assert organizer.get(picture_of(file, "?at=0.28")).status_code == 200
    assert organizer.get(picture_of(file, "?at=0.29")).status_code == 422


def test_silence_and_one_sample_have_a_picture_too(organizer, file):
    for samples, words in (
        (np.zeros(9600, np.int16), "the anonymised recording is silent"),
        (tone(200)[:1], "At 0.00 s"),
    ):
        SubmittedFile.objects.filter(pk=file.pk).update(audio=keep_audio(samples, 16000))
        assert words in read_page(organizer.get(page_of(file)))
        assert organizer.get(picture_of(file)).status_code == 200


# The process that draws ----------------------------------------------------------------------------


def test_one_process_draws_picture_after_picture(explanation_process):
    sound = tone(150)
    request_line = request_drawing(explain(None, sound, sound, 16000), theme="light", image_format="svg")
    first = explanation_process.draw(request_line)
    process = explanation_process._process.pid
    assert first.startswith(b"<?xml")
    assert explanation_process.draw(request_line) == first
    assert explanation_process._process.pid == process


# Those that follow start a process again and again: one without plotting library.

PICTURE, OTHER = (json.dumps({"picture": f"<?xml {name}"}).encode() + b"\n" for name in ("light", "dark"))


@pytest.fixture(scope="module")
def echo():
    explanation_process = DrawingProcess("tests.portal.systems.echo", draws_within_s=600, waits_s=600)
    yield explanation_process
    explanation_process.close()


def test_process_that_died_is_replaced(echo):
    first = echo.draw(PICTURE)
    process = echo._process
    process.kill()
    process.wait()
    assert echo.draw(PICTURE) == first
    assert echo._process.pid != process.pid


def test_line_that_cannot_be_drawn_is_told_and_the_next_is_drawn(echo, capfd):
    with pytest.raises(DrawingError, match="The drawing process ended without a picture"):
        echo.draw(b"{}\n")
    assert "KeyError" in capfd.readouterr().err
    assert echo.draw(PICTURE).startswith(b"<?xml")


@contextmanager
def stopped(echo):
    """Its process, started and as slow as can be: it does nothing until it is continued."""
    echo.draw(PICTURE)
    process = echo._process
    process.send_signal(signal.SIGSTOP)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGCONT)


def test_process_that_draws_for_too_long_is_ended_and_none_is_asked_again(echo, monkeypatch):
    with stopped(echo) as process, monkeypatch.context() as hasty:
        hasty.setattr(echo, "draws_within_s", 0.1)
        # A second process would end without a picture, too, and be told so.
        with pytest.raises(DrawingError, match=r"^The picture was not drawn within 0\.1 s; ask for it again"):
            echo.draw(PICTURE)
    assert process.returncode == -signal.SIGKILL
    assert echo._process is None
    assert echo.draw(PICTURE).startswith(b"<?xml")


def test_nobody_waits_long_for_a_turn_and_few_wait_at_all(echo, monkeypatch):
    drawn = []
    turns = [threading.Thread(target=lambda: drawn.append(echo.draw(PICTURE))) for _ in range(3)]
    with stopped(echo):
        turns[0].start()
        wait_until(echo._turn.locked)
        with monkeypatch.context() as hasty:
            hasty.setattr(echo, "waits_s", 0.1)
            with pytest.raises(DrawingError, match="Other pictures are drawn first"):
                echo.draw(PICTURE)
        for turn in turns[1:]:
            turn.start()
        wait_until(lambda: echo._places._value == 0)
        with pytest.raises(DrawingError, match="Other pictures are drawn first"):
            echo.draw(PICTURE)  # which would wait for ten minutes
    for turn in turns:
        turn.join()
    assert drawn == [echo.draw(PICTURE)] * 3


def test_answer_that_nobody_waited_for_is_no_later_ones(echo):
    class InterruptError(Exception):
        pass

    def interrupt(*_):
        raise InterruptError

    expected = echo.draw(OTHER)
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with stopped(echo):
            signal.setitimer(signal.ITIMER_REAL, 0.2)
            with pytest.raises(InterruptError):
                echo.draw(PICTURE)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert echo._process is None
    assert echo.draw(OTHER) == expected


def test_picture_that_cannot_be_drawn_now_is_refused_in_a_sentence(organizer, file, monkeypatch):
    hasty = DrawingProcess("anonymization.explanation.drawing", draws_within_s=0)
    monkeypatch.setattr(pages, "explanation_process", hasty)
    response = organizer.get(picture_of(file))
    assert (response.status_code, response["Retry-After"]) == (503, "10")
    assert response["Content-Type"].startswith("text/plain")
    assert response.content == b"The picture was not drawn within 0 s; ask for it again in a minute."
    assert "no-store" in response["Cache-Control"]
    assert organizer.get(page_of(file)).status_code == 200
    assert organizer.get(picture_of(file, "?format=csv")).status_code == 200


def test_child_of_a_fork_draws_by_a_process_of_its_own(echo):
    expected = echo.draw(PICTURE)
    parents = echo._process.pid
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        drawn = echo.draw(PICTURE)
        os.write(writer, b"%d %d" % (drawn == expected, echo._process.pid != parents))
        echo.close()
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reader, 10) == b"1 1"
    assert echo.draw(PICTURE) == expected
    assert echo._process.pid == parents
