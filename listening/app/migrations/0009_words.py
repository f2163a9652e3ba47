from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("listening", "0008_session_state_labels")]

    operations = [
        migrations.AlterField(
            model_name="studytext",
            name="kind",
            field=models.CharField(
                choices=[
                    ("consent", "Consent"),
                    ("role-play", "Role Play"),
                    ("instructions", "Instructions"),
                    ("thanks", "Thanks"),
                    ("words", "Words"),
                ],
                max_length=12,
            ),
        ),
    ]
