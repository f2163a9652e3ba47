
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('core', '0002_worker_pulses'),
    ]

    operations = [
        migrations.CreateModel(
            name='CachedValue',
            fields=[
                ('cache_key', models.CharField(max_length=255, primary_key=True, serialize=False)),
                ('value', models.TextField()),
                ('expires', models.DateTimeField(db_index=True)),
            ],
            options={
                'db_table': 'core_cache',
            },
        ),
    ]
