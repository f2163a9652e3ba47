"""Kinds of jobs for tests that work, wait, fail and die on demand; what was done, and how often, can be read."""

import os
import signal
import time
from pathlib import Path

from billiard.exceptions import SoftTimeLimitExceeded

from portal.core.storage import read_stored
from portal.jobs.kinds import JobFailure, job_kind
from portal.jobs.models import Actor, Queue


def read_lines(file):
    """Pairs of (item, process) of a file that a job wrote."""
    lines = file.read_text().splitlines() if file.exists() else []
    return [tuple(map(int, line.split())) for line in lines]


def hold_file(file):
    """Has the number of the item at which the job of this file waits."""
    return file.with_name(f"{file.name}.held")


def is_held(file, item):
    try:
        return item >= int(hold_file(file).read_text())
    except FileNotFoundError:
        return False


@job_kind("test-steps", title="Steps", queue=Queue.CPU)
def steps(context):
    """Append a line for each item that has none yet, after a pause; it waits at the item where a test holds it."""
    file, items = Path(context.parameters["file"]), context.parameters["items"]
    known = {item for item, _ in read_lines(file)}
    if key := context.parameters.get("reads"):
        assert read_stored(key) is not None
    for item in range(items):
        context.progress("Stepping", item, items)
        if item in known:
            continue
        time.sleep(context.parameters["pause_s"])
        while is_held(file, item):
            context.progress("Stepping", item, items)
            time.sleep(0.02)
        with file.open("a") as stream:
            stream.write(f"{item} {os.getpid()}\n")
    context.progress("Stepping", items, items)
    return {"items": items}


@job_kind("test-gate", title="Gate", queue=Queue.CPU)
def gate(context):
    """Fail until the file exists."""
    if not Path(context.parameters["file"]).exists():
        raise JobFailure("The gate is shut.", actor=Actor.ORGANIZER, remedy="Open the gate.")


@job_kind("test-fault", title="Fault", queue=Queue.CPU)
def problem(context):
    """Meet an error that nobody thought of."""
    context.progress("Dividing", 0, 1)
    return {"ratio": 1 / context.parameters["divisor"]}


@job_kind("test-told", title="Told", queue=Queue.CPU)
def told(context):
    """Fail with the sentence of the parameters, after a step whose name is the same."""
    sentence = context.parameters["sentence"]
    context.progress(sentence, 0, 1)
    raise RuntimeError(sentence)


@job_kind("test-death", title="Death", queue=Queue.CPU)
def death(context):
    """End the own process as the kernel does when memory is short."""
    context.progress("Dying", 0, 1)
    os.kill(os.getpid(), signal.SIGKILL)


@job_kind("test-patient", title="Patient", queue=Queue.CPU)
def patient(context):
    """Never finish."""
    context.progress("Waiting", 0, 1)
    while True:
        time.sleep(0.05)


@job_kind("test-deaf", title="Deaf", queue=Queue.CPU)
def deaf(context):
    """Never finish and hear neither the soft limit nor a wish to cancel, like a long call into a C library."""
    context.progress("Waiting", 0, 1)
    while True:
        try:
            time.sleep(0.05)
        except SoftTimeLimitExceeded:
            continue


@job_kind("test-brief", title="Brief", queue=Queue.CPU, time_limit_s=1)
def brief(context):
    """Never finish, although jobs of this kind have a second."""
    patient(context)


@job_kind("test-large", title="Large", queue=Queue.CPU, memory_mb=1)
def large(context):
    """Hold as much memory as the parameters say, until the job is ended."""
    context.progress("Growing", 0, 1)
    parts = []
    while True:
        if len(parts) < context.parameters["bytes"] // 10**7:  # in steps, so that heartbeats are written
            parts.append(b"x" * 10**7)
        else:
            time.sleep(0.05)


@job_kind("test-demanding", title="Demanding", queue=Queue.CPU, memory_mb=4000, cores=2)
@job_kind("test-large-card", title="With a large card", queue=Queue.CPU, uses_card=True, card_memory_mb=4000)
@job_kind("test-card", title="With a card", queue=Queue.CPU, uses_card=True)
@job_kind("test-done", title="Done", queue=Queue.CPU)
@job_kind("test-awaited", title="Awaited", queue=Queue.CPU, comes_first=True)
@job_kind("test-files", title="Files", queue=Queue.LIGHT)
def done(context):
    """Nothing is left to do."""
    return {}
