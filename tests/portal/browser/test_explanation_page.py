"""The picture of an instant in a browser: it follows the player, and a form asks for it where no script runs."""

import csv
import io
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
import soundfile
from playwright.sync_api import expect

from anonymization.app.models import AnonymizationRun
from anonymization.app.voice_assignment import find_pseudo_speaker
from anonymization.methods.registry import get_method
from portal.challenges.models import Corpus
from portal.core.storage import keep_audio, store_bytes
from portal.submissions.models import System
from tests.portal.factories import make_organizer
from tests.portal.measured import anonymized

DEMO = Path(__file__).resolve().parents[3] / "demo" / "corpus"
METHODS = ("mcadams-2022", "pitch-shift-psola", "world-formant-f0", None)


def make_file(method_name, system_name):
    """An utterance of a woman that a method of the portal anonymised; for None, the same one made elsewhere."""
    corpus, _ = Corpus.objects.get_or_create(
        name="voices", layout="manifest", source="demo", is_synthetic=True, is_shared=True
    )
    data_set, _ = corpus.data_sets.get_or_create(name="voices_trials_f", role="trial")
    with (DEMO / "utterances.csv").open(newline="") as file:
        row = next(row for row in csv.DictReader(file) if row["gender"].lower().startswith("f"))
    data = (DEMO / row["path"]).read_bytes()
    samples, rate = soundfile.read(io.BytesIO(data), dtype="int16")
    speaker, _ = corpus.speakers.get_or_create(name=row["speaker"], gender="f")
    utterance, is_new = corpus.utterances.get_or_create(
        speaker=speaker,
        name=row["utterance_id"],
        defaults={
            "transcript": row["transcript"],
            "duration_s": samples.size / rate,
            "samples": samples.size,
            "rate_hz": rate,
            "audio": store_bytes(data, ".flac"),
        },
    )
    if is_new:
        data_set.utterances.add(utterance)
    system = System.objects.create(name=system_name, title="Some system", corpus=corpus, is_baseline=True)
    submission = system.submissions.create(version=1)
    output = samples[::-1].copy()
    if method_name is not None:
        run = anonymized(system, data_set)
        AnonymizationRun.objects.filter(pk=run.pk).update(method=method_name)
        run.refresh_from_db()
        method = get_method(method_name)
        output = method.anonymize(samples, rate, find_pseudo_speaker(run, utterance))
    return submission.files.create(
        data_set=data_set, utterance=utterance, audio=keep_audio(output, rate), samples=output.size, rate_hz=rate
    )


def address_of(file):
    return f"/systems/{file.submission.system.name}/files/{file.pk}/"


@pytest.fixture
def file(once):
    return once(make_file, "mcadams-2022", "b2-voices")


@pytest.fixture
def page(file, organizer_page):
    """The page of an utterance, its player ready."""
    organizer_page.goto(address_of(file))
    organizer_page.wait_for_selector(".player-controls")
    organizer_page.wait_for_selector(".explanation .follows:visible")
    wait_for_picture(organizer_page)
    return organizer_page


def wait_for_picture(page):
    """The picture has come: a server that ends with its test while it still draws complains."""
    picture = page.locator("#explained img")
    picture.scroll_into_view_if_needed()
    expect(picture).to_have_js_property("complete", True)
    assert picture.evaluate("(image) => image.naturalWidth") > 0


def shown(page):
    """The instant by its picture, its words, its field and the address of the page."""
    picture = page.locator("#explained img")
    asked = parse_qs(urlsplit(picture.evaluate("(image) => image.currentSrc || image.src")).query)["at"][0]
    alt = picture.get_attribute("alt")
    return asked, alt.split(" at ")[1].split(" s.")[0], page.locator("#id_at").input_value()


def wait_for_instant(page, at):
    page.wait_for_selector(f'#explained img[alt*=" at {at} s."]')
    wait_for_picture(page)


def seek(page, part):
    """A click into the picture of the original, at a part of its width; the instant that this is."""
    canvas = page.locator(".player-plot canvas").first
    box = canvas.bounding_box()
    before = page.locator(".player-controls input").input_value()
    canvas.click(position={"x": box["width"] * part, "y": box["height"] / 2})
    expect(page.locator(".player-controls input")).not_to_have_value(before)
    return f"{float(page.locator('.player-controls input').input_value()):.2f}"


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method or "elsewhere")
def test_page_of_each_family_passes_the_check(organizer_page, check_page, method):
    if method and (missing := get_method(method).missing()):
        pytest.skip(missing)
    file = make_file(method, f"system-{method or 'elsewhere'}")
    organizer_page.goto(address_of(file))
    organizer_page.wait_for_selector(".player-controls")
    organizer_page.locator(".explanation summary").click()
    wait_for_picture(organizer_page)
    check_page(organizer_page, f"explanation-{method or 'elsewhere'}")
    expect(organizer_page.locator("#explanation-heading")).to_have_text(
        "What the method did" if method else "What changed"
    )


