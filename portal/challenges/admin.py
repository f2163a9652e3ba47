"""The operator's page of corpora: whose they are and who may see them. Nothing of their speech is shown."""

from __future__ import annotations

from django.contrib import admin
from django.http import HttpRequest

from portal.challenges.models import Corpus


@admin.register(Corpus)
class CorpusAdmin(admin.ModelAdmin):
    list_display = ("name", "created_by", "is_shared")
    search_fields = ("name",)
    fields = ("name", "created_by", "is_shared")
    readonly_fields = ("name",)

    def has_add_permission(self, request: HttpRequest) -> bool:  # noqa: ARG002
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Corpus | None = None) -> bool:  # noqa: ARG002
        return False
