"""Maintenance mode in real programs: several web servers, and a worker that ends its job."""

import requests
from django.core.management import call_command

from portal.jobs.models import JobState
from tests.portal.processes.programs import items_of, let_go, make_steps, wait_for_end, wait_for_items, wait_until
from tests.portal.processes.uploading import WebServer


def statuses(servers, path="/"):
    return [requests.get(f"{server.address}{path}", timeout=30).status_code for server in servers]


def test_all_web_servers_refuse_and_the_worker_ends_what_it_runs_alone(alone, tmp_path):
    alone.stand()
    servers = [WebServer(alone), WebServer(alone)]
    first, second = tmp_path / "first", tmp_path / "second"
    running = make_steps(first, held_at=2)
    wait_for_items(first, 2)
    assert statuses(servers) == [200, 200]
    call_command("maintenance", "on")
    wait_until(lambda: statuses(servers) == [503, 503], "that both refuse")
    assert statuses(servers, "/health/live") == [200, 200]
    waiting = make_steps(second, items=1)
    let_go(first)
    assert wait_for_end(running).state == JobState.SUCCEEDED
    call_command("maintenance", "on", "--wait")
    restarted = WebServer(alone)
    assert statuses([restarted]) == [503]
    waiting.refresh_from_db()
    assert (waiting.state, second.exists()) == (JobState.WAITING, False)
    call_command("maintenance", "off")
    wait_until(lambda: statuses([*servers, restarted]) == [200, 200, 200], "that all let visitors in")
    assert wait_for_end(waiting).state == JobState.SUCCEEDED
    assert (items_of(first), items_of(second)) == (list(range(12)), [0])
    alone.kill_all()
