from django.apps import AppConfig


class ResultsConfig(AppConfig):
    name = "portal.results"
    label = "results"
