"""The page of a system with all numbers of 2022, and the numbers of 40 systems, on a database of its own.

Run from the root of the repository: ``python -m benchmarks.results_page``. A submission has 72 verification tests, 16
recognition tests and 12 trial sets, so some 900 numbers. The yardstick renders the same template from numbers that are
at hand, in the same run. Prints (page) / (template), which has no budget, and the time of the page and that of the
numbers of 40 systems, each of which must stay at or below 100 ms of this process's own time.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from time import process_time

BUDGET_MS, SYSTEMS, REPEATS = 100.0, 40, 15


def main() -> int:
    """Print times and ratio; the exit status is 1 where a time is above the budget."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"PORTAL_DATA_DIR": folder, "DJANGO_SETTINGS_MODULE": "tests.settings"}
        import django

        django.setup()
        from django.test.utils import get_runner, setup_test_environment

        setup_test_environment()
        from django.conf import settings

        runner = get_runner(settings)(verbosity=0)
        databases = runner.setup_databases()
        try:
            return _measure()
        finally:
            runner.teardown_databases(databases)


def _measure() -> int:
    from django.template.loader import render_to_string
    from django.test import Client

    from evaluation.app.objective_results.selectors import ReadExtent, read_objective_values
    from portal.submissions.models import Submission
    from portal.systems.objective_results.pages import edition_system_page
    from portal.systems.selectors import make_view
    from tests.portal.factories import make_edition, make_submission, make_team, make_team_system
    from tests.portal.objective import all_numbers, make_objective_run

    edition = make_edition()
    for _ in range(SYSTEMS):
        system = make_team_system(make_team(edition))
        make_objective_run(make_submission(system), all_numbers(edition))
    client = Client()
    client.force_login(system.team.memberships.get().user)
    address = f"/systems/{system.name}/"
    answer = client.get(address)
    context = edition_system_page(answer.wsgi_request, make_view(answer.wsgi_request, system))
    page_ms = _least_ms(lambda: client.get(address))
    template_ms = _least_ms(lambda: render_to_string("systems/evaluated.html", context, request=answer.wsgi_request))
    chosen = list(Submission.objects.select_related("system__edition"))
    numbers_ms = _least_ms(lambda: read_objective_values(chosen, extent=ReadExtent.RANKED))
    count = len(context["values"].numbers)
    print(f"page of {count} numbers {page_ms:5.0f} ms (budget {BUDGET_MS:g} ms)   template alone {template_ms:5.0f} ms")
    print(f"numbers of {len(chosen)} systems {numbers_ms:5.0f} ms (budget {BUDGET_MS:g} ms)")
    print(f"ratio {page_ms / template_ms:.2f} (no budget)")
    return int(max(page_ms, numbers_ms) > BUDGET_MS)


def _least_ms(work: Callable[[], object]) -> float:
    times = []
    for _ in range(REPEATS):
        began = process_time()
        work()
        times.append(process_time() - began)
    return 1000 * min(times)


if __name__ == "__main__":
    sys.exit(main())
