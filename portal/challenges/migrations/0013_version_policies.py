from django.db import migrations, models


def keep_policies(apps, schema_editor):
    """Give each version of a recipe the policy that its edition ranks by: one held for all of them until now."""
    for edition in apps.get_model("challenges", "Edition").objects.exclude(leaderboard_policy={}):
        edition.recipe_versions.update(policy=edition.leaderboard_policy)


class Migration(migrations.Migration):
    dependencies = [("challenges", "0012_speech_retention")]

    operations = [
        migrations.AddField("recipeversion", "policy", models.JSONField(blank=True, default=dict)),
        migrations.RunPython(keep_policies, migrations.RunPython.noop),
    ]
