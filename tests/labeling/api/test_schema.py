"""The OpenAPI description is whole: nothing in it had to be guessed, and every operation says what it is."""

from drf_spectacular.drainage import GENERATOR_STATS
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.validation import validate_schema

from labeling.models import ApiToken


def test_the_schema_is_made_without_a_warning_and_is_valid():
    GENERATOR_STATS.reset()

    schema = SchemaGenerator().get_schema(request=None, public=True)
    validate_schema(schema)

    assert [*GENERATOR_STATS._warn_cache, *GENERATOR_STATS._error_cache] == []


def test_every_operation_says_what_it_does_which_scope_it_needs_and_how_it_refuses():
    schema = SchemaGenerator().get_schema(request=None, public=True)

    for path, methods in schema["paths"].items():
        for method, described in methods.items():
            summary, _, scope = described["description"].rpartition("\n\nScope: ")
            assert summary.rstrip().endswith("."), (method, path)
            assert scope.strip("`.") in ApiToken.Scope.values, (method, path)
            assert described["responses"]["default"]["content"]["application/json"]["schema"] == {
                "$ref": "#/components/schemas/Error"
            }
