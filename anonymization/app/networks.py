"""The method of a run: by its name alone, or a built-in one with a network that was trained in the portal, and with the
decoder that this was trained for.

What a method says of itself follows from the cards of the trainings. Their files are put into a folder of the worker
for the job of a run alone, verified as those of folders that somebody names in a description (`retrained`).
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

from django.db.models import QuerySet

from anonymization.app.models import AnonymizationRun, NetworkSeed, NetworkTraining
from anonymization.methods.content_decoder.retrained import (
    CARD,
    DECODER,
    FinishedTraining,
    describe_training,
    find_retrained,
    read_training,
    retrain,
)
from anonymization.methods.contract import Anonymizer, MethodError
from anonymization.methods.registry import get_method, methods
from anonymization.network_training.recipe import read_recipes
from portal.core.storage import read_stored
from portal.jobs.long_work import working_folder
from portal.jobs.models import ACTIVE_STATES

FOLDER = "networks-of-runs"
RUNS_AT_ONCE = 100


def list_readers(network: NetworkSeed) -> tuple[dict[str, Anonymizer], dict[str, str]]:
    """Return the methods that read networks of its recipe by name, with it; and why others of them cannot, a sentence
    each.

    Methods with networks of the operator are left out.
    """
    found: dict[str, Anonymizer] = {}
    refused: dict[str, str] = {}
    for method in methods():
        recipes = getattr(method, "trained_by", ())
        if find_retrained(method) or network.training.recipe not in recipes:
            continue
        found[method.name] = method
        second = next((one for one in recipes if read_recipes()[one].reads_decoder), "")
        if network.training.recipe == DECODER and second:
            refused[method.name] = f"{method.name} also needs a network {second} that was trained for this decoder."
            continue
        try:
            found[method.name] = make_method(method.name, network)
        except MethodError as error:
            refused[method.name] = str(error)
    return found, refused


def make_method(name: str, network: NetworkSeed | None = None) -> Anonymizer:
    """Return the method of this name, where a network of a training here is given with it and its decoder; no file is
    read.

    Raises:
        MethodError: there is no such method, or it cannot read that network.
    """
    method = get_method(name)
    if network is None:
        return method
    trainings = [describe_training(Path(one.file_name), one.card) for one in network.with_decoder]
    return retrain(method, trainings, f"{method.title}, with {network.label}")


def find_run_method(run: AnonymizationRun) -> Anonymizer:
    """Return the method of a run; its files are at hand only in `open_run_method`.

    Raises:
        MethodError: there is no such method, it cannot read the network any more, or the training was deleted.
    """
    method = make_method(run.method, run.network)
    if run.retrained and not find_retrained(method):
        raise MethodError(f"The network with which {run.method} made {run.data_set} is no longer in this portal.")
    return method


@contextmanager
def open_run_method(run: AnonymizationRun) -> Iterator[Anonymizer]:
    """Yield the method of a run with its files, for as long as its job works.

    Raises:
        MethodError: as `find_run_method` and `fetch_network`.
    """
    method = find_run_method(run)
    if run.network is None:
        yield method
        return
    with working_folder(FOLDER, f"{run.pk}-{run.network_id}", _list_held) as folder:
        try:
            trainings = [fetch_network(one, folder / one.file_name) for one in run.networks]
            yield retrain(get_method(run.method), trainings, method.title)
        finally:  # weights tell of the people whom they heard: none stay where a run failed
            shutil.rmtree(folder, ignore_errors=True)


def fetch_network(network: NetworkSeed, folder: Path) -> FinishedTraining:
    """Put the files of a network into a folder, which is made.

    Raises:
        MethodError: a file is not in the storage, or not what the card of its training names.
    """
    folder.mkdir(exist_ok=True)
    for name in network.card["sha256"]:
        content = read_stored(network.files[name]) if name in network.files else None
        if content is None:
            raise MethodError(f"{name} of {network} is not in the portal’s storage. Put it back, or train again.")
        (folder / name).write_bytes(content)
    (folder / CARD).write_text(json.dumps(network.card), encoding="utf-8")
    return read_training(folder)


def forget_speaker(name: str, trainings: QuerySet[NetworkTraining]) -> None:
    """Take a speaker out of the voices that networks of these trainings mixed, before the trainings are deleted."""
    runs = AnonymizationRun.objects.filter(network__training__in=trainings).only("voices").iterator()
    while some := list(islice(runs, RUNS_AT_ONCE)):
        for run in some:
            for voice in run.voices.values():
                voice.get("mixture", {}).pop(name, None)
        AnonymizationRun.objects.bulk_update(some, ["voices"])


def _list_held() -> set[str]:
    """Return the runs with such networks, by their keys as texts, whose jobs have not ended."""
    runs = AnonymizationRun.objects.filter(network__isnull=False, job__state__in=ACTIVE_STATES)
    return {str(pk) for pk in runs.order_by().values_list("pk", flat=True)}
