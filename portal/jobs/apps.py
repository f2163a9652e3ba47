from django.apps import AppConfig
from django.utils.module_loading import autodiscover_modules


class JobsConfig(AppConfig):
    name = "portal.jobs"
    label = "jobs"

    def ready(self) -> None:
        autodiscover_modules("handlers", "checks", "chores")
