"""Django's settings, all derived from the environment (`environment.py`); nothing else is read."""

import gc
import os
import secrets
import sys
from pathlib import Path

import dj_database_url
from csp.constants import NONE, SELF

from portal.config.environment import ImproperlyConfigured, read_environment
from portal.core.network_addresses import own_address

# Loading the portal makes 300,000 objects that stay: to look for circles among them takes a sixth of the time. What has
# loaded it goes back to less (`portal/jobs/apps.py`).
gc.set_threshold(1_000_000)

BASE_DIR = Path(__file__).resolve().parents[2]
FILES_DIR = BASE_DIR / "portal" / "files"  # in a checkout links, in an installed portal the folders themselves
# What to type for the command line of this portal.
PROGRAM = "manage.py" if (BASE_DIR / "manage.py").is_file() else "voiceprivacy"
try:
    ENVIRONMENT = read_environment(os.environ)
except ImproperlyConfigured as problem:
    sys.exit(str(problem))


def _ready_folder(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK | os.X_OK):
            raise PermissionError(None, "it may not be written")
    except OSError as error:
        sys.exit(f"The data folder {folder} cannot be used ({error.strerror}). Fix it, or set PORTAL_DATA_DIR.")
    return folder


def _kept_secret(file: Path) -> str:
    """Return the secret of this installation; made at the first start, readable by its owner only."""
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        if not (kept := file.read_text().strip()):
            sys.exit(f"The file {file} is empty. Remove it and start again; everybody has to log in again.")
        return kept
    secret = secrets.token_urlsafe(48)
    with os.fdopen(descriptor, "w") as stream:
        stream.write(secret)
    return secret


DATA_DIR = _ready_folder(ENVIRONMENT["DATA_DIR"])
DEBUG = ENVIRONMENT["DEBUG"]
SECRET_KEY = ENVIRONMENT["SECRET_KEY"] or _kept_secret(DATA_DIR / "secret_key")
SECRET_KEY_FALLBACKS = ENVIRONMENT["SECRET_KEY_FALLBACKS"]
ALLOWED_HOSTS = ENVIRONMENT["ALLOWED_HOSTS"]

OWN_APPS = [
    "portal.core",
    "portal.accounts",
    "portal.jobs",
    "portal.challenges",
    "portal.corpora",
    "portal.teams",
    "portal.submissions",
    "anonymization.app",
    "evaluation.app",
    "listening.app",
    "portal.home",
    "portal.deletion",
    "portal.operations",
    "portal.api",
    "portal.demo",
]
INSTALLED_APPS = [
    *OWN_APPS,
    "allauth",
    "allauth.account",
    "allauth.mfa",
    "django_countries",
    "rest_framework",
    "drf_spectacular",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.humanize",
    "django.contrib.messages",
    "django.contrib.sessions",
    "django.contrib.staticfiles",
]

MIDDLEWARE = [
    "portal.core.logs.name_request",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "csp.middleware.CSPMiddleware",
    "portal.operations.maintenance.refuse_visitors",
    "portal.core.errors.show_error_pages",
    "listening.app.sessions.middleware.show_pages_to_evaluators",
    "portal.core.confirmation.AskFirst",
    "portal.accounts.middleware.require_second_factor",
]

CSRF_FAILURE_VIEW = "portal.core.errors.form_expired"
ROOT_URLCONF = "portal.config.urls"
WSGI_APPLICATION = "portal.config.wsgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [FILES_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]

# Database -----------------------------------------------------------------------------------------

DATABASES = {
    "default": dj_database_url.parse(ENVIRONMENT["DATABASE_URL"] or f"sqlite:///{DATA_DIR / 'portal.sqlite3'}")
}
if DATABASES["default"]["ENGINE"] == "django.db.backends.sqlite3":
    DATABASES["default"]["OPTIONS"] = {
        "timeout": 30,
        "transaction_mode": "IMMEDIATE",
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA cache_size=-20000;",
    }
    # A file, so that several processes can be tested against it.
    DATABASES["default"]["TEST"] = {"NAME": DATA_DIR / "test.sqlite3"}
else:
    DATABASES["default"] |= {"CONN_MAX_AGE": 60, "CONN_HEALTH_CHECKS": True}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# Processes ----------------------------------------------------------------------------------------

ADDRESS = ENVIRONMENT["ADDRESS"]
WEB_THREADS = ENVIRONMENT["WEB_THREADS"]
WORKER_PROCESSES = ENVIRONMENT["WORKER_PROCESSES"]

