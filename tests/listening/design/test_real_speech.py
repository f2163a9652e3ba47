"""Studies of the size of 2022 on the pool of real speech: what it carries strictly, what relaxed, and what not."""

import csv
from collections import defaultdict

import pytest

from common.errors import ProblemsError
from listening.design.allocation import allocate
from listening.design.certificate import certify
from listening.design.requirements import DesignRequest, PoolUtterance
from listening.design.selection import choose_candidates
from tests.official import GOLDEN

PUBLISHED = tuple(f"idmap-{name}" for name in ("Average", "Diff-U", "GAN-N", "MLP-U", "PSD", "RS"))


def real_pool(systems, corpora=None):
    """Three fifths of a speaker's utterances are trial ones; of those published systems have what was published."""
    folder = GOLDEN / "speech"
    with (folder / "utterances.csv").open() as file, (folder / "anonymised.csv").open() as published_file:
        rows, published = list(csv.DictReader(file)), {row["utterance_id"] for row in csv.DictReader(published_file)}
    speakers = defaultdict(list)
    for row in rows:
        if corpora is None or row["corpus"] in corpora:
            speakers[row["speaker"]].append(row)
    pool = []
    for speaker, held in speakers.items():
        held.sort(key=lambda row: (row["utterance_id"] not in published, row["utterance_id"]))
        has_published = held[0]["utterance_id"] in published
        trials = 0 if len(held) == 1 else 8 if has_published else len(held) * 3 // 5
        for number, row in enumerate(held):
            having = {one for one in systems if one not in PUBLISHED or row["utterance_id"] in published}
            role = "trial" if number < trials else "enrolment"
            having = frozenset(having) if role == "trial" else frozenset()
            pool.append(PoolUtterance(row["utterance_id"], speaker, row["gender"].lower(), role, having))
    return pool


def request_2022(systems, corpora=None, **relaxed):
    numbers = {"systems": tuple(systems), "evaluators": 52, "trials": 52, "originals": 26, "seed": 2022}
    candidates = choose_candidates(real_pool(systems, corpora), **numbers, **relaxed)
    return DesignRequest(candidates=candidates, **numbers, **relaxed)


def test_six_published_systems_and_our_own_pass_with_two_relaxations_that_are_reported():
    request = request_2022((*PUBLISHED, "b2"), sexes_as_in_pool=True, enrolments_may_repeat=True)
    certificate = certify(request, allocate(request))
    assert certificate.passes
    assert certificate.relaxed == (
        "Each sex has its share of the candidates, which need not be one half.",
        "The same enrolment utterance may be heard up to 2 times in a session.",
    )


def test_six_published_systems_are_refused_without_relaxation():
    with pytest.raises(ProblemsError) as error:
        request_2022((*PUBLISHED, "b2"))
    assert all("would be met" in problem and "would do" in problem for problem in error.value.problems)


def test_four_speakers_alone_have_too_few_utterances():
    with pytest.raises(ProblemsError, match="52 trials of one evaluator need 52 different trial utterances"):
        request_2022((*PUBLISHED, "b2"), ["librispeech-dev-clean"], sexes_as_in_pool=True)
