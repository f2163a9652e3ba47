from django.db import migrations


class Migration(migrations.Migration):

    dependencies = [
        ('core', '0004_unneeded_files'),
    ]

    operations = [
        migrations.RenameModel('Pulse', 'Heartbeat'),
    ]
