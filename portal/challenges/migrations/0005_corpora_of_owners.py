import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    """Corpora that are there stay open to all organizers, as they were; new ones are shared on purpose only."""

    dependencies = [
        ("challenges", "0004_leaderboard_policy"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]
    operations = [
        migrations.AddField(
            "corpus", "is_shared", models.BooleanField(default=True, verbose_name="shared with all organizers")
        ),
        migrations.AlterField(
            "corpus", "is_shared", models.BooleanField(default=False, verbose_name="shared with all organizers")
        ),
        migrations.AlterField(
            "corpus",
            "created_by",
            models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                to=settings.AUTH_USER_MODEL,
                verbose_name="owner",
            ),
        ),
    ]
