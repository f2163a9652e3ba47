"""The addresses of trained attackers, beneath those of a system."""

from __future__ import annotations

from django.urls import URLPattern, path

from portal.results import training_views

patterns: list[URLPattern] = [
    path("<slug:name>/trainings/", training_views.training_list, name="trainings"),
    path("<slug:name>/trainings/new/", training_views.new_training, name="new-training"),
    path("<slug:name>/trainings/<int:training>/", training_views.training_detail, name="training"),
    path("<slug:name>/trainings/<int:training>/live", training_views.training_live, name="training-live"),
    path("<slug:name>/trainings/<int:training>/values.csv", training_views.training_csv, name="training-csv"),
    path("<slug:name>/trainings/<int:training>/values.json", training_views.training_json, name="training-json"),
    path(
        "<slug:name>/trainings/<int:training>/<int:seed>/attacker.zip",
        training_views.training_attacker,
        name="training-attacker",
    ),
]
