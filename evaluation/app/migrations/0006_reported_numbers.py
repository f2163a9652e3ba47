from django.db import migrations, models


class Migration(migrations.Migration):
    """The fields are called reported; their columns keep their names."""

    dependencies = [
        ("evaluation", "0005_spread_of_seeds"),
    ]

    operations = [
        migrations.AlterField("metricvalue", "claimed", models.FloatField(db_column="claimed", null=True)),
        migrations.AlterField(
            "metricvalue", "claimed_text", models.CharField(blank=True, db_column="claimed_text", max_length=60)
        ),
        migrations.AlterField(
            "metricvalue", "claimed_in", models.CharField(blank=True, db_column="claimed_in", max_length=400)
        ),
        migrations.RenameField("metricvalue", "claimed", "reported"),
        migrations.RenameField("metricvalue", "claimed_text", "reported_text"),
        migrations.RenameField("metricvalue", "claimed_in", "reported_in"),
    ]
