from django.apps import AppConfig


class DeletionConfig(AppConfig):
    name = "portal.deletion"
    label = "deletion"
