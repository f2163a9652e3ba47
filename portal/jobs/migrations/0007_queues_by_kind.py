from django.db import migrations, models

QUEUES = [
    ('mail', 'mails'), ('intake', 'what people send'), ('light', 'short jobs'), ('cpu', 'computing'), ('gpu', 'graphics card'),
]
INTAKE = ('intake', 'import-corpus', 'import-ratings')


def give_queues(apps, schema_editor):
    """The queue of jobs on files is three now."""
    jobs = apps.get_model('jobs', 'Job').objects.filter(queue='io')
    jobs.filter(kind='send-notice').update(queue='mail')
    jobs.filter(kind__in=INTAKE).update(queue='intake')
    jobs.update(queue='light')


class Migration(migrations.Migration):

    dependencies = [
        ('jobs', '0006_teams_take_turns'),
    ]

    operations = [
        migrations.AlterField(
            model_name='job',
            name='queue',
            field=models.CharField(choices=QUEUES, max_length=8),
        ),
        migrations.AddField(
            model_name='job',
            name='engine',
            field=models.CharField(blank=True, default='', max_length=120),
            preserve_default=False,
        ),
        migrations.AddField(
            model_name='job',
            name='memory_bytes',
            field=models.PositiveBigIntegerField(default=0),
        ),
        migrations.RunPython(give_queues, migrations.RunPython.noop),
    ]
