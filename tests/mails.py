"""A mail server for tests: it keeps what it gets."""

import socketserver
import threading
from email import message_from_bytes, policy


class Mails(socketserver.ThreadingTCPServer):
    """A mail server that keeps what it gets."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _MailHandler)
        self.kept = []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def find(self, address, words):
        """Text of the newest mail to this address with these words in its subject or text."""
        texts = (f"{one['Subject']}\n{one.get_content()}" for one in reversed(self.kept) if address in one["To"])
        return next((text for text in texts if words in text), "")


class _MailHandler(socketserver.StreamRequestHandler):
    def handle(self):
        self.wfile.write(b"220 ready\r\n")
        for line in self.rfile:
            word = line[:4].upper()
            if word == b"DATA":
                self.wfile.write(b"354 go on\r\n")
                lines = iter(self.rfile.readline, b".\r\n")
                text = b"".join(line.removeprefix(b".") for line in lines)
                self.server.kept.append(message_from_bytes(text, policy=policy.default))
            self.wfile.write(b"221 bye\r\n" if word == b"QUIT" else b"250 ok\r\n")
            if word == b"QUIT":
                return
