"""Every setting of the application. Environment variables are read here and nowhere else."""

import os
from pathlib import Path

import dj_database_url
from csp.constants import NONE, SELF
from django.core.exceptions import ImproperlyConfigured

BASE_DIR = Path(__file__).resolve().parent.parent


def env_flag(name: str, *, default: bool) -> bool:
    """Read a yes/no variable; anything but 1, 0, true or false is refused."""
    found = os.environ.get(name, "").strip().lower()
    if found == "":
        return default
    if found in {"1", "true"}:
        return True
    if found in {"0", "false"}:
        return False
    raise ImproperlyConfigured(f"{name} is {found!r}; it must be 1, 0, true or false.")


def env_list(name: str) -> list[str]:
    """Read a comma-separated variable."""
    return [item.strip() for item in os.environ.get(name, "").split(",") if item.strip()]


def env_int(name: str, *, default: int) -> int:
    """Read a whole number, at least one."""
    found = os.environ.get(name, "").strip()
    if found == "":
        return default
    if not found.isdigit() or int(found) < 1:
        raise ImproperlyConfigured(f"{name} is {found!r}; it must be a whole number, at least 1.")
    return int(found)


def secret_key(*, debug: bool) -> str:
    """Take the key from the environment; on a developer's machine make one once and keep it with the data."""
    if key := os.environ.get("ASSAY_SECRET_KEY"):
        return key
    if not debug:
        raise ImproperlyConfigured(
            "ASSAY_SECRET_KEY is not set. Set it to a long random text, or set ASSAY_DEBUG=1 on your own machine."
        )
    from django.core.management.utils import get_random_secret_key

    kept = VAR_DIR / "secret_key"
    if not kept.exists():
        kept.touch(mode=0o600)
        kept.write_text(get_random_secret_key())
    return kept.read_text()


VAR_DIR = Path(os.environ.get("ASSAY_VAR", BASE_DIR / "var")).resolve()
VAR_DIR.mkdir(parents=True, exist_ok=True)

DEBUG = env_flag("ASSAY_DEBUG", default=True)
SECRET_KEY = secret_key(debug=DEBUG)
THIS_MACHINE = ["localhost", "127.0.0.1", "[::1]"]
ALLOWED_HOSTS = env_list("ASSAY_ALLOWED_HOSTS") or [*THIS_MACHINE, *(["testserver"] if DEBUG else [])]
CSRF_TRUSTED_ORIGINS = env_list("ASSAY_TRUSTED_ORIGINS")

INSTALLED_APPS = [
    "labeling.apps.LabelingConfig",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.humanize",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "axes",
    "csp",
    "django_htmx",
    "drf_spectacular",
    "rest_framework",
    "template_partials",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.auth.middleware.LoginRequiredMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "labeling.middleware.HtmxResponses",
    "labeling.middleware.LabelingErrors",
    "axes.middleware.AxesMiddleware",
]

ROOT_URLCONF = "labeling.urls"
WSGI_APPLICATION = "labeling.wsgi.application"
ASGI_APPLICATION = "labeling.asgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    }
]

DATABASES = {
    "default": dj_database_url.config("DATABASE_URL", default=f"sqlite:///{VAR_DIR / 'assay.sqlite3'}", conn_max_age=60)
}
if DATABASES["default"]["ENGINE"] == "django.db.backends.sqlite3":
    DATABASES["default"]["ENGINE"] = "labeling.sqlite"  # Django's, with writers that wait their turn
    DATABASES["default"]["OPTIONS"] = {
        "transaction_mode": "IMMEDIATE",  # a transaction that will write takes the lock first, instead of failing late
        "timeout": 60,  # seconds; its queue is unfair, and one of many writers may wait long
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
    }
    DATABASES["default"]["TEST"] = {"NAME": ":memory:"}

AUTH_USER_MODEL = "labeling.User"
AUTHENTICATION_BACKENDS = [
    "axes.backends.AxesStandaloneBackend",
    "sesame.backends.ModelBackend",
    "django.contrib.auth.backends.ModelBackend",
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "home"
LOGOUT_REDIRECT_URL = "login"
SESAME_MAX_AGE = 24 * 60 * 60
SESAME_ONE_TIME = True
AXES_FAILURE_LIMIT = 8
AXES_COOLOFF_TIME = 0.25  # hours
AXES_LOCKOUT_TEMPLATE = "labeling/locked_out.html"
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]

