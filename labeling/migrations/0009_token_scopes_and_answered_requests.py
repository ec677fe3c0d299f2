import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


def scope_to_scopes(apps, schema_editor):
    for token in apps.get_model("labeling", "ApiToken").objects.all():
        token.scopes = [token.scope]
        token.save(update_fields=["scopes"])


def scopes_to_scope(apps, schema_editor):
    for token in apps.get_model("labeling", "ApiToken").objects.all():
        token.scope = token.scopes[0] if len(token.scopes) == 1 else ""
        token.save(update_fields=["scope"])


class Migration(migrations.Migration):
    dependencies = [("labeling", "0008_answers_have_versions")]

    operations = [
        migrations.AddField(
            model_name="apitoken",
            name="scopes",
            field=models.JSONField(default=list, help_text="What the token opens, of what its owner may."),
        ),
        migrations.AlterField(
            model_name="apitoken", name="scope", field=models.CharField(max_length=40, default="")
        ),
        migrations.RunPython(scope_to_scopes, scopes_to_scope),
        migrations.RemoveField(model_name="apitoken", name="scope"),
        migrations.AlterField(
            model_name="apitoken",
            name="pool",
            field=models.ForeignKey(
                blank=True,
                help_text="Empty: every pool in which its owner has a role.",
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="api_tokens",
                to="labeling.pool",
            ),
        ),
        migrations.CreateModel(
            name="AnsweredRequest",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("key", models.CharField(max_length=200)),
                ("fingerprint", models.CharField(help_text="SHA-256 of method, address and body.", max_length=64)),
                ("status", models.PositiveIntegerField(help_text="Empty while the request is being answered.", null=True)),
                ("body", models.JSONField(help_text="Without anything that is shown only once.", null=True)),
                ("created_at", models.DateTimeField(auto_now_add=True, db_index=True)),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("user", "key"), name="request_answered_once")],
            },
        ),
    ]
