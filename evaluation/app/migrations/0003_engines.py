"""Runs of attackers, recognisers and trainings beside those of measures and objective numbers."""

from django.db import migrations, models


def name_kinds(apps, schema_editor):
    runs = apps.get_model("evaluation", "EvaluationRun").objects
    runs.filter(data_set=None).update(kind="objective")
    runs.exclude(data_set=None).update(kind="measures")


KINDS = [
    ("measures", "measures of a data set"),
    ("objective", "objective numbers of a submission"),
    ("attack", "the portal's own attack"),
    ("recognition", "the portal's own speech recognition"),
    ("training", "training of a semi-informed attacker"),
]


class Migration(migrations.Migration):
    dependencies = [("evaluation", "0002_whole_submissions")]

    operations = [
        migrations.AddField(
            "evaluationrun", "kind", models.CharField(choices=KINDS, default="measures", max_length=12), preserve_default=False
        ),
        migrations.AddField("evaluationrun", "engine", models.CharField(blank=True, max_length=80)),
        migrations.AddField("evaluationrun", "parameters", models.JSONField(blank=True, default=dict)),
        migrations.RunPython(name_kinds, migrations.RunPython.noop),
    ]
