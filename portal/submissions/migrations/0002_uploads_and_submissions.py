import django.db.models.deletion
import uuid
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('challenges', '0002_editions'),
        ('jobs', '0002_job_worker'),
        ('submissions', '0001_initial'),
        ('teams', '0001_initial'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='SubmissionEvent',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('at', models.DateTimeField(auto_now_add=True)),
                ('state', models.CharField(choices=[('received', 'Received'), ('checking', 'Checking'), ('refused', 'Refused'), ('accepted', 'Accepted'), ('evaluating', 'Evaluating'), ('evaluated', 'Evaluated'), ('failed', 'evaluation failed'), ('withdrawn', 'Withdrawn')], max_length=10)),
                ('note', models.TextField(blank=True)),
            ],
            options={
                'ordering': ['at', 'pk'],
            },
        ),
        migrations.CreateModel(
            name='SubmittedDocument',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('path', models.CharField(max_length=400)),
                ('kind', models.CharField(choices=[('results', 'Results'), ('scores', 'Scores'), ('hypotheses', 'Hypotheses'), ('similarity', 'similarity matrix'), ('description', 'system description'), ('other', 'Other')], max_length=12)),
                ('key', models.CharField(max_length=120)),
                ('bytes', models.PositiveBigIntegerField()),
                ('is_inherited', models.BooleanField(default=False)),
            ],
            options={
                'ordering': ['path'],
            },
        ),
        migrations.CreateModel(
            name='Upload',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('system_kind', models.CharField(blank=True, choices=[('primary', 'Primary'), ('contrastive', 'Contrastive')], max_length=12)),
                ('system_title', models.CharField(blank=True, max_length=120)),
                ('file_name', models.CharField(max_length=255)),
                ('size', models.PositiveBigIntegerField()),
                ('offset', models.PositiveBigIntegerField(default=0)),
                ('claimed_sha256', models.CharField(blank=True, max_length=64)),
                ('sha256', models.CharField(blank=True, max_length=64)),
                ('state', models.CharField(choices=[('receiving', 'Receiving'), ('complete', 'Complete'), ('refused', 'Refused'), ('abandoned', 'Abandoned'), ('expired', 'Expired')], default='receiving', max_length=10)),
                ('refusal', models.TextField(blank=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('last_byte_at', models.DateTimeField(blank=True, null=True)),
                ('expires_at', models.DateTimeField()),
                ('completed_at', models.DateTimeField(blank=True, null=True)),
            ],
            options={
                'ordering': ['-created_at'],
            },
        ),
        migrations.AddField(
            model_name='submission',
            name='errors',
            field=models.PositiveIntegerField(default=0),
        ),
        migrations.AddField(
            model_name='submission',
            name='evaluated_at',
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name='submission',
            name='inherits',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='heirs', to='submissions.submission'),
        ),
        migrations.AddField(
            model_name='submission',
            name='is_late',
            field=models.BooleanField(default=False),
        ),
        migrations.AddField(
            model_name='submission',
            name='job',
            field=models.OneToOneField(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='submission', to='jobs.job'),
        ),
        migrations.AddField(
            model_name='submission',
            name='notes',
            field=models.PositiveIntegerField(default=0),
        ),
        migrations.AddField(
            model_name='submission',
            name='report',
            field=models.CharField(blank=True, max_length=120),
        ),
        migrations.AddField(
            model_name='submission',
            name='report_summary',
            field=models.JSONField(blank=True, default=list),
        ),
        migrations.AddField(
            model_name='submission',
            name='state',
            field=models.CharField(choices=[('received', 'Received'), ('checking', 'Checking'), ('refused', 'Refused'), ('accepted', 'Accepted'), ('evaluating', 'Evaluating'), ('evaluated', 'Evaluated'), ('failed', 'evaluation failed'), ('withdrawn', 'Withdrawn')], default='accepted', max_length=10),
        ),
        migrations.AddField(
            model_name='submission',
            name='submitted_by',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='submissions', to=settings.AUTH_USER_MODEL),
        ),
        migrations.AddField(
            model_name='submission',
            name='warnings',
            field=models.PositiveIntegerField(default=0),
        ),
        migrations.AddField(
            model_name='submittedfile',
            name='converted_from',
            field=models.CharField(blank=True, max_length=80),
        ),
        migrations.AddField(
            model_name='submittedfile',
            name='is_inherited',
            field=models.BooleanField(default=False),
        ),
        migrations.AddField(
            model_name='submittedfile',
            name='received_as',
            field=models.CharField(blank=True, max_length=400),
        ),
        migrations.AddField(
            model_name='system',
            name='edition',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='systems', to='challenges.edition'),
        ),
        migrations.AddField(
            model_name='system',
            name='kind',
            field=models.CharField(blank=True, choices=[('primary', 'Primary'), ('contrastive', 'Contrastive')], max_length=12),
        ),
        migrations.AddField(
            model_name='system',
            name='label',
            field=models.CharField(blank=True, max_length=40),
        ),
        migrations.AddField(
            model_name='system',
            name='team',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='systems', to='teams.team'),
        ),
        migrations.AlterField(
            model_name='system',
            name='corpus',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='systems', to='challenges.corpus'),
        ),
        migrations.AddConstraint(
            model_name='system',
            constraint=models.UniqueConstraint(condition=models.Q(('label', ''), _negated=True), fields=('edition', 'label'), name='system_label_once_in_edition'),
        ),
        migrations.AddField(
            model_name='submissionevent',
            name='actor',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, to=settings.AUTH_USER_MODEL),
        ),
        migrations.AddField(
            model_name='submissionevent',
            name='submission',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='events', to='submissions.submission'),
        ),
        migrations.AddField(
            model_name='submitteddocument',
            name='submission',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='documents', to='submissions.submission'),
        ),
        migrations.AddField(
            model_name='upload',
            name='created_by',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='uploads', to=settings.AUTH_USER_MODEL),
        ),
        migrations.AddField(
            model_name='upload',
            name='edition',
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='uploads', to='challenges.edition'),
        ),
        migrations.AddField(
            model_name='upload',
            name='system',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='uploads', to='submissions.system'),
        ),
        migrations.AddField(
            model_name='upload',
            name='team',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='uploads', to='teams.team'),
        ),
        migrations.AddField(
            model_name='submission',
            name='upload',
            field=models.OneToOneField(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='submission', to='submissions.upload'),
        ),
        migrations.AddConstraint(
            model_name='submitteddocument',
            constraint=models.UniqueConstraint(fields=('submission', 'path'), name='submitted_document_once'),
        ),
    ]
