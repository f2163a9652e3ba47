"""Running a command as a person does, and the small files that its tests hand it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from portal.client.main import main

SPEAKERS = ("s1", "s2", "s3", "s4")
SEED = 5
RANK_FILE = """---- Time: 29-03-24_10:45 ----

---- SER results ----
   dataset split   ser      UAR  ACC_sad  ACC_neu  ACC_ang  ACC_hap
                           mean     mean     mean     mean     mean
0  IEMOCAP   dev  anon  50.0000  50.0000  50.0000  50.0000  50.0000
2  IEMOCAP  test  anon  60.0000  60.0000  60.0000  60.0000  60.0000

---- ASR results ----
  dataset split   asr    WER
0   libri   dev  anon  4.000
1   libri  test  anon  5.000

---- ASV_eval^anon results ----
  dataset split gender enrollment trial     EER
2   libri   dev      f       anon  anon  20.000
5   libri   dev      m       anon  anon  30.000
8   libri  test      f       anon  anon  19.000
9   libri  test      m       anon  anon  21.000
"""


@dataclass(frozen=True)
class Answer:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Shell:
    """Runs commands in this process; nothing may escape but an exit code."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: object) -> Answer:
        self._capsys.readouterr()
        code = main([str(each) for each in arguments])
        captured = self._capsys.readouterr()
        assert "Traceback" not in captured.err
        return Answer(code, captured.out, captured.err)


def refusal(answer: Answer) -> str:
    """The one sentence (or two) of a refused command, which printed nothing else."""
    assert answer.code == 2
    assert answer.out == ""
    assert answer.err.count("\n") == 1
    return answer.err.strip()


def write_test(folder: Path, *, shift: float = 2.0, utterances: int = 6) -> tuple[Path, Path]:
    """Scores and trials of four speakers, every model against every utterance, with utt2spk beside the trials."""
    random = np.random.default_rng(SEED)
    ids = [(f"{speaker}-{number}", speaker) for speaker in SPEAKERS for number in range(utterances)]
    scores, trials = [], []
    for model in SPEAKERS:
        for utterance, speaker in ids:
            is_target = model == speaker
            scores.append(f"{model} {utterance} {random.normal(shift * is_target):.6g}\n")
            trials.append(f"{model} {utterance} {'target' if is_target else 'nontarget'}\n")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "scores").write_text("".join(scores))
    (folder / "trials").write_text("".join(trials))
    (folder / "utt2spk").write_text("".join(f"{utterance} {speaker}\n" for utterance, speaker in ids))
    return folder / "scores", folder / "trials"
