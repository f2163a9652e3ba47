"""A study is analysed by a real worker, which is killed in the middle of the figures."""

import os
import signal

import pytest
from django.core.files.storage import default_storage
from django.db import transaction

from listening.analysis.analyse import analyse
from listening.analysis.bundle import read_inputs
from listening.analysis.figures import list_figures
from listening.app.models import Analysis
from listening.app.results.services import start_analysis
from portal.jobs.models import JobState
from tests.listening.results.answered import CHOSEN, make_answered
from tests.portal.processes.programs import processes_of, wait_for_end, wait_until


def stored(key):
    with default_storage.open(key) as file:
        return file.read()


@pytest.mark.slow  # two whole analyses
def test_analysis_continues_after_a_kill_and_is_what_it_would_have_been(standing, tmp_path):
    processes = processes_of(standing.worker, tmp_path)
    with transaction.atomic():  # the scheduler would otherwise find a closed study and have it analysed, too
        study = make_answered(evaluators=10, trials=4, systems=1, tasks=["similarity", "naturalness"])
        analysis = start_analysis(study, None, CHOSEN)

    def drawn():
        return Analysis.objects.values_list("figures", flat=True).get(pk=analysis.pk)

    wait_until(lambda: len(drawn()) >= 8, "two figures")
    for pid in processes:
        os.kill(pid, signal.SIGKILL)
    kept = drawn()
    before = Analysis.objects.values_list("inputs", "results", "fingerprint").get(pk=analysis.pk)
    ended = wait_for_end(analysis.job)
    assert (ended.state, ended.attempt) == (JobState.SUCCEEDED, 2)
    analysis.refresh_from_db()
    assert analysis.is_ready
    assert (analysis.inputs, analysis.results, analysis.fingerprint) == before
    assert analysis.figures.items() >= kept.items()
    inputs, settings = read_inputs(stored(analysis.inputs))
    results = analyse(inputs, settings)
    assert stored(analysis.results) == results.as_json().encode()
    files = {path: figure for figure in list_figures(results) for path in figure.files}
    assert set(analysis.figures) == set(files)
    assert len(kept) < len(files)
    for path in sorted(kept)[:4]:
        assert stored(analysis.figures[path]) == files[path].draw([path])[path]
