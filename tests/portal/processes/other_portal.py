"""Another portal for tests: its own data folder and database, and the portal's program as its operator runs it."""

import os
import subprocess
import sys

import requests
from django.conf import settings

from tests.portal.processes.programs import PATIENCE_S, free_port, wait_until


class OtherPortal:
    """Another portal: its own data folder and database."""

    def __init__(self, folder, database_url=""):
        self.folder = folder
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("PORTAL_", "DJANGO_"))}
        clean |= {"PORTAL_DATA_DIR": str(folder), "PORTAL_ADDRESS": f"127.0.0.1:{free_port()}"}
        self.environment = clean | ({"PORTAL_DATABASE_URL": database_url} if database_url else {})

    @property
    def address(self):
        return f"http://{self.environment['PORTAL_ADDRESS']}"

    def run(self, *words):
        """Exit code and what it says."""
        answer = subprocess.run(
            [sys.executable, "-m", "portal.config", *map(str, words)],
            cwd=settings.BASE_DIR,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        return answer.returncode, answer.stdout + answer.stderr

    def start_web(self):
        command = [sys.executable, "-m", "portal.config", "web"]
        server = subprocess.Popen(command, cwd=settings.BASE_DIR, env=self.environment)

        def is_live():
            try:
                return requests.get(f"{self.address}/health/live", timeout=5).ok
            except requests.RequestException:
                assert server.poll() is None
                return False

        wait_until(is_live, "the web server")
        return server
