"""The ways through the demo, as its command prints them and its page *Tour* shows them."""

from __future__ import annotations

from dataclasses import dataclass

from django.urls import reverse

from listening.app.models import Study
from portal.challenges.models import Edition
from portal.demo.challenge import T04_COMMAND, TEAMS, find_submission
from portal.demo.studies import SAMPLED, evaluator_link

DOMAIN = "demo.example"
Pages = dict[str, tuple[str, str]]  # address and words by name


@dataclass(frozen=True)
class Way:
    """What is worth seeing for one kind of people; `accounts` are those that they log in with, by their addresses."""

    who: str
    pages: Pages
    accounts: tuple[str, ...] = ()


def find_demo() -> Edition | None:
    """Return the challenge that the demo made; None in every other portal."""
    return Edition.objects.filter(organizers__email=f"organizer@{DOMAIN}").order_by("pk").first()


def list_ways(edition: Edition) -> list[Way]:
    """Return the ways of a reader, evaluator, organizer, team and operator, each with the pages that exist already."""
    studies = Study.objects.filter(edition=edition).order_by("pk")
    study = studies.filter(state=Study.State.OPEN).first()
    named = {"edition": edition.name}
    board = reverse("leaderboard:detail", kwargs=named)
    reader: Pages = {}
    if edition.published_at:
        reader["leaderboard"] = (board, "originals, baselines and teams, ranked by the portal's own evaluation")
    if shown := find_submission(edition, SAMPLED) or find_submission(edition, ""):
        reader["system"] = (shown.system.get_absolute_url(), "samples, numbers and figures of one system")
    if heard := studies.filter(results_published_at__isnull=False).first():
        reader["heard"] = (reverse("studies:results", args=[heard.name]), "what listeners said; they are simulated")
    organizer: Pages = {
        "challenge": (edition.get_absolute_url(), "its teams, rules and what is next"),
        "new": (reverse("editions:new"), "a challenge of your own, by a form"),
    }
    if baseline := find_submission(edition, ""):
        organizer["baseline"] = (baseline.system.get_absolute_url(), "what the portal anonymised, to hear")
    if study:
        organizer["monitor"] = (reverse("studies:monitor", args=[study.name]), "who is listening now")
    team: Pages = {"data": (reverse("editions:data", kwargs=named), "the speech, and what to submit")}
    if refused := find_submission(edition, "hasty", is_spoiled=True):
        team["report"] = (refused.get_absolute_url(), "all problems of a refused archive, for hasty")
    if ready := find_submission(edition, "anew"):
        team["archive"] = (ready.get_absolute_url(), f"an archive made beforehand by {T04_COMMAND}, for anew")
    ways = [
        Way("Reader", reader),
        Way("Organizer", organizer, (f"organizer@{DOMAIN}",)),
        Way("Team", team, tuple(f"{key}@{DOMAIN}" for key in TEAMS)),
        Way("Operator", {"operations": (reverse("operations"), "state of the portal")}, (f"operator@{DOMAIN}",)),
    ]
    if study:
        ways.insert(1, Way("Evaluator", {"listen": (evaluator_link(study), "the listening test, on a phone as well")}))
    return ways
