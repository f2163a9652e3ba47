"""What was sent is called a notification in code; its table keeps its name."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("teams", "0002_sent_notices"), ("jobs", "0001_initial")]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.RenameModel("SentNotice", "SentNotification"),
                migrations.AlterModelTable("sentnotification", "teams_sentnotice"),
                migrations.AlterField(
                    "sentnotification",
                    "job",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="sent_notifications", to="jobs.job"
                    ),
                ),
            ]
        )
    ]
