from django.apps import AppConfig


class ListeningConfig(AppConfig):
    name = "listening.app"
    label = "listening"
