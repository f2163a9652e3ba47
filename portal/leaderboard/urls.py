from django.urls import include, path

from portal.leaderboard import views
from portal.leaderboard.policy import views as policy_views
from portal.leaderboard.publication import views as publication_views
from portal.leaderboard.published_results import views as published_results_views
from portal.leaderboard.recipe_versions import views as recipe_version_views

leaderboards = (
    [
        path("", views.leaderboard_detail, name="detail"),
        path("policy/", policy_views.policy, name="policy"),
        path("policy/live/", policy_views.live, name="live"),
        path("policy/discard/", policy_views.discard, name="discard"),
        path("publish/", publication_views.publish, name="publish"),
        path("publish/again/", recipe_version_views.publish_again, name="publish-again"),
        path("recipe/", recipe_version_views.versions, name="versions"),
        path("recipe/new/", recipe_version_views.new_version, name="new-version"),
        path("recipe/<int:number>/", recipe_version_views.version, name="version"),
        path("recipe/<int:number>/recipe.toml", recipe_version_views.version_recipe, name="version-recipe"),
        path("recipe/<int:number>/moves.csv", recipe_version_views.version_csv, name="version-csv"),
        path("recipe/<int:number>/adopt/", recipe_version_views.adopt_version, name="adopt-version"),
        path("recipe/<int:number>/withdraw/", recipe_version_views.withdraw_version, name="withdraw-version"),
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

urlpatterns = [
    path("editions/<slug:edition>/leaderboard/", include(leaderboards)),
    path("published-results/", include(published)),
]
