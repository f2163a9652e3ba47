from django.apps import AppConfig

from portal.core.panels import add_panel


class ListeningConfig(AppConfig):
    name = "listening"

    def ready(self) -> None:
        add_panel("board", "listening.results.panels.board_panel")
        add_panel("system", "listening.results.panels.system_panel")
        add_panel("edition", "listening.results.panels.edition_panel")
