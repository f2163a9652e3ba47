"""Systems and their results in a browser, on speech that B2 really anonymised and the worker really measured."""

import csv
import io
import re
from pathlib import Path

import numpy as np
import pytest
import soundfile
from django.core.files.storage import default_storage
from playwright.sync_api import expect

from evaluation.app.audio_measures.services import draw_figures
from evaluation.app.models import UtteranceMeasure
from portal.accounts.models import User
from portal.challenges.models import Corpus
from portal.core.storage import store_bytes
from portal.jobs.models import Job, JobState
from portal.jobs.runner import execute
from portal.submissions.models import Submission, SubmittedFile
from portal.systems.services import start_baseline
from tests import browsing
from tests.portal.factories import make_corpus, make_edition, make_system
from tests.portal.measured_runs import make_anonymization_run, make_measured_run

DEMO = Path(__file__).resolve().parents[3] / "demo" / "corpus"
RATE_HZ = 16_000
# Keeps what the player makes of Web Audio, to ask it afterwards what can be heard.
RECORDER = """
  window.heard = { gains: [], voices: [] };
  window.GainNode = class extends GainNode { constructor(...given) { super(...given); heard.gains.push(this); } };
  window.AudioBufferSourceNode = class extends AudioBufferSourceNode {
    constructor(...given) { super(...given); heard.voices.push(this); }
    start(when, offset) { this.offset = offset; super.start(when, offset); }
  };
"""

FADED_TO = "heard.gains[{}].gain.value > 0.996 && heard.gains[{}].gain.value < 0.004"


