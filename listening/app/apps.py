from django.apps import AppConfig

from portal.core.panels import add_panel


class ListeningConfig(AppConfig):
    name = "listening.app"
    label = "listening"

    def ready(self) -> None:
        add_panel("leaderboard", "listening.app.results.panels.leaderboard_panel")
        add_panel("system", "listening.app.results.panels.system_panel")
        add_panel("edition", "listening.app.results.panels.edition_panel")
