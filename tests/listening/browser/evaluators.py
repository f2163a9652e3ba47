"""Evaluators who go through a whole session of a served portal, each in a browser and a thread of their own.

They know what a person knows: the link, what is on the screen, and what they hear. `given` is what they rated, trial by
trial in the order in which they sent it. Nothing here looks into the database.
"""

import io
import random
import re
import threading
import wave
from itertools import pairwise
from typing import Any

import numpy as np
from playwright.sync_api import expect, sync_playwright

from tests.browsing import CHROMIUM, wait_for_calm, watch_page
from tests.listening.browser.test_steps import PHONE, answer_about, choose, continue_, press_to
from tests.listening.browser.test_trials_network import crash
from tests.listening.browser.trials import player
from tests.listening.rated import RATED

PATIENCE_MS = 180_000  # recordings last up to half a minute, and three browsers share a machine with the portal
DONE = "You are done"


def count_tones(content):
    """How many tones each of the two groups of the sound test has, by ear."""
    with wave.open(io.BytesIO(content)) as file:
        frames, rate_hz = file.readframes(file.getnframes()), file.getframerate()
    loud = np.abs(np.frombuffer(frames, "<i2").reshape(-1, 2)[:, 0].astype(int)) > 300
    step = rate_hz // 20
    heard = [bool(loud[start : start + step].any()) for start in range(0, loud.size, step)]
    starts_s = [place / 20 for place, (before, now) in enumerate(pairwise([False, *heard])) if now and not before]
    gaps = [later - earlier for earlier, later in pairwise(starts_s)]
    first = gaps.index(max(gaps)) + 1
    return [first, len(starts_s) - first]


class Evaluator(threading.Thread):
    """Listens by mouse. Subclasses override what they do differently."""

    options: dict[str, Any] = {"viewport": {"width": 1280, "height": 800}}

    def __init__(self, url, link, seed):
        super().__init__(daemon=True)
        self.url, self.link = url, link
        self.random = random.Random(seed)
        self.given, self.problems, self.error = [], [], None
        self.address = self.code = ""
        self.total = 0

    # One thread ------------------------------------------------------------------------------------

    def run(self):
        try:
            with sync_playwright() as playwright:
                args = ["--no-sandbox"]
                self.browser = playwright.chromium.launch(executable_path=CHROMIUM, args=args)
                self.open_context()
                self.go_through()
                self.browser.close()
        except BaseException as error:  # raised by the waiting thread
            self.error = error

    def finish(self, seconds):
        """Wait for the end; what went wrong in the thread goes wrong here."""
        self.join(seconds)
        assert not self.is_alive(), f"only {len(self.given)} trials in time"
        if self.error:
            raise AssertionError(f"after {len(self.given)} trials") from self.error

    def open_context(self):
        self.context = self.browser.new_context(base_url=self.url, **self.options)
        self.context.set_default_timeout(PATIENCE_MS)
        self.open_page()

    def open_page(self):
        self.page = self.context.new_page()
        self.page.on("dialog", lambda dialog: dialog.accept())
        watch_page(self.page, self.problems, self.url)

    # The way through a session -----------------------------------------------------------------------

    def go_through(self):
        self.page.goto(self.link)
        self.begin()
        self.address = self.page.url
        self.agree()
        self.tell_about()
        self.test_sound()
        self.read_role_play()
        self.expect_trials()
        self.total = int(self.page.locator("#done").get_attribute("max"))  # with those for practice
        while len(self.given) < self.total:
            self.do_trial(len(self.given) + 1)
        expect(self.page.get_by_role("heading", name=DONE)).to_be_visible(timeout=PATIENCE_MS)
        self.code = self.page.locator("code.code").first.inner_text()

    def begin(self):
        with self.page.expect_navigation():
            self.page.get_by_role("button", name="Begin").click()

    def agree(self):
        self.page.get_by_label("I have read this and agree").check()
        continue_(self.page)

    def tell_about(self):
        answer_about(self.page)
        continue_(self.page)

    def test_sound(self):
        choose(self.page, self.hear_tones(lambda: self.page.get_by_role("button", name="Test my sound").click()))
        continue_(self.page)

    def hear_tones(self, play):
        with self.page.expect_response(lambda answer: "/sounds/" in answer.url) as sound:
            play()
        self.page.get_by_text("Played").first.wait_for()
        return count_tones(sound.value.body())

    def read_role_play(self):
        with self.page.expect_navigation():
            self.page.get_by_role("button", name="I have read this").click()

    def expect_trials(self):
        expect(self.page.locator("#trial-panel")).to_be_visible(timeout=PATIENCE_MS)

    # Trials ------------------------------------------------------------------------------------------

    def do_trial(self, number):
        self.expect_number(number)
        self.answer(number)

    def answer(self, number):  # noqa: ARG002  # those with trouble have it at certain trials
        """The trial on the screen, from listening to sending."""
        self.listen()
        ratings = self.ratings()
        self.rate(ratings)
        self.send(ratings)

    def expect_number(self, number):
        expect(self.page.locator("#done")).to_have_js_property("value", number - 1, timeout=PATIENCE_MS)

    def ratings(self):
        return {task: self.random.randint(1, 10) for task in RATED}

    def listen(self):
        for slot in "ab":
            self.expect_ready(slot)
            self.play(slot)
            self.expect_heard(slot)

    def expect_ready(self, slot):
        ready = re.compile("ready|playing")
        expect(player(self.page, slot)).to_have_attribute("data-state", ready, timeout=PATIENCE_MS)

    def expect_heard(self, slot):
        expect(player(self.page, slot)).to_have_attribute("data-heard", "", timeout=PATIENCE_MS)

    def play(self, slot):
        player(self.page, slot).locator("button").click()

    def rate(self, ratings):
        for task, rating in ratings.items():
            point = self.page.locator(f'input[value="{rating}"]')
            self.page.locator(f'fieldset[data-task="{task}"] label', has=point).click()

    def send(self, ratings):
        self.page.locator("#next").click()
        self.given.append(ratings)


