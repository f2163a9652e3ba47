from django.apps import AppConfig


class CorporaConfig(AppConfig):
    name = "portal.corpora"
    label = "corpora"
