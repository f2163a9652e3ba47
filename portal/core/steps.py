"""A next step that an app above takes, named by the one below that starts it.

An app imports nothing from above, yet what it does goes on there: an accepted submission is evaluated. The caller
declares that function by its dotted name and calls it as if it had been imported, in its own transaction; a reader sees
what follows, and the portal does not start when a name leads nowhere.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.utils.module_loading import import_string

_declared: list[Step] = []


class Step:
    """A function of an app above, such as ``Step("evaluation.app.attacks.services.start_attack")``."""

    def __init__(self, function: str) -> None:
        self.function = function
        _declared.append(self)

    def __call__(self, **arguments: Any) -> Any:
        function: Callable[..., Any] = import_string(self.function)
        return function(**arguments)


def check_steps() -> None:
    """Resolve every declared step; to be called when all apps are loaded.

    Raises:
        ImproperlyConfigured: a name leads to nothing that can be called.
    """
    for step in _declared:
        try:
            found = import_string(step.function)
        except ImportError as error:
            raise ImproperlyConfigured(f"The next step {step.function} does not exist: {error}") from error
        if not callable(found):
            raise ImproperlyConfigured(f"The next step {step.function} is no function.")
