from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ("labeling", "0003_comparisons"),
    ]

    operations = [
        migrations.CreateModel(
            name="RolloutScores",
            fields=[
                ("key", models.CharField(max_length=64, primary_key=True, serialize=False)),
                ("rewards", models.JSONField(help_text="1.0 or 0.0 for each answer, in order.")),
            ],
        ),
        migrations.AddField(
            model_name="export",
            name="filter",
            field=models.JSONField(blank=True, default=dict, help_text="What was left out for its variance, and why."),
        ),
    ]
