"""Pages of results: who sees which part, raw and normalised scores apart, the numbers of the tables and no others."""

import csv
import io
import re
from dataclasses import replace

import pytest
from django.template.loader import render_to_string
from django.test import Client
from django.urls import reverse

from common.rounding import round_to_interval
from listening.analysis.reading.inputs import ORIGINAL
from listening.analysis.tables import make_table
from listening.app.results import pages, system_pages
from listening.app.results.figures import Reader
from listening.app.results.labels import may_be_guessing
from listening.app.results.selectors import parsed_results
from listening.app.results.tables import TOO_FEW, Shape, in_words, read_rate, read_systems, shown_table
from portal.accounts.models import User
from portal.core.models import AuditEvent
from tests.listening.analysis.examples import LISTENERS, SYSTEMS, UTTERANCES, made_up_results
from tests.listening.rated import ASKED
from tests.listening.results.analysed import (
    add_analysis,
    add_heard_system,
    make_analysed,
    publish_study,
)
from tests.pages import read_page
from tests.portal.factories import make_job, make_operator, make_organizer, make_team, make_user

pytestmark = pytest.mark.django_db

DRAWN = (
    "raw/violin-naturalness-light.svg",
    "raw/violin-naturalness-dark.svg",
    "normalised/violin-naturalness-light.svg",
)
PEOPLE = ("visitor", "member", "operator", "rival", "team", "organizer")


def heard_study(drawn=()):
    """A study in which systems of two teams were heard."""
    results = made_up_results()
    results = replace(results, remarks=[*results.remarks, f"One listener stands out: {LISTENERS[0]}."])
    study = make_analysed(organizer=make_organizer(name="organizer"), figures=(*DRAWN, *drawn), results=results)
    add_heard_system(study, SYSTEMS[0], team=make_team(study.edition, owner=make_user(name="team")))
    add_heard_system_of_rival(study, make_user(name="rival"))
    make_user(name="member")
    make_operator(name="operator")
    publish_study(study)
    return study


class Place:
    """Such a study, and everybody who may ask for its results."""

    def __init__(self, study):
        self.study = study
        self.submission = study.systems.get(code=SYSTEMS[0]).submission
        self.people = {who: User.objects.filter(name=who).first() for who in PEOPLE}

    def client(self, who):
        client = Client()
        if self.people[who] is not None:
            client.force_login(self.people[who])
        return client

    def get(self, who, name="results", *parts, **query):
        return self.client(who).get(reverse(f"studies:{name}", args=[self.study.name, *parts]), query)


def add_heard_system_of_rival(study, rival):
    """Another team's system, which was heard too."""
    team = make_team(study.edition, owner=rival)
    system = study.edition.systems.create(
        name=f"{study.edition.name}-other", label="c1", title="Other", corpus=study.edition.corpus, team=team
    )
    study.conditions.create(submission=system.submissions.create(version=1), code=SYSTEMS[1])


@pytest.fixture
def place(once):
    return Place(once(heard_study))


def page_of(response):
    assert response.status_code == 200
    return read_page(response)


def rows_of(response):
    assert response.status_code == 200
    return list(csv.DictReader(io.StringIO(response.content.decode())))


def headline_rows(page, task):
    """The rows of a task's headline table: bare numbers by heading."""
    section = page.split(f'<section aria-labelledby="{task}"')[1].split("</section>")[0]
    table = re.search(r'<table class="data results-table headline".*?</table>', section, re.S)[0]
    heads = [re.sub(r"<.*?>", "", head) for head in re.findall(r'<th scope="col".*?</th>', table)]
    rows = re.findall(r"<tr(?: data-place=\"reference\")?><th scope=\"row\".*?</tr>", table)
    return [dict(zip(heads, [_bare(cell) for cell in re.findall(r"<t[hd] ?[^>]*>", row)], strict=True)) for row in rows]


def _bare(cell):
    found = re.search(r'data-value="(.*?)"', cell)
    return found[1] if found else ""


# Who sees what -------------------------------------------------------------------------------------


