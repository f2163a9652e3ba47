"""A field that more than one shape has."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers


class LineField(serializers.CharField):
    """One line of text: line ends and other control characters would break mails and tables."""

    def to_internal_value(self, data: Any) -> str:
        text = " ".join(super().to_internal_value(data).split())
        if not text.isprintable():
            raise serializers.ValidationError(
                "Use letters, digits and signs only; found a character that cannot be seen."
            )
        return text