LANGUAGE_CODE = "en"
LANGUAGES = [("en", "English")]  # those that there are words for: docs/translating.md
LOCALE_PATHS = [BASE_DIR / "locale"]
TIME_ZONE = "UTC"
USE_I18N = True
USE_TZ = True

STATIC_URL = "static/"
STATIC_ROOT = VAR_DIR / "static"
STATIC_ROOT.mkdir(exist_ok=True)
WHITENOISE_USE_FINDERS = DEBUG  # a developer's machine needs no collectstatic
MEDIA_ROOT = VAR_DIR / "files"
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"
        if DEBUG
        else "whitenoise.storage.CompressedManifestStaticFilesStorage"
    },
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
DATA_UPLOAD_MAX_MEMORY_SIZE = 2 * 1024 * 1024  # an answer is short; files are streamed and not counted here
FILE_UPLOAD_MAX_MEMORY_SIZE = 1024 * 1024

CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [SELF],
        "script-src": [SELF],
        "style-src": [SELF],
        "img-src": [SELF, "data:"],
        "font-src": [SELF],
        "object-src": [NONE],
        "base-uri": [NONE],
        "frame-ancestors": [NONE],
        "form-action": [SELF],
    }
}
X_FRAME_OPTIONS = "DENY"
SECURE_REFERRER_POLICY = "same-origin"
SESSION_ENGINE = "labeling.sessions"
SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SECURE_SSL_REDIRECT = not DEBUG and env_flag("ASSAY_HTTPS", default=True)
SECURE_HSTS_SECONDS = 30 * 24 * 60 * 60 if SECURE_SSL_REDIRECT else 0
if env_flag("ASSAY_BEHIND_PROXY", default=False):
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "handlers": {"console": {"class": "logging.StreamHandler"}},
    "loggers": {"labeling": {"handlers": ["console"], "level": "INFO"}},
}

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "labeling.api.authentication.TokenAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["labeling.api.authentication.HasScope"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer", "labeling.api.browsing.PageRenderer"],
    "DEFAULT_PARSER_CLASSES": ["labeling.api.parsing.LimitedJSONParser", "labeling.api.parsing.PageFormParser"],
    "DEFAULT_THROTTLE_CLASSES": ["labeling.api.authentication.Requests"],
    "DEFAULT_SCHEMA_CLASS": "labeling.api.schema.Schema",
    "URL_FORMAT_OVERRIDE": None,  # the Accept header says what is wanted
    "EXCEPTION_HANDLER": "labeling.api.errors.error_response",
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Assay",
    "DESCRIPTION": "Everything that the pages do: pools, runs, rounds, answers, exports and curricula.",
    "VERSION": "1",
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "SERVE_INCLUDE_SCHEMA": False,
    "SERVE_PERMISSIONS": ["labeling.api.authentication.HasScope"],
    "COMPONENT_SPLIT_REQUEST": True,
    "POSTPROCESSING_HOOKS": ["labeling.api.schema.add_errors"],
}

# Assay's own
ASSAY_LEASE_SECONDS = env_int("ASSAY_LEASE_SECONDS", default=60)  # of a selection run; renewed every third of it
ASSAY_SLOT_MINUTES = env_int("ASSAY_SLOT_MINUTES", default=30)  # how long a question stays with an annotator
ASSAY_UNDO_SECONDS = env_int("ASSAY_UNDO_SECONDS", default=10)  # how long a submission can be taken back
ASSAY_MAX_UPLOAD_BYTES = env_int("ASSAY_MAX_UPLOAD_MB", default=2048) * 1024 * 1024
ASSAY_MAX_LINE_BYTES = env_int("ASSAY_MAX_LINE_MB", default=10) * 1024 * 1024
ASSAY_API_RATE = f"{env_int('ASSAY_API_REQUESTS_A_MINUTE', default=1200)}/min"  # of one token or person, per process
ASSAY_API_WRONG_TOKENS = "20/min"  # from one address, per process
FORM_RENDERER = "labeling.forms.rendering.FormRenderer"
