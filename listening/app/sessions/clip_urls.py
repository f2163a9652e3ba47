"""The addresses of sounds: signed with the secret key for one session, one trial and one slot.

An address tells nothing of the system that is heard, and is worthless in any other session.
"""

from __future__ import annotations

import re
from base64 import urlsafe_b64encode

from django.urls import reverse
from django.utils.crypto import constant_time_compare

from listening.app.models import Session, Trial
from portal.core.keys import keyed_hashes

SALT = "listening.trials.clips"  # addresses that were given out rest on it
NAME_LENGTH = 24


def clip_address(session: Session, trial: Trial, slot: str) -> str:
    """Return where this session fetches the sound of a slot of a trial; worthless in any other session."""
    return reverse("listen:clip", args=[session.token, clip_names(session, trial, slot)[0]])


def clip_names(session: Session, trial: Trial, slot: str) -> list[str]:
    """Return what the last part of the address may be: first by the secret key, then by former ones."""
    marks = keyed_hashes(SALT, f"{session.token}/{trial.pk}/{slot}")
    return [urlsafe_b64encode(mark)[:NAME_LENGTH].decode() for mark in marks]


def can_be_name(name: str) -> bool:
    """Return whether the last part of an address has the form of all that are given out."""
    return re.fullmatch(rf"[\w-]{{{NAME_LENGTH}}}", name, re.ASCII) is not None


def is_clip_name(name: str, session: Session, trial: Trial, slot: str) -> bool:
    """Return whether the last part of an address was given to this session for this slot of this trial."""
    return any(constant_time_compare(one, name) for one in clip_names(session, trial, slot))
