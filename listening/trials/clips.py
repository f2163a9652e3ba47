"""Addresses of the sound of a trial, and how long it lasts.

An address is made of the session's secret, the trial and the slot by a keyed hash: nothing is stored for it, it tells
nothing, and the same recording has another one in every session and every trial.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode

from django.urls import reverse
from django.utils.crypto import salted_hmac

from listening.models import Session, Stimulus, Trial

SALT = "listening.trials.clips"
NAME_LENGTH = 24


def clip_name(session: Session, trial: Trial, slot: str) -> str:
    """The last part of the address."""
    mark = salted_hmac(SALT, f"{session.token}/{trial.pk}/{slot}", algorithm="sha256").digest()
    return urlsafe_b64encode(mark)[:NAME_LENGTH].decode()


def clip_address(session: Session, trial: Trial, slot: str) -> str:
    """Where this session fetches the sound of a slot of a trial; worthless in any other session."""
    return reverse("listen:clip", args=[session.token, clip_name(session, trial, slot)])


def sample_seconds(stimulus: Stimulus) -> float:
    """How long its file lasts, the silence at its end included; 0 while there is no file."""
    return float(stimulus.facts.get("padded_s") or stimulus.duration_s)
