"""What the scheduler does for listening tests from time to time."""

from __future__ import annotations

from datetime import timedelta

from listening.app.monitor.services import flag_sessions
from listening.app.results.services import start_due_analyses
from listening.app.results.waves import end_waves
from listening.app.sessions import block_leases
from listening.app.withdrawal.services import finish_erasing, remind_of_people
from portal.core.clock import read_clock
from portal.jobs.scheduler import periodic_task


@periodic_task(every=timedelta(minutes=1))
def expire_leases() -> None:
    """End sessions that were silent for too long, and offer their blocks again."""
    block_leases.expire_leases(read_clock())
    block_leases.expire_silent(read_clock())


@periodic_task(every=timedelta(minutes=10))
def forget_networks() -> None:
    """Forget from which network address a session was begun, a day after."""
    block_leases.forget_networks(read_clock())


@periodic_task(every=timedelta(seconds=30))
def flag_answers() -> None:
    """Look at what came in, so that a flag stands on the monitor within a minute."""
    flag_sessions(read_clock())


@periodic_task(every=timedelta(minutes=1))
def let_further_evaluators_in() -> None:
    """Measure the precision of tests whose wave has ended, and open the next one where it is not reached."""
    end_waves()


@periodic_task(every=timedelta(minutes=1))
def analyse_closed_studies() -> None:
    """Analyse what was closed while somebody still listened, once the last one has ended."""
    start_due_analyses()


@periodic_task(every=timedelta(minutes=1))
def erase_withdrawn_answers() -> None:
    """Delete files with answers of people who withdrew, where that did not succeed at once."""
    finish_erasing()


@periodic_task(every=timedelta(hours=12))
def remind_of_personal_data() -> None:
    """Mail organizers when the time is over for which evaluators were told that they are known."""
    remind_of_people(read_clock())