# The address of the portal in mails that a job sends, where no request tells it.
SITE_URL = ENVIRONMENT["SITE_URL"]
if not SITE_URL:
    SITE_URL = (
        f"https://{ALLOWED_HOSTS[0].lstrip('.')}"
        if ENVIRONMENT["HTTPS"] and ALLOWED_HOSTS
        else f"http://{own_address(ADDRESS)}"
    )

# Queue --------------------------------------------------------------------------------------------

BROKER_DIR = DATA_DIR / "queue"
CELERY_TASK_DEFAULT_QUEUE = "light"
CELERY_BROKER_URL = ENVIRONMENT["BROKER_URL"] or "filesystem://localhost"
JOBS_PER_TEAM = ENVIRONMENT["JOBS_PER_TEAM"]
JOB_MEMORY_MB = ENVIRONMENT["JOB_MEMORY_MB"]
CARD_JOBS = ENVIRONMENT["CARD_JOBS"]
JOB_HEARTBEAT_S = ENVIRONMENT["JOB_HEARTBEAT_S"]
JOB_LOST_AFTER_S = ENVIRONMENT["JOB_LOST_AFTER_S"]
JOB_SOFT_LIMIT_S = ENVIRONMENT["JOB_SOFT_LIMIT_S"]
JOB_HARD_LIMIT_S = ENVIRONMENT["JOB_HARD_LIMIT_S"]
SWEEP_EVERY_S = ENVIRONMENT["SWEEP_EVERY_S"]
if CELERY_BROKER_URL.startswith("filesystem"):
    # Checks of archives and mails take seconds: they do not wait behind computations of minutes.
    CELERY_BROKER_TRANSPORT_OPTIONS = {
        "data_folder_in": BROKER_DIR / "messages",
        "polling_interval": 0.5,
        "first": ("mail", "intake", "light"),
    }
elif CELERY_BROKER_URL.startswith("redis"):
    CELERY_BROKER_TRANSPORT_OPTIONS = {
        # A page that makes a job waits for the queue no longer than this; the scheduler sends the job later.
        "max_retries": 0,
        "socket_connect_timeout": 3,
        "socket_timeout": 5,
        # Redis gives a message back after this time; no job may run longer.
        "visibility_timeout": JOB_HARD_LIMIT_S + 600,
    }
else:
    CELERY_BROKER_TRANSPORT_OPTIONS = {"max_retries": 0, "read_timeout": 5, "write_timeout": 5}
CELERY_BROKER_CONNECTION_TIMEOUT = 3
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CONNECTION_MAX_RETRIES = None
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_SERIALIZER = "json"
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_ENABLE_REMOTE_CONTROL = False
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_WORKER_REDIRECT_STDOUTS = False
CELERY_WORKER_MAX_TASKS_PER_CHILD = 100

# Files --------------------------------------------------------------------------------------------

FILES = ENVIRONMENT["FILES_URL"]
STORAGES = {
    "default": {
        "BACKEND": "portal.core.s3_storage.BucketStorage",
        "OPTIONS": {
            "bucket_name": FILES.bucket,
            "location": FILES.prefix,
            "endpoint_url": FILES.endpoint or None,
            "region_name": FILES.region or None,
        }
        # Without them those of the environment, as usual for S3.
        | ({"access_key": FILES.access_key, "secret_key": FILES.secret_key} if FILES.access_key else {}),
    }
    if FILES.bucket
    else {
        "BACKEND": "portal.core.storage.AtomicFileSystemStorage",
        "OPTIONS": {"location": FILES.folder or DATA_DIR / "files"},
    },
    "staticfiles": {
        "BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"
        if DEBUG
        else "portal.core.storage.ModuleManifestStorage"
    },
}
IMPORT_ROOTS = [_ready_folder(DATA_DIR / "import"), *ENVIRONMENT["IMPORT_ROOTS"]]
UPLOAD_DIR = _ready_folder(DATA_DIR / "uploads")
# The folder of external commands is read by `anonymization.methods.registry` itself; here it was only checked.
ANONYMIZER_THREADS = ENVIRONMENT["ANONYMIZER_THREADS"]
AUDIO_LINK_S = ENVIRONMENT["AUDIO_LINK_S"]
X_ACCEL = ENVIRONMENT["X_ACCEL"] and not FILES.bucket  # what is in a bucket only the portal reads
STATIC_URL = "static/"
STATIC_ROOT = DATA_DIR / "static"
STATICFILES_DIRS = [FILES_DIR / "static"]

# People -------------------------------------------------------------------------------------------

