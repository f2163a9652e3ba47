"""Voice conversion by centroids of phones, on frames whose phones are known."""

import numpy as np
import pytest

from speech.conversion.phone_centroids import make_pool


def make_frames(phones, spread=0.1, seed=0):
    """Frames around a place of their own for each phone, in four dimensions."""
    draw = np.random.default_rng(seed)
    places = 10 * np.eye(4)[np.asarray(phones)]
    return (places + spread * draw.standard_normal(places.shape)).astype(np.float32)


def repeat(*runs):
    """Phones in a row: (phone, frames) of each."""
    return np.concatenate([np.full(length, phone, np.intp) for phone, length in runs])


def test_a_frame_gets_a_centroid_of_its_own_phone_even_where_another_is_nearer():
    phones = repeat((1, 40), (2, 40))
    pool = make_pool(make_frames(phones), phones, 4)
    heard = make_frames(np.full(5, 2))  # sounds like 2
    chosen = pool.choose(heard, np.full(5, 1))  # is said to be 1
    assert np.allclose(chosen, 10 * np.eye(4)[1], atol=1)
    assert {len(each) for each in pool.centroids.values()} == {4}


def test_with_one_centroid_all_ways_to_say_a_phone_become_their_mean():
    phones = repeat((1, 30), (3, 50))
    frames = make_frames(phones, spread=1.0)
    pool = make_pool(frames, phones, 1)
    assert np.allclose(pool.choose(frames, phones)[:30], frames[:30].mean(axis=0), atol=1e-4)


def test_a_phone_that_the_target_never_says_gets_the_nearest_centroid_of_all():
    phones = repeat((1, 30), (2, 30))
    pool = make_pool(make_frames(phones), phones, 2)
    assert np.allclose(pool.choose(make_frames([2, 2]), np.array([3, 3])), 10 * np.eye(4)[2], atol=1)


@pytest.mark.parametrize(
    ("weight", "lengths"), [(0, (4, 6, 2, 10)), (1, (4, 3, 9, 10)), (0.5, (4, round(4.5), round(5.5), 10))]
)
def test_durations_go_towards_those_of_the_target(weight, lengths):
    target = repeat((1, 2), (2, 9), (1, 4), (0, 3))  # 1 lasts 3 frames on average, 2 lasts 9
    pool = make_pool(make_frames(target), target, 1)
    source = repeat((0, 4), (1, 6), (2, 2), (3, 10))  # no phone, and one that the target never says, stay
    order = pool.place_frames(source, weight)
    assert (np.diff(order) >= 0).all()
    assert tuple(np.bincount(source[order], minlength=4)) == lengths


def test_no_phone_vanishes():
    target = repeat((1, 1), (2, 1))
    pool = make_pool(make_frames(target), target, 1)
    assert pool.place_frames(repeat((1, 1), (2, 1), (1, 1)), 1.0).tolist() == [0, 1, 2]