def test_utterances_of_a_system_are_heard_by_its_team_and_organizers(place):
    file = place.submission.files.get()
    address = reverse("systems:compare", args=[place.submission.system.name, file.pk])
    for who in PEOPLE:
        page = page_of(place.get(who, "results-system", SYSTEMS[0]))
        may_hear = who in ("team", "organizer")
        assert (UTTERANCES[0] in page) is may_hear, who
        assert ("Listen to the disagreements" in page) is may_hear, who
        assert (address in page) is may_hear, who


def test_no_listener_is_named_but_to_organizers(place):
    for who in PEOPLE:
        addresses = (("results",), ("results-system", SYSTEMS[0]), ("results-json",))
        texts = [page_of(place.get(who, *address, scores="raw")) for address in addresses]
        named = {token for text in texts for token in LISTENERS if token in text}
        assert named == (set(LISTENERS) if who == "organizer" else set()), who


def test_page_of_listeners_is_for_organizers(place):
    for who in PEOPLE:
        status = place.get(who, "results-listeners").status_code
        assert (status == 200) is (who == "organizer"), who
    figure = place.get("visitor", "results-figure", "raw", "violin-naturalness", "svg")
    assert (figure.status_code, figure["Content-Type"]) == (200, "image/svg+xml")
    assert "sandbox" in figure["Content-Security-Policy"]


OF_ORGANIZERS = "common/map-board-1"


def test_single_samples_and_rules_that_do_not_stand_are_for_organizers():
    place = Place(heard_study(drawn=[f"{OF_ORGANIZERS}-light.svg"]))
    for who in PEOPLE:
        is_organizer = who == "organizer"
        page = page_of(place.get(who, scores="raw"))
        assert (f"/figures/{OF_ORGANIZERS}.svg" in page) is is_organizer, who
        status = place.get(who, "results-figure", *OF_ORGANIZERS.split("/"), "svg").status_code
        assert (status == 200) is is_organizer, who
        rules = {"standing", "disagrees"} if is_organizer else {"standing"}
        rows = rows_of(place.get(who, "results-csv", "raw", "exclusion_effect"))
        assert {row["rule"] for row in rows} == rules, who
        table = place.get(who, "results-json").json()["tables"]["raw/exclusion_effect"]
        assert {row[table["columns"].index("rule")] for row in table["rows"]} == rules, who


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("results-system", (ORIGINAL,)),
        ("results-csv", ("nothing", "summary")),
        ("results-figure", ("raw", "violin-naturalness", "exe")),
    ],
)
def test_what_is_not_there_is_not_found(place, name, parts):
    assert place.get("organizer", name, *parts).status_code == 404


# Raw and normalised --------------------------------------------------------------------------------


def test_a_page_shows_one_kind_of_scores(place):
    page = page_of(place.get("organizer", scores="raw"))
    body = page.split('<section class="opening"')[1].split('<div id="downloads">')[0]
    assert set(re.findall("/(?:tables|figures)/(raw|normalised)/", body)) == {"raw"}


@pytest.mark.parametrize(("scores", "task"), [("raw", "verifiability"), ("normalised", "naturalness")])
def test_numbers_of_a_page_are_those_of_its_files(place, scores, task):
    page = headline_rows(page_of(place.get("visitor", scores=scores)), task)
    summary = rows_of(place.get("visitor", "results-csv", scores, "summary"))
    detection = rows_of(place.get("visitor", "results-csv", scores, "detection"))
    of = lambda rows, **equal: {  # noqa: E731
        row["system"].lower(): row for row in rows if all(row[key] == value for key, value in equal.items())
    }
    means, rates = of(summary, task=task, kind="all"), of(detection, task=task)
    assert len(page) == len(SYSTEMS) + 1
    for row in page:
        name = ORIGINAL if row["System"] == "original speech" else row["System"]
        assert row["Ratings"] == means[name]["n"]
        if task == "naturalness":
            assert "EER" not in row
            assert (row["Mean"], row["Group"]) == (means[name]["mean"], means[name]["group"])
        else:
            assert row["EER"] == rates.get(name, {}).get("eer", "")
            same = of(summary, task=task, kind="target")
            assert (row["Same speaker"], row["Group"]) == (same[name]["mean"], rates[name]["group"])


