from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("submissions", "0002_uploads_and_submissions")]
    operations = [migrations.AddField("submission", "is_held", models.BooleanField(default=False))]
