"""Archives with more results than a submission can have: told at once, without reading what nobody asked for."""

import pytest

from portal.intake.documents import MOST_SYSTEMS
from tests.portal.intake.packing import check, expect, pack_zip


def checked(tmp_path, paths):
    source = pack_zip(tmp_path / "T1.zip", [(path, b"no result\n") for path in paths])
    report = check(source, expect({}, {}, audio_required=False, scores_required=False), tmp_path / "documents")
    return [(one.code, one.found) for one in report.findings]


@pytest.mark.parametrize(
    "path",
    ["exp/results-2022-05-01-10-{:02d}-00/results.txt", "T{}/results-2022-05-01-10-00-00/results.txt"],
    ids=["by stamp", "by folder"],
)
def test_very_many_systems_are_one_problem(tmp_path, path):
    paths = [path.format(number) for number in range(MOST_SYSTEMS + 1)]
    assert checked(tmp_path, paths) == [("several-results", "21, too many to be read")]


def test_result_file_of_another_edition_is_a_problem(tmp_path):
    [problem] = checked(tmp_path, ["T1/result_for_rank_anon"])
    assert problem == ("foreign-results", "T1/result_for_rank_anon, a file of another edition")
