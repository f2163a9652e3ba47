"""A double of Sentry on this machine: it keeps what it is sent, as it came over the wire."""

import gzip
import json
import threading
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

UNPACK = {"gzip": gzip.decompress}
with suppress(ImportError):  # Sentry's library packs with it where it is installed
    import brotli

    UNPACK["br"] = brotli.decompress


class Double:
    """The envelopes that came, and the address (DSN) to send them to.

    An envelope is lines of JSON: its own header, then for each item a header and the item.
    """

    def __init__(self, server, envelopes):
        self.dsn = f"http://0123456789abcdef@127.0.0.1:{server.server_port}/7"
        self.envelopes = envelopes

    @property
    def text(self):
        return "\n".join(self.envelopes)

    @property
    def events(self):
        """The reports of errors; anything else that comes is a failure."""
        found = []
        for envelope in self.envelopes:
            lines = [json.loads(line) for line in envelope.splitlines()]
            assert [header["type"] for header in lines[1::2]] == ["event"]
            found += lines[2::2]
        return found


@contextmanager
def listen_as_sentry():
    """A double that listens for as long as the block runs."""
    envelopes = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            envelopes.append(UNPACK[self.headers["Content-Encoding"]](body).decode())
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield Double(server, envelopes)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
