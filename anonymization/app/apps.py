from django.apps import AppConfig


class AnonymizationConfig(AppConfig):
    name = "anonymization.app"
    label = "anonymization"
