"""The portal's own settings, with one more address: a bare view that writes one row."""

from portal.config.settings import *  # noqa: F403

ROOT_URLCONF = "benchmarks._bare_urls"
