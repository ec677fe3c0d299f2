"""The API for machines: JSON in and out, a token instead of a login, one shape for every error."""
