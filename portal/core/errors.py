"""What a service raises where a wish cannot be fulfilled."""


class NotPossible(Exception):  # noqa: N818
    """The wish came too late or at the wrong time; the message says why."""
