"""What an app starts in an app above, by name, and the modules that register themselves."""

import pytest
from django.core.exceptions import ImproperlyConfigured

from portal.core import steps
from portal.jobs.apps import find_registering_modules
from portal.jobs.scheduler import _entries


@pytest.fixture(autouse=True)
def none_declared(monkeypatch):
    monkeypatch.setattr(steps, "_declared", [])


@pytest.mark.parametrize("name", ["evaluation.app.attacks.services.start_nothing", "nowhere.start", "math.pi"])
def test_portal_does_not_start_with_a_step_that_leads_nowhere(name):
    steps.Step("math.sqrt")
    steps.check_steps()
    steps.Step(name)
    with pytest.raises(ImproperlyConfigured, match=name):
        steps.check_steps()


def test_modules_of_feature_folders_register_themselves():
    found = set(find_registering_modules())
    assert {"portal.submissions.handlers", "portal.jobs.checks", "evaluation.app.attacker_training.handlers"} <= found
    assert not [
        name
        for name in found
        if name.split(".")[0] not in {"portal", "anonymization", "evaluation", "listening", "tests"}
    ]
    assert {entry.work.__name__ for entry in _entries} >= {"expire_leases", "tidy_uploads", "delete_orphans"}
