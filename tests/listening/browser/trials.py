"""What tests do on the page of the trials: open it, listen, rate, go on, and look at what is stored."""

import re

from playwright.sync_api import expect

RATED = ("verifiability", "naturalness", "intelligibility")

# Sums up what reaches the loudspeakers, left and right, and counts audio contexts by state.
EAR = """() => {
  window.ear = { left: 0, right: 0, contexts: [] };
  const connect = AudioNode.prototype.connect;
  AudioNode.prototype.connect = function (target, ...rest) {
    if (target instanceof AudioDestinationNode) {
      const { context } = this;
      if (!ear.contexts.includes(context)) ear.contexts.push(context);
      const splitter = new ChannelSplitterNode(context, { numberOfOutputs: 2 });
      connect.call(this, splitter);
      ["left", "right"].forEach((side, index) => {
        const analyser = new AnalyserNode(context, { fftSize: 2048 });
        connect.call(splitter, analyser, index);
        const samples = new Float32Array(2048);
        const timer = setInterval(() => {
          analyser.getFloatTimeDomainData(samples);
          ear[side] += samples.reduce((sum, sample) => sum + sample * sample, 0);
        }, 20);
        this.addEventListener("ended", () => setTimeout(() => clearInterval(timer), 200));
      });
    }
    return connect.call(this, target, ...rest);
  };
}"""


def open_trials(page, session, *, with_ear=False):
    """The page of the session, once its first trial is on show."""
    if with_ear:
        page.add_init_script(f"({EAR})()")
    page.goto(session.get_absolute_url())
    expect(page.locator("#trial-panel")).to_be_visible()
    return page


def number_of(page):
    """The number of the trial on show."""
    return int(re.search(r"\d+", page.locator("#trial-heading").inner_text()).group())


def player(page, slot):
    return page.locator(f'#players [data-slot="{slot}"]')


def listen(page, slots="ab"):
    """Play each sample to its end by its button."""
    for slot in slots:
        expect(player(page, slot)).to_have_attribute("data-state", re.compile("ready|playing"))
        player(page, slot).locator("button").click()
        expect(player(page, slot)).to_have_attribute("data-heard", "", timeout=30_000)


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


def stored(session):
    """By position of the trial and task the stored ratings; fails if something is there twice."""
    rows = list(session.answers.values_list("trial__position", "task", "rating"))
    found = {(position, task): rating for position, task, rating in rows}
    assert len(found) == len(rows)
    return found


def events_of(session, kind):
    return list(session.events.filter(kind=kind).values_list("data", flat=True))
