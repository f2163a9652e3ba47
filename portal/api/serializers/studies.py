"""What listeners said as the API gives it."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from listening.analysis.contents import CONTENTS
from listening.analysis.tables import Table
from listening.models import Study
from listening.results.selectors import Shown


class StudySerializer(serializers.Serializer[Shown]):
    """A listening study with results."""

    name = serializers.SlugField(source="study.name", help_text="By which addresses know it.")
    title = serializers.CharField(source="study.title")
    form = serializers.ChoiceField(Study.Form.choices, source="study.form")
    tasks = serializers.ListField(child=serializers.CharField(), source="study.tasks")
    is_simulated = serializers.BooleanField(
        source="study.is_simulated", help_text="Its answers come from a program; nobody listened."
    )
    is_published = serializers.BooleanField(help_text="False: only the edition's organizers see this analysis.")
    published_at = serializers.DateTimeField(source="study.results_published_at", allow_null=True)
    closed_at = serializers.DateTimeField(source="study.closed_at", allow_null=True)


class ColumnSerializer(serializers.Serializer[Any]):
    """A column of a table."""

    name = serializers.CharField()
    title = serializers.CharField()
    meaning = serializers.CharField()


class TableSerializer(serializers.Serializer[Table]):
    """A table: its columns, and rows of as many cells; rates are shares in [0, 1], empty cells null."""

    name = serializers.CharField()
    title = serializers.SerializerMethodField()
    note = serializers.SerializerMethodField(help_text="How to read it.")
    columns = serializers.SerializerMethodField()
    rows = serializers.ListField(child=serializers.ListField())

    def get_title(self, table: Table) -> str:
        return CONTENTS[table.name].title

    def get_note(self, table: Table) -> str:
        return CONTENTS[table.name].note

    @extend_schema_field(ColumnSerializer(many=True))
    def get_columns(self, table: Table) -> list[dict[str, str]]:
        known = {column.name: column for column in CONTENTS[table.name].columns}
        return [
            {"name": name, "title": known[name].title, "meaning": known[name].meaning}
            for name in table.columns
            if name in known
        ]


class PlainTableSerializer(serializers.Serializer[Any]):
    """A table without words about its columns."""

    columns = serializers.ListField(child=serializers.CharField())
    rows = serializers.ListField(child=serializers.ListField())


class ResultsSerializer(serializers.Serializer[Any]):
    """Everything that an analysis found."""

    study = serializers.DictField(help_text="Name, title, form, tasks, scale, labels of systems, design.")
    settings = serializers.DictField(help_text="Of the analysis, its seed among them.")
    counts = serializers.DictField(child=serializers.IntegerField(), help_text="Listeners, sessions, ratings.")
    remarks = serializers.ListField(child=serializers.CharField(), help_text="What a reader has to know.")
    versions = serializers.DictField(child=serializers.CharField(), help_text="Of the analysis and its libraries.")
    tables = serializers.DictField(child=PlainTableSerializer(), help_text="By `scores/name`, such as `raw/summary`.")
