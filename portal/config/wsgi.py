"""The web application, for any WSGI server."""

import os

from django.core.wsgi import get_wsgi_application

from portal.core.logs import hide_secrets_of_server

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.config.settings")
application = get_wsgi_application()
hide_secrets_of_server()