def test_originals_come_first_and_systems_by_their_value(place):
    rows = headline_rows(page_of(place.get("visitor")), "naturalness")
    means = [float(row["Mean"]) for row in rows[1:]]
    assert rows[0]["System"] == "original speech"
    assert means == sorted(means, reverse=True)
    ascending = headline_rows(page_of(place.get("visitor", sort="mean", order="asc")), "naturalness")
    assert [float(row["Mean"]) for row in ascending] == sorted(float(row["Mean"]) for row in rows)
    assert "Rank<" not in page_of(place.get("visitor"))


def test_comparisons_of_a_system_are_turned_to_it(place):
    page = page_of(place.get("visitor", "results-system", SYSTEMS[1]))
    table = parsed_results(place.study.published_analysis.results).table("normalised", "differences")
    row = next(one for one in table.records(task="naturalness") if (one["first"], one["second"]) == SYSTEMS[:2])
    section = page.split('id="compare-naturalness"')[1].split("</table>")[0]
    cell = re.search(rf">{SYSTEMS[0]}</a></th>.*?class=\"reading\">(.*?) <small>(.*?)</small>", section)
    turned = [-row[name] for name in ("difference", "difference_high", "difference_low")]
    number, span = round_to_interval(*turned, 3)
    assert (cell[1], cell[2]) == (number, span)


# What every page says ------------------------------------------------------------------------------


def test_links_of_others_do_not_lead_into_studies(place):
    link = f'href="{reverse("studies:detail", args=[place.study.name])}"'
    assert link not in page_of(place.get("visitor"))
    assert link in page_of(place.get("organizer"))


# Little to show ------------------------------------------------------------------------------------


def of_organizer(study):
    client = Client()
    client.force_login(study.edition.organizers.first())
    return client


def results_of(study, **query):
    return of_organizer(study).get(reverse("studies:results", args=[study.name]), query)


def test_each_heading_of_a_comparison_has_one_test(place):
    """Equal error rates and mean scores may say different things of a pair: they never stand under one heading."""
    page = page_of(place.get("visitor"))
    task = page.split('<section aria-labelledby="verifiability"')[1].split("</section>")[0]
    rates, means = re.split('id="compare-verifiability-means"', task.split('id="compare-verifiability"')[1])
    assert ("/eer_differences.csv" in rates, "/differences.csv" in rates) == (True, False)
    assert ("/eer_differences.csv" in means, "/differences.csv" in means) == (False, True)


def test_difference_that_is_not_significant_is_told_with_its_interval():
    differences = dict(zip(SYSTEMS[:3], (0.19, -0.05, 0.0), strict=True))
    rows = [
        {"task": "naturalness", "first": ORIGINAL, "second": name, "difference": difference, "is_told_apart": 0}
        | {"difference_low": difference - 0.12, "difference_high": difference + 0.12}
        for name, difference in differences.items()
    ]
    means = [
        {"task": "naturalness", "kind": "all", "mean": 0.5, "group": "a"} | {"system": name}
        for name in (ORIGINAL, *differences)
    ]
    results = made_up_results(systems=SYSTEMS[:3])
    made = {
        "normalised/differences": make_table("differences", rows),
        "normalised/summary": make_table("summary", means),
    }
    tables = results.tables | made
    reader = Reader("made-up", "normalised", tables=frozenset())
    shape = Shape(reader, replace(results, tables=tables))
    systems = {one.name: one for one in read_systems(shape, "naturalness")}
    lower, higher, none = (
        in_words(read_rate(shape, systems[name], "naturalness", systems[ORIGINAL])) for name in SYSTEMS[:3]
    )
    assert lower.startswith(
        "Mean 0.19 lower than unprotected speech within the same listeners, each counting once (0.07"
    )
    assert higher.startswith(
        "Mean 0.05 higher than unprotected speech within the same listeners, each counting once (−"
    )
    assert none.startswith(
        "No difference of means from unprotected speech within the same listeners, each counting once (−0.12"
    )


