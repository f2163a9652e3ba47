import gc
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from django.apps import AppConfig, apps
from django.conf import settings

# Modules that register themselves: bodies of jobs, checks of health, work of the scheduler.
REGISTERING = ("handlers", "receivers", "checks", "periodic_tasks")


class JobsConfig(AppConfig):
    name = "portal.jobs"
    label = "jobs"

    def ready(self) -> None:
        for module in sorted(find_registering_modules()):
            import_module(module)
        # Everything is loaded but pages. It stays, and no later search for circles looks at it; Python's own threshold
        # of 700 new objects takes a tenth of the time of a page.
        gc.freeze()
        gc.set_threshold(10_000)


def find_registering_modules() -> Iterator[str]:
    """Dotted names of the modules in the portal's own apps, and in their feature folders, that register themselves."""
    for app in apps.get_app_configs():
        if app.name not in settings.OWN_APPS:
            continue  # an installed library
        folder = Path(app.path)
        for role in REGISTERING:
            for file in folder.rglob(f"{role}.py"):
                yield ".".join([app.name, *file.relative_to(folder).with_suffix("").parts])
