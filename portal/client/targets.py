"""Which team and which system an archive is for, as a person names them."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from evaluation.commands.terminal import CommandError
from portal.client.api import Portal, Refused

Row = dict[str, Any]


def edition_by(portal: Portal, name: str) -> Row:
    """The edition of this name.

    Raises:
        CommandError: there is none, or none that this person sees.
    """
    try:
        found: Row = portal.get(f"editions/{quote(name, safe='')}/")
    except Refused as refused:
        if refused.status != 404:
            raise
        known = ", ".join(one["name"] for one in portal.every("editions/")) or "none"
        raise CommandError(f"There is no edition {name}, or you may not see it. You see: {known}.") from refused
    return found


def chosen_team(portal: Portal, edition: Row, wanted: str | None) -> Row | None:
    """The team that sends, by label, name or number, else one's own; None for an organizer's baseline.

    Raises:
        CommandError: there is no such team, or none at all.
    """
    teams = list(portal.every("teams/", edition=edition["name"]))
    if wanted:
        keys = [{one["label"].casefold(), one["name"].casefold(), str(one["id"])} for one in teams]
        found = [one for one, names in zip(teams, keys, strict=True) if wanted.casefold() in names]
        if len(found) != 1:
            yours = ", ".join(f"{one['label'] or one['id']} ({one['name']})" for one in teams) or "none"
            raise CommandError(f"--team: expected one of your teams in {edition['name']} ({yours}), found {wanted}.")
        return found[0]
    own = [one for one in teams if one["id"] == edition["your_team"]]
    if not own and not edition["you_organise"]:
        raise CommandError(
            f"You belong to no team of “{edition['title']}”. Register one on the page of the edition, ask to be "
            "invited, or log in first (vp login)."
        )
    return own[0] if own else None


def chosen_system(portal: Portal, edition: Row, team: Row | None, wanted: str | None, kind: str | None) -> str:
    """The name of the system of which this is a further version; empty for a new one.

    Raises:
        CommandError: the team has no such system, or has systems and nothing says which is meant.
    """
    if kind is not None:
        return ""
    team_query = {"team": team["id"]} if team else {}
    systems = [
        one for one in portal.every("systems/", edition=edition["name"], **team_query) if team or one["is_baseline"]
    ]
    known = ", ".join(one["label"] for one in systems) or "none"
    if wanted is None:
        if systems and team:
            raise CommandError(
                f"The team has systems already ({known}). Say --system {systems[0]['label']} for a further version of "
                "one, which inherits what the archive does not hold, or --kind primary for another system."
            )
        return ""
    for one in systems:
        if wanted.casefold() in {one["name"].casefold(), one["label"].casefold()}:
            return str(one["name"])
    raise CommandError(f"--system: expected a system of this team ({known}), found {wanted}.")