class KeyboardEvaluator(Evaluator):
    """Touches nothing but keys, on a screen as small as a phone's; Tab and arrows, or letters and digits, by turns."""

    options = {"viewport": PHONE}

    def press(self, *keys):
        for key in keys:
            self.page.keyboard.press(key)

    def press_and_go(self, name):
        press_to(self.page, name)
        with self.page.expect_navigation():
            self.press("Enter")

    def begin(self):
        self.press_and_go("Begin")

    def agree(self):
        press_to(self.page, "agrees")
        self.press("Space")
        self.press_and_go("Continue")

    def tell_about(self):
        for name in ("age", "gender"):
            press_to(self.page, f"|{name}")
            self.press("Space", "ArrowDown")
        press_to(self.page, "native_language")
        self.page.keyboard.type("English")
        for name in ("hearing", "headphones"):
            press_to(self.page, f"|{name}")
            self.press("Space")
        self.press_and_go("Continue")

    def test_sound(self):
        press_to(self.page, "Test my sound")
        tones = self.hear_tones(lambda: self.press("Enter"))
        for place, count in enumerate(tones, 1):
            press_to(self.page, f"answer{place}")
            self.press("Space", *["ArrowRight"] * (count - 1))
        self.press_and_go("Continue")

    def read_role_play(self):
        self.press_and_go("I have read this")

    def answer(self, number):
        expect(self.page.locator("#trial-heading")).to_be_focused(timeout=PATIENCE_MS)
        self.expect_ready("a")
        self.expect_ready("b")
        ratings = self.ratings()
        if number % 2 and number < self.total:
            self.answer_with_tab(ratings)
        else:
            self.press("a")
            self.expect_heard("a")
            self.press("b")
            self.expect_heard("b")
            self.press(*(str(rating % 10) for rating in ratings.values()), "Enter")
        self.given.append(ratings)

    def answer_with_tab(self, ratings):
        self.press("Tab", "Tab", "Space")  # past “Pause”
        self.expect_heard("a")
        self.press("Tab", "Enter")
        self.expect_heard("b")
        for task, rating in ratings.items():
            self.press("Tab")
            if task == "intelligibility":  # “Listen to A again” stands before it
                self.press("Tab")
            self.press("Space", *["ArrowRight"] * (rating - 1))
        self.press("Tab")
        expect(self.page.locator("#next")).to_be_focused()
        self.press("Enter")


