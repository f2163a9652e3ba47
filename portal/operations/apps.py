from django.apps import AppConfig


class OperationsConfig(AppConfig):
    name = "portal.operations"
    label = "operations"
