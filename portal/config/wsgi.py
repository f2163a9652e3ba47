"""The web application, for any WSGI server."""

import os
import sys

from django.core.wsgi import get_wsgi_application

from portal.core.logs import hide_secrets_of_server

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.config.settings")
application = get_wsgi_application()
hide_secrets_of_server()

from portal.core.health import check_static_files  # noqa: E402 - it needs the settings

if _missing := check_static_files():
    sys.stderr.write(f"{_missing}\n")
    sys.exit(4)  # gunicorn's own code of an application that cannot be loaded

from portal.core.maintenance import keep_looking  # noqa: E402

keep_looking()
