"""The tables of the pages of corpora: corpora, speakers, utterances, and what systems made of one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.urls import reverse
from django.utils.http import urlencode
from django.utils.text import Truncator

from common.tables import Cell, Column, Table, number_columns, plain_table
from portal.challenges.models import Corpus, Speaker, Utterance
from portal.core.labels import duration, moment_cell
from portal.corpora.selectors import CorpusSummary

SYNTHETIC = "synthetic speech"
SHOWN_OF_TRANSCRIPT = 160


def ribbon_of(corpus: Corpus | None) -> str:
    """Every table that names a corpus without real speakers says so."""
    return SYNTHETIC if corpus and corpus.is_synthetic else ""


def corpora_table(summaries: Iterable[CorpusSummary]) -> Table:
    columns = [Column("corpus", "Corpus"), *number_columns("Speakers", "Utterances", "Speech")]
    columns += [Column(head.lower(), head) for head in ("Audio", "Licence", "Imported")]
    rows: list[list[Cell | str]] = [
        [
            Cell(one.corpus.name, link=one.corpus.get_absolute_url(), ribbon=ribbon_of(one.corpus)),
            f"{one.speakers:,}",
            f"{one.utterances:,}",
            duration(one.seconds),
            _audio(one),
            one.corpus.licence or "not stated",
            moment_cell(one.corpus.created_at),
        ]
        for one in summaries
    ]
    return plain_table("Corpora with their speech", columns, rows, caption="Corpora", is_caption_hidden=True)


def _audio(one: CorpusSummary) -> str:
    if one.is_complete:
        return "complete"
    return f"{one.with_audio:,} of {one.utterances:,}" if one.with_audio else "lists only"


def speakers_table(corpus: Corpus, speakers: Iterable[Speaker]) -> Table:
    """Speakers as `selectors.speaker_table` counts them."""
    columns = [Column("speaker", "Speaker"), Column("gender", "Gender"), *number_columns("Utterances", "Speech")]
    address = reverse("corpora:utterances", args=[corpus.name])
    rows: list[list[Cell | str]] = [
        [
            Cell(one.name, link=f"{address}?{urlencode({'speaker': one.name})}"),
            one.get_gender_display(),
            f"{one.utterance_count:,}",  # type: ignore[attr-defined]
            duration(one.seconds),  # type: ignore[attr-defined]
        ]
        for one in speakers
    ]
    return plain_table("Speakers with their speech", columns, rows, caption="Speakers", is_caption_hidden=True)


def utterances_table(corpus: Corpus, utterances: Iterable[Utterance]) -> Table:
    columns = [Column(head.lower(), head) for head in ("Utterance", "Speaker", "Gender")]
    columns += [*number_columns("Length"), Column("transcript", "Transcript", kind="text")]
    rows: list[list[Cell | str]] = [
        [
            Cell(one.name, link=reverse("corpora:utterance", args=[corpus.name, one.name])),
            str(one.speaker),
            one.speaker.get_gender_display(),
            duration(one.duration_s),
            Truncator(one.transcript).chars(SHOWN_OF_TRANSCRIPT),
        ]
        for one in utterances
    ]
    return plain_table("Utterances found", columns, rows, caption="Utterances", is_caption_hidden=True, styles="strip")


def versions_table(files: Iterable[Any]) -> Table:
    """What systems made of an utterance, from the submitted files."""
    columns = [Column(head.lower(), head) for head in ("System", "Data set", "Listen")]
    rows: list[list[Cell | str]] = [
        [
            Cell(str(system), link=system.get_absolute_url(), aside=f"version {file.submission.version}"),
            file.data_set.name,
            Cell("Compare with the original", link=reverse("systems:compare", args=[system.name, file.pk])),
        ]
        for file in files
        for system in [file.submission.system]
    ]
    return plain_table("Systems that anonymised this utterance", columns, rows)
