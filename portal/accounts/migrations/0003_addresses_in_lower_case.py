"""Addresses are looked up in lower case; no two differ by their case alone."""

from django.db import migrations
from django.db.models.functions import Lower


def lower_addresses(apps, schema_editor):
    apps.get_model('accounts', 'User').objects.update(email=Lower('email'))


class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0002_tokens_and_notices'),
    ]

    operations = [
        migrations.RunPython(lower_addresses, migrations.RunPython.noop),
    ]