AUTH_USER_MODEL = "accounts.User"
AUTHENTICATION_BACKENDS = ["allauth.account.auth_backends.AuthenticationBackend"]
LOGIN_URL = "account_login"
LOGIN_REDIRECT_URL = "home"
LOGOUT_REDIRECT_URL = "home"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}", "OPTIONS": options}
    for name, options in (
        ("UserAttributeSimilarityValidator", {"user_attributes": ("name", "email")}),
        ("MinimumLengthValidator", {}),
        ("CommonPasswordValidator", {}),
    )
]
# An e-mail address is the log-in name, must be shown to be one's own, and tells nobody that it has an account.
ACCOUNT_ADAPTER = "portal.teams.adapter.InvitingAdapter"
ACCOUNT_CHANGE_EMAIL = True
ACCOUNT_EMAIL_NOTIFICATIONS = True
ACCOUNT_EMAIL_SUBJECT_PREFIX = ""
ACCOUNT_EMAIL_VERIFICATION = "mandatory"
ACCOUNT_LOGIN_METHODS = {"email"}
ACCOUNT_LOGIN_ON_EMAIL_CONFIRMATION = True
ACCOUNT_LOGIN_ON_PASSWORD_RESET = True  # the mailed link lets the owner in, even while others guess passwords
ACCOUNT_PREVENT_ENUMERATION = True
ACCOUNT_REAUTHENTICATION_REQUIRED = True
ACCOUNT_SESSION_REMEMBER = True
ACCOUNT_SIGNUP_FIELDS = ["email*", "password1*"]
ACCOUNT_USER_MODEL_USERNAME_FIELD = None
ACCOUNT_FORMS = {
    "login": "portal.accounts.forms.LogInForm",
    "signup": "portal.accounts.forms.SignUpForm",
    "add_email": "portal.accounts.forms.ChangeAddressForm",
    "change_password": "portal.accounts.forms.ChangePasswordForm",
    "set_password": "portal.accounts.forms.SetPasswordForm",
    "reset_password": "portal.accounts.forms.ForgottenPasswordForm",
    "reset_password_from_key": "portal.accounts.forms.NewPasswordForm",
    "reauthenticate": "portal.accounts.forms.ConfirmPasswordForm",
}
SECOND_FACTOR_REQUIRED = ENVIRONMENT["SECOND_FACTOR_REQUIRED"]
MFA_ADAPTER = "portal.accounts.adapter.SecondFactorAdapter"
MFA_SUPPORTED_TYPES = ["totp", "recovery_codes"]
MFA_TOTP_ISSUER = "VoicePrivacy Portal"
MFA_FORMS = {
    "authenticate": "portal.accounts.forms.CodeForm",
    "reauthenticate": "portal.accounts.forms.ConfirmCodeForm",
    "activate_totp": "portal.accounts.forms.FirstCodeForm",
}
# Throttles are counted per visitor; the address that our own proxy added is the visitor's.
ALLAUTH_TRUSTED_PROXY_COUNT = 1 if ENVIRONMENT["BEHIND_PROXY"] else 0
# In the database, so that all web processes count together and a restart forgives nothing.
CACHES = {
    "default": {
        "BACKEND": "django.core.cache.backends.db.DatabaseCache",
        "LOCATION": "core_cache",
        "OPTIONS": {"MAX_ENTRIES": 100_000},
    }
}
MAIL_SERVER = ENVIRONMENT["MAIL_URL"]
DEFAULT_FROM_EMAIL = SERVER_EMAIL = ENVIRONMENT["MAIL_FROM"]
EMAIL_BACKEND = (
    "django.core.mail.backends.smtp.EmailBackend" if MAIL_SERVER else "portal.core.mail.ReadableConsoleBackend"
)
EMAIL_TIMEOUT = 10
if MAIL_SERVER:
    EMAIL_HOST, EMAIL_PORT = MAIL_SERVER.host, MAIL_SERVER.port
    EMAIL_HOST_USER, EMAIL_HOST_PASSWORD = MAIL_SERVER.user, MAIL_SERVER.password
    EMAIL_USE_TLS, EMAIL_USE_SSL = MAIL_SERVER.starttls, MAIL_SERVER.tls
LANGUAGE_CODE = "en-gb"
TIME_ZONE = "UTC"
USE_TZ = True
LANGUAGES_BIDI = ["ar", "ckb", "dv", "fa", "he", "ps", "sd", "ug", "ur", "yi"]  # as listening.texts.RIGHT_TO_LEFT
USE_I18N = True

# Security -----------------------------------------------------------------------------------------

CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        **{key: [SELF] for key in ("script-src", "style-src", "img-src", "media-src", "connect-src", "form-action")},
        "worker-src": [SELF],
        **{key: [NONE] for key in ("default-src", "base-uri", "frame-ancestors", "object-src")},
    }
}
SESSION_ENGINE = "portal.core.sessions"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
if ENVIRONMENT["HTTPS"]:
    SECURE_SSL_REDIRECT = True
    SESSION_COOKIE_SECURE = True
    CSRF_COOKIE_SECURE = True
    SECURE_HSTS_SECONDS = 31_536_000
    SECURE_HSTS_INCLUDE_SUBDOMAINS = ENVIRONMENT["HSTS_SUBDOMAINS"]
    SECURE_HSTS_PRELOAD = ENVIRONMENT["HSTS_PRELOAD"]
    SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]  # both are the operator's choice
    SECURE_REDIRECT_EXEMPT = [r"^health/", r"^metrics$"]
if ENVIRONMENT["BEHIND_PROXY"]:
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")

# Crowd platforms ----------------------------------------------------------------------------------

PROLIFIC_TOKEN = ENVIRONMENT["PROLIFIC_TOKEN"]
PROLIFIC_URL = ENVIRONMENT["PROLIFIC_URL"]

# API ----------------------------------------------------------------------------------------------

# Of one access token, of one person by session, from one address of visitors.
API_REQUESTS_PER_MINUTE = {"token": 600, "user": 600, "address": 120}
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "portal.api.access.TokenAuthentication",
        "portal.api.access.PageAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated", "portal.api.access.HasScope"],
    "DEFAULT_THROTTLE_CLASSES": ["portal.api.access.Throttle"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["portal.api.access.StrictJSONParser"],
    "DEFAULT_SCHEMA_CLASS": "portal.api.schema.ApiSchema",
    "DEFAULT_METADATA_CLASS": None,
    "EXCEPTION_HANDLER": "portal.api.problems.answer",
    "NUM_PROXIES": 1 if ENVIRONMENT["BEHIND_PROXY"] else 0,
}
SPECTACULAR_SETTINGS = {
    "TITLE": "VoicePrivacy Portal",
    "DESCRIPTION": "From a team's archive to a verified, ranked leaderboard.",
    "VERSION": "1",
    "TAGS": [
        {"name": "me", "description": "Your account and what is yours."},
        {
            "name": "editions",
            "description": "Editions: data and requirements, teams, leaderboards, audit log.",
        },
        {"name": "teams", "description": "Teams, their members and invitations, and the organizer's decision."},
        {"name": "uploads", "description": "Archives come by the tus protocol 1.0.0, as `vp submit` sends them."},
        {"name": "submissions", "description": "Submissions with files, problems and progress; attacks on them."},
        {"name": "systems", "description": "The recomputed numbers of a system, to its own people the reported ones."},
        {"name": "studies", "description": "Results of listening tests, and new tests of recordings of one's own."},
        {"name": "engines", "description": "The portal's own attackers and recognisers."},
        {"name": "network-trainings", "description": "Networks of anonymisers that organizers train on their corpora."},
        {"name": "corpora", "description": "Recipes that follow from corpora, for organizers."},
        {"name": "schema", "description": "This description for programs."},
    ],
    "OAS_VERSION": "3.1.1",
    "SCHEMA_PATH_PREFIX": "/api",
    "COMPONENT_SPLIT_REQUEST": True,
    "POSTPROCESSING_HOOKS": ["portal.api.schema.add_errors"],
    "ENUM_GENERATE_CHOICE_DESCRIPTION": False,
}

# Watching -----------------------------------------------------------------------------------------

METRICS_TOKEN = ENVIRONMENT["METRICS_TOKEN"]
SENTRY_DSN = ENVIRONMENT["SENTRY_DSN"]

# Logs ---------------------------------------------------------------------------------------------

LOG_LEVEL = ENVIRONMENT["LOG_LEVEL"]
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "line": {"format": "%(asctime)s %(levelname)s %(name)s: %(message)s"},
        "json": {"()": "portal.core.logs.JsonLine"},
    },
    "filters": {
        "secrets": {"()": "portal.core.logs.WithoutSecrets"},
        "refusals": {"()": "portal.core.logs.BriefRefusals"},
    },
    "handlers": {
        "console": {
            "class": "logging.StreamHandler",
            "formatter": ENVIRONMENT["LOG_FORMAT"],
            "filters": ["refusals", "secrets"],
        }
    },
    "root": {"handlers": ["console"], "level": LOG_LEVEL},
    "loggers": {
        "fontTools": {"level": "WARNING"},
        # Starts and ends of jobs, which a collector of logs wants and a terminal does not.
        "portal.jobs.states": {
            "level": "INFO" if (ENVIRONMENT["LOG_FORMAT"], LOG_LEVEL) == ("json", "WARNING") else LOG_LEVEL
        },
        # A form that was filled in wrongly, or a page that does not exist, is no event of the server.
        "django.request": {"level": "ERROR"},
    },
}
