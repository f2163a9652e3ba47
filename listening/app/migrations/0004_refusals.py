from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('listening', '0003_consent'),
    ]

    operations = [
        migrations.AddField(
            model_name='study',
            name='refusals',
            field=models.JSONField(blank=True, default=dict),
        ),
    ]
