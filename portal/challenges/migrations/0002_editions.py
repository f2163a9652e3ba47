import django.core.validators
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('challenges', '0001_initial'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name='utterance',
            name='pcm_sha256',
            field=models.CharField(blank=True, help_text='Of the samples as little-endian int16; made when first needed.', max_length=64),
        ),
        migrations.CreateModel(
            name='Edition',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.SlugField(max_length=40, unique=True)),
                ('title', models.CharField(max_length=120)),
                ('description', models.TextField(blank=True)),
                ('protocol', models.CharField(blank=True, help_text='A shipped recipe, such as 2022.', max_length=10)),
                ('recipe_text', models.TextField(blank=True, help_text='TOML; takes the place of a shipped recipe.', verbose_name='own recipe')),
                ('track', models.CharField(blank=True, help_text='Where the recipe has several.', max_length=40)),
                ('is_listed', models.BooleanField(default=False, help_text='Visitors find it and teams can register.', verbose_name='listed')),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('registration_opens_at', models.DateTimeField(blank=True, null=True)),
                ('registration_closes_at', models.DateTimeField(blank=True, null=True)),
                ('submissions_open_at', models.DateTimeField(blank=True, null=True)),
                ('submissions_close_at', models.DateTimeField(blank=True, help_text='What comes later is marked late.', null=True, verbose_name='deadline')),
                ('late_until', models.DateTimeField(blank=True, help_text='Until then late submissions are taken.', null=True)),
                ('submissions_per_team', models.PositiveIntegerField(default=20, validators=[django.core.validators.MinValueValidator(1)])),
                ('largest_archive_bytes', models.PositiveBigIntegerField(default=21474836480, validators=[django.core.validators.MinValueValidator(1)])),
                ('audio_required', models.BooleanField(default=True)),
                ('scores_required', models.BooleanField(default=True)),
                ('description_required', models.BooleanField(default=False, verbose_name='system description required')),
                ('board_policy', models.JSONField(blank=True, default=dict)),
                ('draft_policy', models.JSONField(blank=True, default=dict)),
                ('published_at', models.DateTimeField(blank=True, null=True)),
                ('frozen_at', models.DateTimeField(blank=True, null=True, verbose_name='as of')),
                ('corpus', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='editions', to='challenges.corpus')),
                ('organizers', models.ManyToManyField(related_name='organized_editions', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ['-created_at', '-pk'],
            },
        ),
    ]
