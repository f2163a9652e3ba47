from django.urls import include, path

from portal.leaderboard import views
from portal.leaderboard.policy import views as policy_views
from portal.leaderboard.publication import views as publication_views
from portal.leaderboard.published_results import views as published_results_views

leaderboards = (
    [
        path("", views.leaderboard_detail, name="detail"),
        path("policy/", policy_views.policy, name="policy"),
        path("recipe/", policy_views.recipe, name="recipe"),
        path("recipe.toml", policy_views.recipe_file, name="recipe-file"),
        path("publish/", publication_views.publish, name="publish"),
        path("publish/again/", publication_views.publish_again, name="publish-again"),
        path("unpublish/", publication_views.unpublish, name="unpublish"),
        path("freeze/", publication_views.freeze, name="freeze"),
        path("unfreeze/", publication_views.unfreeze, name="unfreeze"),
        path("leaderboard.csv", views.leaderboard_csv, name="csv"),
        path("leaderboard.json", views.leaderboard_json, name="json"),
        path("leaderboard.tex", views.leaderboard_latex, name="latex"),
        path("figures/<slug:figure>.<str:extension>", views.leaderboard_figure, name="figure"),
    ],
    "leaderboard",
)

published = (
    [
        path("", published_results_views.published_results, name="results"),
        path("published.csv", published_results_views.published_csv, name="csv"),
        path("published.json", published_results_views.published_json, name="json"),
        path("published.tex", published_results_views.published_latex, name="latex"),
        path("figure.<str:extension>", published_results_views.published_figure, name="figure"),
    ],
    "published",
)

listeners = ([path("listeners.csv", views.listeners_csv, name="leaderboard-csv")], "listeners")

urlpatterns = [
    path("editions/<slug:edition>/leaderboard/", include(leaderboards)),
    path("editions/<slug:edition>/leaderboard/", include(listeners)),
    path("published-results/", include(published)),
]
