from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('jobs', '0002_job_worker'),
    ]

    operations = [
        migrations.AddField(
            model_name='job',
            name='edition',
            field=models.CharField(blank=True, max_length=40),
        ),
    ]
