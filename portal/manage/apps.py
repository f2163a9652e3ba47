from django.apps import AppConfig


class ManageConfig(AppConfig):
    name = "portal.manage"
    label = "manage"