def test_pairs_that_differ_with_one_kind_of_scores_only_are_named_with_both():
    told = {"normalised": (0, 1), "raw": (1, 1)}
    pairs = (SYSTEMS[0], SYSTEMS[1]), (SYSTEMS[0], SYSTEMS[2])
    made = {
        f"{scores}/differences": make_table(
            "differences",
            [
                {"task": "naturalness", "first": first, "second": second, "is_told_apart": one}
                for (first, second), one in zip(pairs, decided, strict=True)
            ],
        )
        for scores, decided in told.items()
    }
    results = made_up_results(systems=SYSTEMS[:3])
    results = replace(results, tables=results.tables | made)
    for scores, other in (("normalised", "raw ratings"), ("raw", "normalised ranks")):
        shape = Shape(Reader("made-up", scores, tables=frozenset()), results)
        [found] = pages._comparisons(shape, "naturalness", [])
        page = " ".join(render_to_string("listening/results/_comparison.html", {"one": found}).split())
        assert f", 1 otherwise with {other}</summary>" in page
        assert "read with care: " in page
        assert len(found["otherwise"]) == 1
        assert system_pages._comparisons(shape, "naturalness", SYSTEMS[0])["otherwise"] == found["otherwise"]


@pytest.mark.parametrize("rate", [0.05, 0.3, 0.45])
def test_rates_that_may_not_differ_have_the_same_words(rate):
    words = {"rate": rate, "has_interval": True, "is_original": False, "step": ""}
    question = made_up_results().questions["verifiability"]
    assert in_words(words | {"question": question}) == "Listeners confused speakers less often than by guessing"


@pytest.mark.parametrize(("name", "p"), [("differences", "permutation_p"), ("mann_whitney", "p")])
def test_p_value_of_too_few_listeners_is_not_shown(name, p):
    results = made_up_results()
    shape = Shape(Reader("made-up", "normalised", tables=frozenset()), results)
    few = replace(shape, results=replace(results, settings={**results.settings, "least_clusters": 1000}))
    for one, is_few in ((shape, False), (few, True)):
        table = shown_table(name, "", one, one.records(name, task="naturalness"))
        keys = [column.key for column in table.columns]
        shown = {row.cells[keys.index(p)].text for row in table.groups[0].rows}
        is_corrected = bool({"permutation_adjusted", "adjusted"}.intersection(keys))
        assert (shown == {TOO_FEW}, is_corrected) == (is_few, not is_few)


def test_words_of_a_mean_follow_its_letters():
    """A system that shares a letter with the originals is not called less natural, whatever its error rate is."""
    words = {"question": ASKED["naturalness"], "rate": 0.2, "is_guess": False}
    assert in_words(words | {"is_like_original": True}) == (
        "It was not rated significantly below unprotected speech (too few listeners for an interval)"
    )
    below = words | {"is_like_original": False}
    assert in_words(below | {"has_interval": True}) == "Less natural than unprotected speech"
    assert in_words(below) == "Too few listeners to compare it with unprotected speech"


def test_interval_of_an_auc_decides_whether_a_rate_may_be_guessing():
    interval = (0.37, 0.19, 0.51)
    assert not may_be_guessing(*interval, (0.557, 0.878))
    assert may_be_guessing(*interval, (0.45, 0.8))
    assert may_be_guessing(*interval, (None, None))
    assert not may_be_guessing(0.6, 0.4, 0.7, (0.2, 0.4))


# Deeds ---------------------------------------------------------------------------------------------


def test_results_that_a_leaderboard_hides_are_said_to_be_not_public(place):
    edition = place.study.edition
    for is_listed in (True, False):
        type(edition).objects.update(published_at=None, is_listed=is_listed)
        said = f"The results of “{place.study}” are not public at present"
        visited = place.client("visitor").get(reverse("studies:results", args=[place.study.name]), follow=True)
        missing = "This page does not exist, or is not published."
        assert (said in (page := page_of(visited)), missing in page) == (is_listed, not is_listed)
        assert (said in read_page(place.get("team"))) == is_listed