def test_picture_words_and_numbers_follow_the_player(page):
    before = page.inner_text("#explained tbody"), page.locator("#explained img").get_attribute("alt")
    page.locator("#explained summary").click()
    at = seek(page, 0.4)
    wait_for_instant(page, at)
    assert shown(page) == (at, at, at)
    after = page.inner_text("#explained tbody"), page.locator("#explained img").get_attribute("alt")
    assert before[0] != after[0]
    assert before[1] != after[1]
    expect(page.locator("#explained details")).to_have_attribute("open", "")
    expect(page.locator("#announcer")).to_have_text(after[1])
    assert urlsplit(page.url).query == f"at={at}"


def test_only_the_last_of_several_jumps_is_drawn(page):
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    # As a drag over the picture tells them, each long before the one before it is asked for.
    page.locator("figure[data-player]").evaluate(
        """(figure, instants) => instants.forEach((detail) =>
             figure.dispatchEvent(new CustomEvent("player:rest", { bubbles: true, detail })))""",
        [0.2, 0.3, 0.5],
    )
    at = "0.50"
    wait_for_instant(page, at)
    pages = [address for address in asked if "explanation.svg" not in address and "at=" in address]
    assert [parse_qs(urlsplit(address).query)["at"] for address in pages] == [[at]]


def test_pause_shows_where_the_player_stands_and_playing_changes_nothing(page):
    first, asked = shown(page), []
    page.on("request", lambda request: asked.extend([request.url] if "at=" in request.url else []))
    page.focus(".player-controls input")
    page.keyboard.press("Space")
    page.wait_for_selector(".player[data-playing]")
    # Longer than the page waits before it asks for the picture of an instant at rest.
    page.wait_for_function("() => Number(document.querySelector('.player-controls input').value) > 0.5")
    assert (shown(page), asked) == (first, [])
    page.keyboard.press("Space")
    page.wait_for_selector(".player:not([data-playing])")
    at = f"{float(page.locator('.player-controls input').input_value()):.2f}"
    wait_for_instant(page, at)
    assert shown(page)[0] == at != first[0]


def test_picture_that_cannot_be_fetched_or_drawn_is_told(page, problems):
    notice = page.locator("#explained .notice")
    for number, (address, said) in enumerate(
        (
            ("**/files/*/?at=*", "could not be fetched (answer 503)"),
            ("**/explanation.svg?*", "The picture could not be drawn just now."),
        )
    ):
        page.route(address, lambda route: route.fulfill(status=503, body="Other pictures are drawn first."))
        seek(page, 0.4 - 0.1 * number)
        expect(notice).to_contain_text(said)
        expect(notice).to_have_role("status")
        page.unroute(address)
        wait_for_instant(page, seek(page, 0.6 + 0.1 * number))
        expect(notice).to_have_count(0)
    problems[page].clear()  # the browser notes the answers that were asked for here


def test_form_asks_for_an_instant_without_script(file, new_page):
    page = new_page(make_organizer(), java_script_enabled=False)
    page.goto(f"{address_of(file)}?order=highest")
    expect(page.locator(".follows")).to_be_hidden()
    page.fill("#id_at", "0.5")
    page.get_by_role("button", name="Show").click()
    page.wait_for_url(lambda url: "at=0.5" in url)
    assert shown(page) == ("0.50", "0.50", "0.50")
    assert parse_qs(urlsplit(page.url).query) == {"order": ["highest"], "at": ["0.5"]}
    page.goto(f"{address_of(file)}?at=1000")
    expect(page.locator("#id_at")).to_have_attribute("aria-invalid", "true")
    expect(page.locator("#id_at_error")).to_contain_text("where both recordings are; found “1000”")
    wait_for_picture(page)


def test_phone_and_print_get_a_picture_that_fits(page):
    def wait_for_source(ending):
        # The address is that of the picture before until the other one has come.
        shows = "(ending) => document.querySelector('#explained img').currentSrc.endsWith(ending)"
        page.wait_for_function(shows, arg=ending)

    page.emulate_media(color_scheme="dark")
    page.set_viewport_size({"width": 360, "height": 800})
    wait_for_source("&theme=dark&shape=narrow")
    page.set_viewport_size({"width": 1280, "height": 800})
    wait_for_source("&theme=dark")
    page.emulate_media(media="print", color_scheme="dark")
    wait_for_source("&theme=light")
    expect(page.locator(".explanation form")).to_be_hidden()
