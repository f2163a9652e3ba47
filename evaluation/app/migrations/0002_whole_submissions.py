import django.db.models.deletion
from django.db import migrations, models


def name_data_sets(apps, _):
    """Every number names its data set; until now it was known by its run."""
    value = apps.get_model('evaluation', 'MetricValue')
    run = apps.get_model('evaluation', 'EvaluationRun')
    for pk, name in run.objects.values_list('pk', 'data_set__name'):
        value.objects.filter(run=pk).update(data_set=name)


class Migration(migrations.Migration):

    dependencies = [
        ('challenges', '0002_editions'),
        ('evaluation', '0001_initial'),
    ]

    operations = [
        migrations.CreateModel(
            name='ScoreSet',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('data_set', models.CharField(max_length=80)),
                ('gender', models.CharField(blank=True, choices=[('', 'all'), ('f', 'female'), ('m', 'male'), ('x', 'mixed')], max_length=1)),
                ('attack_model', models.CharField(max_length=30)),
                ('training', models.CharField(max_length=10)),
                ('enrolment', models.CharField(max_length=10)),
                ('speech', models.CharField(max_length=10)),
                ('target_count', models.PositiveIntegerField()),
                ('nontarget_count', models.PositiveIntegerField()),
                ('key', models.CharField(max_length=200)),
            ],
            options={
                'ordering': ['data_set', 'attack_model', 'training'],
            },
        ),
        migrations.AlterModelOptions(
            name='metricvalue',
            options={'ordering': ['data_set', 'metric', 'gender']},
        ),
        migrations.RemoveConstraint(
            model_name='metricvalue',
            name='number_has_one_identity',
        ),
        migrations.AddField(
            model_name='metricvalue',
            name='agrees',
            field=models.BooleanField(null=True),
        ),
        migrations.AddField(
            model_name='metricvalue',
            name='basis',
            field=models.CharField(choices=[('audio', 'from the audio'), ('scores', 'from the scores'), ('counts', 'from word counts'), ('transcripts', 'from the transcripts'), ('similarity', 'from the similarity matrices'), ('values', 'from the values of its data sets'), ('claim', 'claimed, not recomputed')], default='audio', max_length=12),
        ),
        migrations.AddField(
            model_name='metricvalue',
            name='claimed',
            field=models.FloatField(null=True),
        ),
        migrations.AddField(
            model_name='metricvalue',
            name='claimed_in',
            field=models.CharField(blank=True, max_length=400),
        ),
        migrations.AddField(
            model_name='metricvalue',
            name='claimed_text',
            field=models.CharField(blank=True, max_length=60),
        ),
        migrations.AddField(
            model_name='metricvalue',
            name='data_set',
            field=models.CharField(blank=True, max_length=80),
        ),
        migrations.AddField(
            model_name='metricvalue',
            name='enrolment',
            field=models.CharField(blank=True, max_length=10),
        ),
        migrations.AddField(
            model_name='metricvalue',
            name='speech',
            field=models.CharField(blank=True, max_length=10),
        ),
        migrations.AddField(
            model_name='metricvalue',
            name='training',
            field=models.CharField(blank=True, max_length=10),
        ),
        migrations.AlterField(
            model_name='evaluationrun',
            name='data_set',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='challenges.dataset'),
        ),
        migrations.AlterField(
            model_name='metricvalue',
            name='gender',
            field=models.CharField(blank=True, choices=[('', 'all'), ('f', 'female'), ('m', 'male'), ('x', 'mixed')], max_length=1),
        ),
        migrations.RunPython(name_data_sets, migrations.RunPython.noop),
        migrations.AddConstraint(
            model_name='metricvalue',
            constraint=models.UniqueConstraint(fields=('run', 'data_set', 'metric', 'estimator', 'gender', 'attack_model', 'training', 'enrolment', 'speech'), name='number_has_one_identity'),
        ),
        migrations.AddField(
            model_name='scoreset',
            name='run',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='score_sets', to='evaluation.evaluationrun'),
        ),
        migrations.AddConstraint(
            model_name='scoreset',
            constraint=models.UniqueConstraint(fields=('run', 'data_set', 'training', 'enrolment', 'speech'), name='score_set_once_in_run'),
        ),
    ]
