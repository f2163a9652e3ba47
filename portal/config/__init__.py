"""Composition root: settings, addresses and processes. Imported by nobody."""

from portal.config.celery import app as celery_app

__all__ = ("celery_app",)
