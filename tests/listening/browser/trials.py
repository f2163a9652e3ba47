"""What tests do on the page of the trials: open it, listen, rate, go on, and look at what is stored.

The page goes on at once and sends behind it: what the portal has of an answer is waited for, never just read.
"""

import re

from django.db import connection
from playwright.sync_api import expect

from tests.browsing import wait_until
from tests.listening.rated import RATED

# Sums up what reaches the loudspeakers, left and right, and counts audio contexts by state.
EAR = """() => {
  window.ear = { left: 0, right: 0, contexts: [] };
  const connect = AudioNode.prototype.connect;
  AudioNode.prototype.connect = function (target, ...rest) {
    if (target instanceof AudioDestinationNode) {
      const { context } = this;
      if (!ear.contexts.includes(context)) ear.contexts.push(context);
      // As the loudspeakers do it: one channel goes to both sides. Each sample is heard once, on both sides together,
      // however busy the machine is.
      const { channelCount, channelCountMode, channelInterpretation } = context.destination;
      const mixed = new GainNode(context, { channelCount, channelCountMode, channelInterpretation });
      const listener = context.createScriptProcessor(2048, 2, 1);
      const energy = (samples) => samples.reduce((sum, sample) => sum + sample * sample, 0);
      listener.onaudioprocess = ({ inputBuffer }) => {
        ear.left += energy(inputBuffer.getChannelData(0));
        ear.right += energy(inputBuffer.getChannelData(1));
      };
      connect.call(this, mixed);
      connect.call(mixed, listener);
      connect.call(listener, target);
      this.addEventListener("ended", () => setTimeout(() => listener.disconnect(), 200));
    }
    return connect.call(this, target, ...rest);
  };
}"""


# Waits until a sample was heard to its end, or does not play any more.
HEARD = """(slot) => new Promise((resolve) => {
  const find = () => document.querySelector(`#players [data-slot="${slot}"]`);
  const end = performance.now() + 60_000;
  const look = () => {
    const { state, heard } = find()?.dataset ?? {};
    if (heard !== undefined && state !== "playing") return resolve("heard");
    if (document.getElementById("notice").hidden === false && state === "ready") return resolve("held back");
    return performance.now() > end ? resolve(state ?? "gone") : setTimeout(look, 15);
  };
  look();
})"""


def open_trials(page, session):
    """The page of the session, once its first trial is on show."""
    page.clips = set()
    page.on("requestfinished", lambda request: "/clips/" in request.url and page.clips.add(request.url))
    page.goto(session.get_absolute_url())
    expect(page.locator("#trial-panel")).to_be_visible()
    return page


def player(page, slot):
    return page.locator(f'#players [data-slot="{slot}"]')


def expect_ready(page, slots="ab"):
    """Their samples have come: a key that is pressed before plays nothing. Which comes first is left to the network."""
    for slot in slots:
        expect(player(page, slot)).to_have_attribute("data-state", "ready")


def listen(page, slots="ab"):
    """Play each sample to its end by its button."""
    for slot in slots:
        expect(player(page, slot)).to_have_attribute("data-state", re.compile("ready|playing"))
        player(page, slot).locator("button").click()
        expect_heard(page, slot)


def expect_heard(page, slot):
    """Wait in the page itself, which knows at once; a machine whose sound began too late is asked to play again."""
    heard = page.evaluate(HEARD, slot)
    while heard == "held back":
        player(page, slot).locator("button").click()
        heard = page.evaluate(HEARD, slot)
    assert heard == "heard", f"{slot} is {heard}"


def rate(page, rating=7, tasks=RATED):
    for task in tasks:
        page.locator(f'fieldset[data-task="{task}"] label', has=page.locator(f'input[value="{rating}"]')).click()


def send(page):
    page.locator("#next").click()


def answer(page, rating=7, tasks=RATED, slots="ab"):
    """The trial on show, from listening to the next one."""
    listen(page, slots)
    rate(page, rating, tasks)
    send(page)


def expect_saved(page, **options):
    expect(page.locator("#saved")).to_have_attribute("data-state", "saved", **options)


def expect_number(page, number, **options):
    expect(page.locator("#trial-heading")).to_contain_text(re.compile(rf"\b{number} of \d+"), **options)


def wait_for_rows(rows, count, what):
    """So many are there, and so is all that was written with them: portal and test may share a connection, on which
    rows are seen while the request that writes them still writes others."""
    wait_until(lambda: rows.count() >= count and not connection.in_atomic_block, f"{count} {what}")


def stored(session, count):
    """By position of the trial and task the stored ratings, once they are so many; fails if one is there twice."""
    wait_for_rows(session.answers, count, "answers")
    rows = list(session.answers.values_list("trial__position", "task", "rating"))
    found = {(position, task): rating for position, task, rating in rows}
    assert len(found) == len(rows) == count
    return found


def events_of(session, kind, count=1):
    """What is told of the events of a kind, once they are so many."""
    events = session.events.filter(kind=kind).order_by("pk")
    wait_for_rows(events, count, f"events of the kind {kind}")
    found = list(events.values_list("data", flat=True))
    assert len(found) == count
    return found


def plays_of(session, *fields):
    """These fields of each playback in its order, without the note that the machine was too slow for its sound."""
    rows = list(session.plays.order_by("pk").values(*fields))
    for row in rows:
        if "underrun" in row.get("remarks", ()):
            row["remarks"].remove("underrun")
    return [tuple(row.values()) for row in rows]


def draft_of(page):
    """What the device keeps of the trial on show; None where that is nothing."""
    found = "Object.keys(localStorage).find((key) => key.endsWith('draft'))"
    return page.evaluate(f"() => JSON.parse(localStorage[{found}] ?? 'null')")


def expect_clips(page, count):
    """So many recordings of the trials ahead have come."""
    wait_until(lambda: len(page.clips) >= count, f"{count} recordings")
