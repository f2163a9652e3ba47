from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("jobs", "0004_times_by_the_database")]
    operations = [migrations.AddField("job", "corpus", models.CharField(blank=True, max_length=60))]