def test_an_organizer_publishes_and_takes_back(place):
    study = make_analysed(organizer=place.people["organizer"])
    client, address = place.client("organizer"), lambda name: reverse(f"studies:{name}", args=[study.name])
    assert client.post(address("publish-results")).status_code == 409
    study.edition.published_at = study.closed_at
    study.edition.save()
    asked = page_of(client.get(address("publish-results")))
    given = {"analysis": re.search(r'name="analysis" value="(\d+)"', asked)[1]}
    assert ">Take them back</button>" not in page_of(client.get(address("unpublish-results")))
    client.post(address("publish-results"), given)
    study.refresh_from_db()
    assert study.published_analysis == study.analyses.get()
    assert Client().get(address("results")).status_code == 200
    assert ">Take them back</button>" in page_of(client.get(address("unpublish-results")))
    client.post(address("unpublish-results"))
    assert Client().get(address("results")).status_code == 302
    assert AuditEvent.objects.filter(action="study.results_unpublished").count() == 1
    study.refresh_from_db()
    assert (study.published_analysis, study.results_published_at) == (None, None)


def test_an_analysis_that_ended_since_the_page_was_opened_is_not_published(place):
    study = make_analysed(organizer=place.people["organizer"])
    study.edition.published_at = study.closed_at
    study.edition.save()
    client, address = place.client("organizer"), reverse("studies:publish-results", args=[study.name])
    asked = {"analysis": study.analyses.get().pk}
    add_analysis(study, made_up_results(seed=5))
    for given in (asked, {}, {"analysis": "9" * 5000}):
        refused = client.post(address, given)
        assert refused.status_code == 409
        assert "There is a newer analysis than the one you looked at." in refused.content.decode()
    study.refresh_from_db()
    assert study.results_published_at is None


def test_settings_that_cannot_be_are_told_at_their_fields():
    study = make_analysed()
    wrong = {"normalisation": "best", "correction": "holm", "resamples": 5, "permutations": 1000, "level": 2}
    response = of_organizer(study).post(reverse("studies:analyse", args=[study.name]), wrong)
    assert response.status_code == 422
    assert set(response.context["form"].errors) >= {"normalisation", "resamples", "level", "seed"}
    assert study.analyses.count() == 1


# Costs ---------------------------------------------------------------------------------------------


def test_queries_do_not_depend_on_what_is_shown(django_assert_num_queries):
    study = make_analysed(results=made_up_results(systems=("T01-p1", "T02-p1")), publish=True)
    visitor, address = Client(), reverse("studies:results", args=[study.name])
    with django_assert_num_queries(4):
        assert visitor.get(address).status_code == 200
    with django_assert_num_queries(4):
        assert visitor.get(reverse("studies:results-system", args=[study.name, "T01-p1"])).status_code == 200


def test_a_part_of_the_page_follows_an_analysis_and_then_the_page_comes_anew():
    study = make_analysed()
    job = make_job("running", kind="analyse-study", title="Analysis")
    pending = study.analyses.create(basis="x", job=job)
    client, address = of_organizer(study), reverse("studies:results", args=[study.name])
    part = client.get(address, headers={"HX-Request": "true"})
    assert "<html" not in page_of(part)
    assert not part.has_header("HX-Refresh")
    pending.delete()
    assert client.get(address, headers={"HX-Request": "true"})["HX-Refresh"] == "true"


def test_objective_numbers_are_linked_for_whom_they_are(place):
    address = f'href="{place.submission.system.get_absolute_url()}"'
    linked = {who: address in page_of(place.get(who, "results-system", SYSTEMS[0])) for who in PEOPLE}
    assert linked == dict.fromkeys(PEOPLE, False) | {"team": True, "organizer": True}  # it stands on no board


def test_readers_meet_the_words_that_evaluators_read():
    study = make_analysed(publish=True)
    study.languages, study.practice_trials, study.gold_trials, study.bridge_trials = ["en", "fr"], 2, 1, 3
    study.questionnaire = [{"name": "work", "kind": "text", "labels": {"en": "Your work", "fr": "Votre métier"}}]
    study.texts.create(kind="role-play", language="en", version=1, text="## Your role\nYou work at a *radio station*.")
    study.save()
    page = read_page(Client().get(reverse("studies:results", args=[study.name])))
    for words in (
        "You work at a <em>radio station</em>.",
        "How natural does A sound?",
        "2 practice trials are in no score.",
        "<li>Votre métier</li>",
    ):
        assert words in page, words
    assert study.texts.count() == 1
