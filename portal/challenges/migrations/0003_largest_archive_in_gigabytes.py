import django.core.validators
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("challenges", "0002_editions"),
    ]

    operations = [
        migrations.AlterField(
            model_name="edition",
            name="largest_archive_bytes",
            field=models.PositiveBigIntegerField(
                default=20000000000, validators=[django.core.validators.MinValueValidator(1)]
            ),
        ),
    ]
