from django.db import migrations, models

JOINED = {
    'anonymize-gpu': 'anonymize', 'try-anonymizers-gpu': 'try-anonymizers', 'train-attacker-gpu': 'train-attacker',
}


def join_kinds(apps, schema_editor):
    """Jobs that need a graphics card are of the same kind as those that do not."""
    jobs = apps.get_model('jobs', 'Job').objects
    for before, kind in JOINED.items():
        jobs.filter(kind=before).update(kind=kind, needs_card=True)


def part_kinds(apps, schema_editor):
    """The way back."""
    jobs = apps.get_model('jobs', 'Job').objects
    for before, kind in JOINED.items():
        jobs.filter(kind=kind, needs_card=True).update(kind=before)


class Migration(migrations.Migration):

    dependencies = [
        ('jobs', '0007_queues_by_kind'),
    ]

    operations = [
        migrations.AddField(
            model_name='job',
            name='needs_card',
            field=models.BooleanField(default=False),
        ),
        migrations.RunPython(join_kinds, part_kinds),
    ]
