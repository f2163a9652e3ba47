"""Which methods have networks; these take longer than signal processing."""


def has_networks(method):
    return any(part.state in ("frozen", "trained") for part in method.pipeline)
