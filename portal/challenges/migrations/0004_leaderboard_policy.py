from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("challenges", "0003_largest_archive_in_gigabytes")]
    operations = [migrations.RenameField("edition", "board_policy", "leaderboard_policy")]
