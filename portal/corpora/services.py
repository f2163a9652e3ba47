"""Everything that changes a corpus: starting its import, renaming it, sharing it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from django.conf import settings
from django.db import transaction

from portal.challenges.models import Corpus
from portal.challenges.services import DEMO
from portal.core import audit
from portal.corpora.selectors import may_import
from portal.jobs.models import Job, State
from portal.jobs.services import NotPossible, create_job

DEMO_CORPUS = (settings.FILES_DIR / "demo").resolve()  # from which it is imported; others may be named so, too
RESERVED_CORPORA = frozenset({"import", "upload"})


@dataclass(frozen=True)
class ImportOptions:
    """How a folder is read; a layout or folder of audio files that is empty is found out."""

    layout: str = ""
    audio_root: str = ""
    without_audio: bool = False
    resample: bool = False
    is_synthetic: bool = False
    is_shared: bool = False
    licence: str = ""


def import_problem(name: str, by: Any) -> str:
    """Why a corpus of this name cannot be imported now, as a sentence; empty where it can."""
    if name in RESERVED_CORPORA:
        return f"A corpus cannot be called {name}, because a page has that address; choose another name."
    if not may_import(name, by):
        return f"The name {name} is taken by another organizer's corpus; choose another name."
    under_way = Job.objects.filter(kind="import-corpus", state__in=[State.WAITING, State.RUNNING])
    if any(job.parameters["name"] == name for job in under_way):
        return f"An import of the corpus {name} is under way already; see the list of jobs."
    return ""


@transaction.atomic
def start_import(
    *,
    folder: str,
    name: str,
    upload: str = "",
    sha256: str = "",
    by: Any = None,
    run_here: bool = False,
    **options: Any,
) -> Job:
    """Create the job that imports the corpus `name` from a folder on this server; `run_here` as in `create_job`.

    Args:
        folder: where the corpus is from; of an archive its name.
        upload: the file among the uploads that is that archive, to be unpacked first; `sha256`: what it must hash to.
        options: of `ImportOptions`.

    Raises:
        NotPossible: an import of this corpus is under way, it is another organizer's, or the name is that of a page.
    """
    if sentence := import_problem(name, by):
        raise NotPossible(sentence)
    parameters: dict[str, Any] = {"folder": folder, "name": name} | asdict(ImportOptions(**options))
    if upload:
        parameters |= {"upload": upload, "sha256": sha256}
    title = f"Import of the corpus {name}"
    return create_job(kind="import-corpus", title=title, parameters=parameters, by=by, corpus=name, run_here=run_here)


def start_demo_import(*, by: Any) -> Job:
    """Import the demo corpus that comes with the portal, for all organizers.

    Raises:
        NotPossible: as of `start_import`.
    """
    return start_import(folder=str(DEMO_CORPUS), name=DEMO, is_shared=True, by=by)


@transaction.atomic
def rename_corpus(*, thing: Corpus, by: Any, name: str, **stated: str) -> Corpus:
    """Give a corpus another short name; its jobs follow. `stated`: its licence and link, where these change, too.

    Raises:
        NotPossible: the name is taken, or an import of the corpus is under way.
    """
    corpus = Corpus.objects.select_for_update(of=("self",)).get(pk=thing.pk)
    before, unlike = corpus.name, {field: getattr(corpus, field) for field in stated}
    if stated and unlike != stated:
        for field, value in stated.items():
            setattr(corpus, field, value)
        corpus.save(update_fields=[*stated, "updated_at"])
        audit.record("corpus.changed", corpus, actor=by, changes=audit.changes(unlike, stated))
    if name == before:
        return corpus
    if name in RESERVED_CORPORA or Corpus.objects.filter(name=name).exclude(pk=corpus.pk).exists():
        raise NotPossible(f"The name {name} is taken; choose another name.")
    jobs = Job.objects.filter(corpus=before)
    if jobs.filter(kind="import-corpus", state__in=[State.WAITING, State.RUNNING]).exists():
        raise NotPossible("An import of this corpus is under way. Rename it once that has ended.")
    corpus.name = name
    corpus.save(update_fields=["name", "updated_at"])
    for job in Job.objects.filter(kind="import-corpus", parameters__name=before):
        job.parameters["name"] = name
        job.save(update_fields=["parameters"])
    jobs.update(corpus=name)
    audit.record("corpus.renamed", corpus, actor=by, changes=audit.changes({"name": before}, {"name": name}))
    return corpus


@transaction.atomic
def share_corpus(*, corpus: Corpus, is_shared: bool, by: Any) -> Corpus:
    """Let all organizers see and hear a corpus, or again only its owner and the organizers of its editions.

    Raises:
        NotPossible: it is another's.
    """
    if corpus.created_by_id != by.pk:
        raise NotPossible("Only the owner of a corpus decides who sees it; the operator can name another owner.")
    corpus.is_shared = is_shared
    corpus.save(update_fields=["is_shared", "updated_at"])
    audit.record("corpus.shared" if is_shared else "corpus.unshared", corpus, actor=by)
    return corpus
