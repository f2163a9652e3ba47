from django.apps import AppConfig


class ChallengesConfig(AppConfig):
    name = "portal.challenges"
    label = "challenges"
