from django.urls import include, path

from portal.results import board_views

boards = (
    [
        path("", board_views.board_detail, name="detail"),
        path("policy/", board_views.policy, name="policy"),
        path("policy/live/", board_views.live, name="live"),
        path("policy/discard/", board_views.discard, name="discard"),
        path("publish/", board_views.publish, name="publish"),
        path("unpublish/", board_views.unpublish, name="unpublish"),
        path("freeze/", board_views.freeze, name="freeze"),
        path("unfreeze/", board_views.unfreeze, name="unfreeze"),
        path("board.csv", board_views.board_csv, name="csv"),
        path("board.json", board_views.board_json, name="json"),
        path("board.tex", board_views.board_latex, name="latex"),
        path("figures/<slug:figure>.<str:extension>", board_views.board_figure, name="figure"),
    ],
    "boards",
)

urlpatterns = [path("editions/<slug:edition>/board/", include(boards))]
