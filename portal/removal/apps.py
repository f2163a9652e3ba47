from django.apps import AppConfig


class RemovalConfig(AppConfig):
    name = "portal.removal"
    label = "removal"
