from django.apps import AppConfig


class AnonymizationConfig(AppConfig):
    name = "anonymization"

    def ready(self) -> None:
        from anonymization import receivers  # noqa: F401 (registers them)
