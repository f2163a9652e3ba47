from django.urls import include, path

from portal.leaderboard import views

leaderboards = (
    [
        path("", views.leaderboard_detail, name="detail"),
        path("policy/", views.policy, name="policy"),
        path("policy/live/", views.live, name="live"),
        path("policy/discard/", views.discard, name="discard"),
        path("publish/", views.publish, name="publish"),
        path("publish/again/", views.publish_again, name="publish-again"),
        path("recipe/", views.versions, name="versions"),
        path("recipe/new/", views.new_version, name="new-version"),
        path("recipe/<int:number>/", views.version, name="version"),
        path("recipe/<int:number>/recipe.toml", views.version_recipe, name="version-recipe"),
        path("recipe/<int:number>/moves.csv", views.version_csv, name="version-csv"),
        path("recipe/<int:number>/adopt/", views.adopt_version, name="adopt-version"),
        path("recipe/<int:number>/withdraw/", views.withdraw_version, name="withdraw-version"),
        path("unpublish/", views.unpublish, name="unpublish"),
        path("freeze/", views.freeze, name="freeze"),
        path("unfreeze/", views.unfreeze, name="unfreeze"),
        path("leaderboard.csv", views.leaderboard_csv, name="csv"),
        path("leaderboard.json", views.leaderboard_json, name="json"),
        path("leaderboard.tex", views.leaderboard_latex, name="latex"),
        path("figures/<slug:figure>.<str:extension>", views.leaderboard_figure, name="figure"),
    ],
    "leaderboard",
)

published = (
    [
        path("", views.published_results, name="results"),
        path("published.csv", views.published_csv, name="csv"),
        path("published.json", views.published_json, name="json"),
        path("published.tex", views.published_latex, name="latex"),
        path("figures/<slug:figure>.<str:extension>", views.published_figure, name="figure"),
    ],
    "published",
)

anonymizers = (
    [
        path("", views.method_comparison, name="comparison"),
        path("anonymizers.csv", views.methods_csv, name="csv"),
        path("anonymizers.json", views.methods_json, name="json"),
        path("anonymizers.tex", views.methods_latex, name="latex"),
        path("figures/<slug:figure>.<str:extension>", views.method_figure, name="figure"),
    ],
    "anonymizers",
)

urlpatterns = [
    path("editions/<slug:edition>/leaderboard/", include(leaderboards)),
    path("published-results/", include(published)),
    path("anonymizers/", include(anonymizers)),
]