class TroubledEvaluator(Evaluator):
    """Reloads, loses pages and the whole browser, loses the connection, and opens a second tab.

    `troubles`: by number of a trial what happens there; `met`: which of them happened.
    """

    def __init__(self, url, link, seed, total):
        super().__init__(url, link, seed)
        actions = (
            self.reload_in_mid_trial,
            self.crash_in_mid_trial,
            self.answer_offline,
            self.reload_at_once,
            self.lose_the_browser,
            self.open_second_tab,
            self.crash_at_once,
        )
        # Evenly over the session; without a connection two further trials are answered.
        step = (total - 6) // len(actions)
        self.troubles = {
            2 + place * step + (2 if place > actions.index(self.answer_offline) else 0): action
            for place, action in enumerate(actions)
        }
        self.met = []

    def answer(self, number):
        action = self.troubles.get(number)
        if action is None:
            super().answer(number)
            return
        action()
        self.met.append(action.__name__)

    def begin_trial(self):
        """Everything is heard, and one question answered."""
        self.listen()
        ratings = self.ratings()
        self.rate({RATED[0]: ratings[RATED[0]]})
        return ratings

    def finish_trial(self, ratings):
        """What was begun is still there; the rest of it."""
        self.expect_trials()
        self.expect_number(len(self.given) + 1)
        expect(self.page.locator("input[type=radio]:checked")).to_have_value(str(ratings[RATED[0]]))
        self.expect_heard("b")
        self.rate({task: ratings[task] for task in RATED[1:]})
        self.send(ratings)

    def reload_in_mid_trial(self):
        ratings = self.begin_trial()
        self.page.reload()
        self.finish_trial(ratings)

    def crash_in_mid_trial(self):
        ratings = self.begin_trial()
        self.crash()
        self.finish_trial(ratings)

    def reload_at_once(self):
        """The answer is on its way, or not even that."""
        super().answer(0)
        self.page.reload()
        self.expect_trials()

    def crash_at_once(self):
        super().answer(0)
        self.crash()
        self.expect_trials()

    def crash(self):
        crash(self.page)
        self.open_page()
        self.page.goto(self.address)

    def lose_the_browser(self):
        """Nothing is left but the link, as on another device; what was sent is saved, what was begun is gone."""
        expect(self.page.locator("#saved")).to_have_attribute("data-state", "saved", timeout=PATIENCE_MS)
        self.begin_trial()
        self.context.close()
        self.open_context()
        self.page.goto(self.address)
        self.expect_trials()
        self.expect_number(len(self.given) + 1)
        expect(self.page.locator("input[type=radio]:checked")).to_have_count(0)
        super().answer(0)

    def answer_offline(self):
        """Three trials are here; all of them are answered while nothing gets through."""
        wait_for_calm(self.page, most_s=PATIENCE_MS / 1000, looks=25)
        expect(self.page.locator("#saved")).to_have_attribute("data-state", "saved", timeout=PATIENCE_MS)
        self.context.set_offline(True)
        for _ in range(3):
            self.expect_number(len(self.given) + 1)
            super().answer(0)
        expect(self.page.locator("#waiting-panel")).to_be_visible(timeout=PATIENCE_MS)
        self.context.set_offline(False)

    def open_second_tab(self):
        ratings = self.begin_trial()
        first = self.page
        self.open_page()
        self.page.goto(self.address)
        self.expect_trials()
        expect(first.locator("#frozen-panel")).to_be_visible(timeout=PATIENCE_MS)
        self.finish_trial(ratings)
        self.expect_number(len(self.given) + 1)
        second, self.page = self.page, first
        self.page.locator("#here").click()
        expect(second.locator("#frozen-panel")).to_be_visible(timeout=PATIENCE_MS)
        self.expect_trials()
        second.close()
