"""The declined kinds of mail get another name in code; the column keeps its own."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("accounts", "0003_addresses_in_lower_case")]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.RenameField("user", "unwanted_notices", "unwanted_notifications"),
                migrations.AlterField(
                    "user",
                    "unwanted_notifications",
                    models.JSONField(
                        blank=True,
                        db_column="unwanted_notices",
                        default=list,
                        help_text="Kinds of mail that this person declined.",
                    ),
                ),
            ]
        )
    ]
