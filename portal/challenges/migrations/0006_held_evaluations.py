from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("challenges", "0005_corpora_of_owners")]
    operations = [
        migrations.AddField(
            "edition",
            "holds_evaluations",
            models.BooleanField(
                default=False,
                help_text="Until an organizer has looked at them and releases them.",
                verbose_name="new evaluations wait",
            ),
        )
    ]