def store_speech():
    """Two utterances of a woman and two of a man in trial sets, anonymised by B2 and measured."""
    corpus = Corpus.objects.create(name="voices", layout="manifest", source="demo", is_synthetic=True, is_shared=True)
    with (DEMO / "utterances.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    for gender in "fm":
        data_set = corpus.data_sets.create(name=f"voices_trials_{gender}", role="trial")
        chosen = [row for row in rows if row["gender"].lower().startswith(gender)][:2]
        speaker = corpus.speakers.create(name=chosen[0]["speaker"], gender=gender)
        for row in chosen:
            data = (DEMO / row["path"]).read_bytes()
            info = soundfile.info(io.BytesIO(data))
            utterance = corpus.utterances.create(
                speaker=speaker,
                name=row["utterance_id"],
                transcript=row["transcript"],
                duration_s=info.duration,
                audio=store_bytes(data, ".flac"),
                samples=info.frames,
                rate_hz=info.samplerate,
            )
            data_set.utterances.add(utterance)
    return corpus


def anonymized_speech():
    """The speech as B2 gives it, by real jobs, with its measures and figures."""
    speech = store_speech()
    system = start_baseline(
        name="b2-voices", corpus=speech, data_sets=speech.data_sets.all(), method="mcadams-2022", seed=2022
    )
    for job in Job.objects.order_by("created_at"):
        assert execute(job.pk).state == JobState.SUCCEEDED
    return system


@pytest.fixture
def speech(once):
    return once(store_speech)


@pytest.fixture
def system(once, figures_of_pages, few_resamples):
    return once(anonymized_speech)


@pytest.fixture
def file(system):
    return SubmittedFile.objects.filter(data_set__name="voices_trials_f").select_related("utterance").first()


@pytest.fixture
def player(file, organizer_page):
    """The page that compares an utterance, its player ready."""
    organizer_page.add_init_script(RECORDER)
    organizer_page.goto(f"/systems/b2-voices/files/{file.pk}/")
    organizer_page.wait_for_selector(".player-controls")
    return organizer_page


def stored(key):
    with default_storage.open(key) as recording:
        samples, rate = soundfile.read(io.BytesIO(recording.read()), dtype="float64")
    assert rate == RATE_HZ
    return samples


def level(samples):
    return 10 * np.log10(np.mean(np.square(samples)))


def wait_until(page, condition):
    """Ask until it holds; the pages forbid what Playwright's own waiting would need."""
    browsing.wait_until(lambda: page.evaluate(f"() => {condition}"), condition)


def state_of(page):
    return page.evaluate(
        """() => ({
          at: performance.now() / 1000,
          position: Number(document.querySelector(".player-controls input").value),
          playing: document.querySelector(".player").hasAttribute("data-playing"),
          pressed: [...document.querySelectorAll(".player-switch button")].map((each) => each.ariaPressed),
          gains: heard.gains.map((each) => Math.round(each.gain.value * 100) / 100),
          voices: heard.voices.length,
        })"""
    )


# Every page at both widths -------------------------------------------------------------------------


def test_pages_of_a_system_pass_the_check(system, file, organizer_page, check_page):
    for name, address in {
        "systems-list": "/systems/",
        "systems-new": "/systems/new/voices/",
        "systems-detail": "/systems/b2-voices/",
        "systems-data-set": "/systems/b2-voices/sets/voices_trials_f/?order=louder",
        "systems-compare": f"/systems/b2-voices/files/{file.pk}/",
        "systems-run": "/systems/b2-voices/runs/voices_trials_f/",
    }.items():
        organizer_page.goto(address)
        expect(organizer_page.locator("main")).to_contain_text("synthetic speech")
        check_page(organizer_page, name)


def test_options_are_those_of_the_chosen_method_and_its_pace_is_told(system, organizer_page, check_page):
    make_edition(system.corpus, organizers=[User.objects.get(is_organizer=True)], title="A challenge of voices")
    organizer_page.goto("/systems/new/voices/")
    shown = organizer_page.locator(".offer-options:visible")
    expect(shown).to_have_attribute("aria-label", "Options of B2: McAdams coefficient (2022)")
    expect(organizer_page.locator("output")).to_contain_text("; the work takes ")
    organizer_page.get_by_text(re.compile("more methods?$")).click()
    organizer_page.locator("label.choice", has_text="pitch-shift-psola").click()
    expect(shown).to_have_count(1)
    expect(shown).to_have_attribute("aria-label", "Options of Pitch shift, TD-PSOLA (as team T32 of 2022)")
    expect(organizer_page.locator("output")).to_have_text(re.compile("of speech[.]$"))  # it was never run here
    organizer_page.locator("label.choice", has_text="A challenge of voices").click()
    check_page(organizer_page, "systems-new-options")
    organizer_page.get_by_text("Voices, name and seed").click()
    organizer_page.fill("input[name=label]", "-")
    organizer_page.get_by_role("button", name="Run an anonymiser").click()
    expect(organizer_page.locator(".error-summary")).to_contain_text("A baseline needs a title")
    expect(shown).to_have_attribute("aria-label", "Options of Pitch shift, TD-PSOLA (as team T32 of 2022)")
    organizer_page.fill("input[name=label]", "T32")
    organizer_page.get_by_role("button", name="Run an anonymiser").click()
    organizer_page.wait_for_selector("h1:has-text('T32')")
    expect(organizer_page.locator("#progress")).to_contain_text("0 of 2 jobs have ended")
    submission = Submission.objects.get(system__label="T32")
    organizer_page.goto(submission.get_absolute_url())
    expect(organizer_page.locator("#progress")).to_contain_text("Anonymisation")
    check_page(organizer_page, "submissions-made-here")


def test_data_sets_are_ticked_by_role_and_their_extent_is_told(system, organizer_page):
    voices = system.corpus
    pool = voices.data_sets.create(name="voices_train", role="training")
    pool.utterances.set(voices.utterances.all())
    organizer_page.goto("/systems/new/voices/")
    told = organizer_page.locator("output")

    def ticked():
        boxes = organizer_page.locator("input[name=data_sets]:checked").all()
        return [box.evaluate("(each) => each.closest('label').innerText.split('\\n')[0]") for box in boxes]

    assert ticked() == ["voices_trials_f", "voices_trials_m", "voices_train"]
    expect(told).to_have_text(re.compile("^3 data sets, .*; the work takes "))
    organizer_page.get_by_role("button", name="Trial sets only").click()
    assert ticked() == ["voices_trials_f", "voices_trials_m"]
    expect(told).to_have_text(re.compile("^2 data sets, "))
    organizer_page.locator("label.choice", has_text="voices_trials_f").click()
    expect(told).to_have_text(re.compile("^1 data set, "))
    organizer_page.get_by_role("button", name="None").click()
    expect(told).to_have_text("No data set chosen.")
    assert ticked() == []
    organizer_page.get_by_role("button", name="All").click()
    expect(told).to_have_text(re.compile("^3 data sets, "))


def test_unfinished_system_passes_the_check_and_renews_itself(organizer_page, check_page):
    system = make_system(make_corpus("tones", speakers=2, utterances=4))
    first, second = (system.corpus.data_sets.get(name=f"tones_trials_{gender}") for gender in "fm")
    make_anonymization_run(system, first)
    draw_figures(make_measured_run(system, first, rho=(0.2, 0.7), faults=["clipped", "level-changed"]))
    running = make_anonymization_run(system, second, state="running").job
    Job.objects.filter(pk=running.pk).update(stage="Anonymising", done=3, total=8)
    run = make_measured_run(system, second, rho=(0.6543,), state="waiting")
    draw_figures(run)
    failed = make_anonymization_run(system, system.corpus.data_sets.get(name="tones_enrolls"), state="failed").job
    Job.objects.filter(pk=failed.pk).update(failure="The disk is full.", failure_remedy="Make room.")
    organizer_page.clock.install()
    organizer_page.goto("/systems/b2-tones/")
    expect(organizer_page.locator("#progress")).to_contain_text("3 of 5 jobs have ended")
    assert "0.6543" not in organizer_page.content()
    check_page(organizer_page, "systems-unfinished")
    Job.objects.filter(pk=running.pk).update(state=JobState.SUCCEEDED)
    four = organizer_page.locator("#progress").get_by_text("4 of 5 jobs").first
    browsing.leap_until(organizer_page, four.is_visible)
    Job.objects.filter(pk=run.job_id).update(state=JobState.SUCCEEDED)
    browsing.leap_until(organizer_page, organizer_page.get_by_text("0.6543").first.is_visible)
    expect(organizer_page.locator("#progress")).to_have_count(0)
    expect(organizer_page.locator("main")).to_contain_text("The disk is full.")
    check_page(organizer_page, "systems-failed")


def test_figures_follow_the_colours_of_the_page(system, organizer_page):
    organizer_page.goto("/systems/b2-voices/")
    organizer_page.locator("summary", has_text="how it was made").click()
    image = organizer_page.locator(".multiples img").first
    image.scroll_into_view_if_needed()
    shown, address = {}, ""
    for scheme in ("light", "dark"):
        organizer_page.emulate_media(color_scheme=scheme)
        first = "document.querySelector('.multiples img')"
        drawn = f"(({{complete, currentSrc: now}}) => complete && now && now !== '{address}')({first})"
        wait_until(organizer_page, drawn)
        address = image.evaluate("(each) => each.currentSrc")
        shown[scheme] = organizer_page.request.get(address).text()
        assert image.evaluate("(each) => each.naturalWidth") > 300
    assert "#1f2328" in shown["light"]
    assert "#e8eaed" in shown["dark"]
    assert "#1f2328" not in shown["dark"]


# Listening -----------------------------------------------------------------------------------------


def test_player_decodes_what_is_stored(player, file):
    for position, key in enumerate((file.utterance.audio, file.audio)):
        decoded = player.evaluate(
            """async (index) => {
              const address = document.querySelectorAll(".player-source audio")[index].src;
              const bytes = await (await fetch(address)).arrayBuffer();
              const buffer = await new OfflineAudioContext(1, 1, 16000).decodeAudioData(bytes);
              return { duration: buffer.duration, channels: buffer.numberOfChannels,
                       samples: Array.from(buffer.getChannelData(0)) };
            }""",
            position,
        )
        expected = stored(key)
        assert (decoded["channels"], decoded["duration"]) == (1, expected.size / RATE_HZ)
        np.testing.assert_allclose(decoded["samples"], expected, atol=1 / 32768)
        assert level(np.array(decoded["samples"])) == pytest.approx(level(expected), abs=0.01)
    measure = UtteranceMeasure.objects.get(file=file)
    change = level(stored(file.audio)) - level(stored(file.utterance.audio))
    assert measure.level_change_db == pytest.approx(change, abs=1e-6)


def test_space_plays_and_b_switches_at_the_same_instant(player):
    player.focus(".player-controls input")
    assert state_of(player)["playing"] is False
    player.keyboard.press("Space")
    wait_until(player, "Number(document.querySelector('.player-controls input').value) > 0.3")
    before = state_of(player)
    assert (before["playing"], before["pressed"]) == (True, ["true", "false"])
    assert (before["gains"], before["voices"]) == ([1, 0], 2)
    player.keyboard.press("b")
    wait_until(player, FADED_TO.format(1, 0))
    after = state_of(player)
    assert (after["playing"], after["pressed"]) == (True, ["false", "true"])
    assert after["gains"] == [0, 1]
    assert after["voices"] == 2  # neither was started again
    assert before["position"] <= after["position"] < before["position"] + (after["at"] - before["at"]) + 0.5
    player.keyboard.press("a")
    wait_until(player, FADED_TO.format(0, 1))
    player.keyboard.press("Space")
    assert state_of(player)["playing"] is False
