"""What an organizer says of an edition, and its audit trail."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from evaluation.protocols.recipes import shipped_editions
from portal.accounts.models import User
from portal.api.serializers.fields import LineField
from portal.challenges.edition_forms import LARGEST_GB, MOST_ORGANIZERS
from portal.challenges.models import GIGABYTE, Corpus
from portal.challenges.recipe_checks import LARGEST_RECIPE_BYTES
from portal.challenges.selectors import corpora_for_edition
from portal.core.models import AuditEvent
from portal.teams.audit_trail import deed_of, details_of


class EditionFieldsSerializer(serializers.Serializer[Any]):
    """The fields of an edition: `protocol` names a shipped recipe, `recipe_text` is an own one in its place."""

    title = LineField(max_length=120)
    name = serializers.SlugField(max_length=40, help_text="Small letters; part of addresses and names of systems.")
    description = serializers.CharField(required=False, allow_blank=True, max_length=10_000)
    protocol = serializers.ChoiceField(shipped_editions(), required=False)
    recipe_text = serializers.CharField(
        required=False, trim_whitespace=False, max_length=LARGEST_RECIPE_BYTES, help_text="TOML."
    )
    track = LineField(required=False, allow_blank=True, max_length=40, help_text="Where the recipe has several.")
    corpus = serializers.SlugField(
        required=False, allow_null=True, max_length=60, help_text="Its name; null: no speech."
    )
    is_listed = serializers.BooleanField(required=False, help_text="Visitors find it and teams can register.")
    registration_opens_at = serializers.DateTimeField(required=False, allow_null=True)
    registration_closes_at = serializers.DateTimeField(required=False, allow_null=True)
    submissions_open_at = serializers.DateTimeField(required=False, allow_null=True)
    submissions_close_at = serializers.DateTimeField(required=False, allow_null=True)
    late_until = serializers.DateTimeField(required=False, allow_null=True)
    submissions_per_team = serializers.IntegerField(required=False, min_value=1, max_value=10_000)
    largest_archive_bytes = serializers.IntegerField(required=False, min_value=1, max_value=LARGEST_GB * GIGABYTE)
    audio_required = serializers.BooleanField(required=False)
    scores_required = serializers.BooleanField(required=False)
    description_required = serializers.BooleanField(required=False)
    organizers = serializers.ListField(
        child=serializers.EmailField(max_length=254), required=False, max_length=MOST_ORGANIZERS,
        help_text="E-mail addresses of accounts, your own among them.",
    )  # fmt: skip

    def validate_corpus(self, name: str | None) -> Corpus | None:
        """One that the asker may choose."""
        if name is None:
            return None
        corpora = corpora_for_edition(self.context["user"], self.context.get("edition"))
        found = corpora.filter(name=name).first()
        if found is None:
            raise serializers.ValidationError(f"There is no corpus {name} that you may choose.")
        return found

    def validate_organizers(self, addresses: list[str]) -> list[User]:
        """The accounts of the addresses; whoever asks stays among them."""
        found = {address: User.objects.filter(email__iexact=address).first() for address in addresses}
        if unknown := [address for address, person in found.items() if person is None]:
            raise serializers.ValidationError([f"No account has the address {address}." for address in unknown])
        people = list(dict.fromkeys(person for person in found.values() if person is not None))
        if self.context["user"] not in people:
            raise serializers.ValidationError("You cannot remove yourself; another organizer can.")
        return people

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """One recipe: a shipped one has no text of its own."""
        if {"protocol", "recipe_text"} <= attrs.keys():
            raise serializers.ValidationError({"recipe_text": "Give a protocol or an own recipe, not both."})
        if "protocol" in attrs:
            return attrs | {"recipe_text": ""}
        if "recipe_text" in attrs:
            return attrs | {"recipe_text": attrs["recipe_text"].replace("\r\n", "\n"), "protocol": ""}
        if not self.partial:
            raise serializers.ValidationError({"protocol": "Name a shipped recipe, or give an own one as recipe_text."})
        return attrs


class CopySerializer(serializers.Serializer[Any]):
    """What a copy is called."""

    title = LineField(max_length=120)
    name = serializers.SlugField(max_length=40, help_text="Small letters; part of addresses and names of systems.")


class AuditSearchSerializer(serializers.Serializer[Any]):
    """Whose trail."""

    team = serializers.IntegerField(required=False, min_value=1, max_value=2**31, help_text="Of this team only.")


class AuditSerializer(serializers.Serializer[AuditEvent]):
    """Something that a person or the portal did."""

    at = serializers.DateTimeField()
    actor = serializers.SerializerMethodField()
    action = serializers.CharField()
    deed = serializers.SerializerMethodField(help_text="The same in words.")
    subject = serializers.CharField()
    kind = serializers.SerializerMethodField(help_text="What the subject is, such as team.")
    details = serializers.SerializerMethodField()

    def get_actor(self, event: AuditEvent) -> str | None:
        return str(event.actor) if event.actor else None

    def get_deed(self, event: AuditEvent) -> str:
        return deed_of(event)

    def get_kind(self, event: AuditEvent) -> str:
        return event.subject_type.rpartition(".")[2]

    def get_details(self, event: AuditEvent) -> str:
        return details_of(event)
