"""A recipe with the data sets of one of its tracks, where it has several."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

from evaluation.protocols.recipes import Recipe, Track


def narrow_to_track(recipe: Recipe, name: str) -> Recipe:
    """Return a recipe without the data sets of its other tracks: neither those that these alone average, with their
    enrolment sets, nor those of languages that the track does not have, nor those that name another track. The only
    track has all.

    Args:
        name: of the track; with a name that the recipe does not have it stays as it is.
    """
    track = recipe.tracks.get(name)
    if track is None or len(recipe.tracks) == 1:
        return recipe
    others = {one for other in recipe.tracks.values() if other is not track for one in _averaged_sets(recipe, other)}
    others -= _averaged_sets(recipe, track)
    languages = {*track.languages, *track.surprise_languages}
    kept = {
        key: one
        for key, one in recipe.data_sets.items()
        if key not in others and one.track in ("", name) and (not languages or one.language in languages)
    }
    gone = [f"data_sets.{one}" for one in recipe.data_sets if one not in kept]
    gone += [f"tracks.{one}" for one in recipe.tracks if one != name]
    uncertain = (field for field in recipe.uncertain if not any(f"{field}.".startswith(f"{one}.") for one in gone))
    return replace(recipe, data_sets=MappingProxyType(kept), uncertain=tuple(uncertain))


def _averaged_sets(recipe: Recipe, track: Track) -> set[str]:
    """Return the sets that a track averages, with the enrolment sets of those."""
    found = {one for average in track.averages for weights in average.weights.values() for one in weights}
    return found | {recipe.data_sets[one].enrolment for one in found if recipe.data_sets[one].enrolment}
