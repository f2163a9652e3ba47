from django.db import migrations


def name_attackers(apps, schema_editor):
    """Let attacks by trained attackers keep recipe and comparison, and name those that compare otherwise apart."""
    runs = apps.get_model("evaluation", "EvaluationRun").objects
    for run in runs.filter(kind="attack", parameters__has_key="trained"):
        training = runs.filter(pk=run.parameters["trained"]).first()
        seed = run.parameters.get("seed", 0)
        if training is None:  # it was of a submission that was deleted
            run.parameters = run.parameters | {"seed": seed, "recipe": "unknown recipe", "scoring": "unknown comparison"}
            run.save(update_fields=["parameters"])
            continue
        preset = run.parameters.get("preset", "")
        fits_plda = training.parameters["recipe"].get("back_end") == "plda"
        if fits_plda and preset in ("", "2022"):
            scoring = "PLDA"
        else:
            scoring = "cosine" if preset in ("", "2024") else f"cosine as in {preset}"
        usual = "PLDA" if fits_plda else "cosine"
        run.parameters = run.parameters | {"seed": seed, "recipe": training.recipe, "scoring": scoring}
        if scoring != usual:
            run.engine = f"trained-{training.pk}-s{seed}-{preset}"
        run.save(update_fields=["parameters", "engine"])


class Migration(migrations.Migration):
    dependencies = [("evaluation", "0010_runs_by_version")]

    operations = [migrations.RunPython(name_attackers, migrations.RunPython.noop)]
