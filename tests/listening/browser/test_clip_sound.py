"""What a browser makes of a stimulus: it decodes, lasts as long as it says, and sounds the same in both ears."""

import io

import numpy as np
import pytest
import soundfile
from django.core.files.storage import default_storage

from listening.app.sessions.clip_urls import clip_address
from listening.stimuli.making import make_stimulus
from portal.core.storage import store_bytes
from tests.listening.factories import make_session, make_study
from tests.listening.stimuli.speech import demo_recordings

pytestmark = pytest.mark.django_db(transaction=True)
RENDER = """async ([address, rate]) => {
  const bytes = await (await fetch(address)).arrayBuffer();
  const probe = new OfflineAudioContext(2, 1, rate);
  const clip = await probe.decodeAudioData(bytes);
  const context = new OfflineAudioContext(2, Math.ceil(clip.duration * rate), rate);
  const source = context.createBufferSource();
  source.buffer = clip;
  source.connect(context.destination);
  source.start();
  const rendered = await context.startRendering();
  const energy = [0, 1].map((channel) => rendered.getChannelData(channel).reduce((sum, x) => sum + x * x, 0));
  return {duration: clip.duration, channels: clip.numberOfChannels, energy: energy.map((e) => e / rate)};
}"""


@pytest.fixture
def session():
    session = make_session(make_study(trials=6))
    samples = [trial.presentation.samples.get(slot="a") for trial in session.block.trials.all()]
    for sample, recording in zip(samples, demo_recordings(step=25), strict=False):
        made = make_stimulus(recording, 16000)
        stimulus = sample.stimulus
        stimulus.file, stimulus.bytes = store_bytes(made.content, ".wav"), len(made.content)
        stimulus.duration_s, stimulus.facts = made.speech_s, made.facts
        stimulus.save()
    return session


def addresses(session):
    return [clip_address(session, trial, "a") for trial in session.block.trials.order_by("position")[:3]]


def test_criterion_02_browser_renders_equal_energy_left_and_right(page, problems, session):
    page.goto("/log-in/")
    for address, trial in zip(addresses(session), session.block.trials.order_by("position"), strict=False):
        stimulus = trial.presentation.samples.get(slot="a").stimulus
        with default_storage.open(stimulus.file) as file:
            samples = soundfile.read(io.BytesIO(file.read()))[0]
        for rate in (16000, 48000):
            heard = page.evaluate(RENDER, [address, rate])
            assert heard["channels"] == 1
            assert heard["duration"] == pytest.approx(stimulus.facts["padded_s"], abs=1 / 16000)
            left, right = heard["energy"]
            assert abs(10 * np.log10(left / right)) < 0.1
            assert left == pytest.approx(np.square(samples).sum() / 16000, rel=0.01)
    assert problems[page] == []
