"""What an app starts in an app above, by name, and the modules that register themselves."""

import pytest
from django.core.exceptions import ImproperlyConfigured

from portal.core import steps


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
