"""A store with S3's protocol for tests: moto, which this process serves on a port of its own.

It keeps what it holds while it is stopped, as a store does that is away for a while.
"""

import logging
import os
import socket
from contextlib import contextmanager

import pytest
from django.conf import settings
from django.core.files.storage import default_storage
from django.test import override_settings

KEYS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}
BUCKET = "portal-files"


def require_moto():
    """Skip the test with a sentence where moto is not installed; under CI that is a failure."""
    try:
        import moto.server
    except ImportError:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip("moto, the double of an S3 store, is not installed")
    return moto.server


def free_port():
    """A port of 127.0.0.1 that nobody uses."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Store:
    """The store, on a port that stays the same when it is started again."""

    def __init__(self):
        self._module, self.port, self._server = require_moto(), free_port(), None
        self.start()
        self.client().create_bucket(Bucket=BUCKET)

    def client(self):
        import boto3

        session = boto3.Session(aws_access_key_id="test", aws_secret_access_key="test", region_name="us-east-1")
        return session.client("s3", endpoint_url=self.endpoint)

    @property
    def endpoint(self):
        return f"http://127.0.0.1:{self.port}"

    @property
    def url(self):
        return f"s3://{BUCKET}/portal?endpoint={self.endpoint}&region=us-east-1"

    def start(self):
        self._server = self._module.ThreadedMotoServer(ip_address="127.0.0.1", port=self.port, verbose=False)
        self._server.start()

    def stop(self):
        if self._server is not None:
            self._server.stop()
            self._server = None

    def names(self):
        pages = self.client().get_paginator("list_objects_v2").paginate(Bucket=BUCKET)
        return [entry["Key"] for page in pages for entry in page.get("Contents", ())]

    def empty(self):
        client = self.client()
        for name in self.names():
            client.delete_object(Bucket=BUCKET, Key=name)

    def settings(self):
        """Django's storages with the portal's files in the bucket."""
        options = {"bucket_name": BUCKET, "location": "portal", "endpoint_url": self.endpoint}
        options |= {"region_name": "us-east-1", "access_key": "test", "secret_key": "test"}
        files = {"BACKEND": "portal.core.s3_storage.BucketStorage", "OPTIONS": options}
        return settings.STORAGES | {"default": files}


@pytest.fixture(scope="module")
def bucket_store():
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    found = Store()
    yield found
    found.stop()


@pytest.fixture
def bucket_files(bucket_store):
    """The portal's files are in the bucket, which is empty."""
    bucket_store.empty()
    with override_settings(STORAGES=bucket_store.settings()):
        yield default_storage


@contextmanager
def counted(storage):
    """The actions that are asked of a store meanwhile, each request once."""
    asked = []
    events = storage.connection.meta.client.meta.events

    def note(event_name, **_):
        asked.append(event_name.rpartition(".")[2])

    events.register("before-send.s3", note, unique_id="counted")
    try:
        yield asked
    finally:
        events.unregister("before-send.s3", unique_id="counted")
