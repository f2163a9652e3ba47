"""The mixed model, against statsmodels, against the likelihood written out densely, and against simulated truth."""

import warnings

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf

from listening.analysis.models.mixed_model import fit_reml
from tests.listening.analysis.rated import drawn


def design_of(ratings):
    systems, system = np.unique(ratings.system, return_inverse=True)  # original sorts after T…
    system = (system + 1) % systems.size
    x = np.column_stack([np.ones(system.size), *(system == place for place in range(1, systems.size))])
    x = np.column_stack([x, ratings.position - ratings.position.mean()]).astype(float)
    columns = (ratings.listener, ratings.utterance, ratings.speaker)
    return ratings.rating, x, [np.unique(column, return_inverse=True)[1] for column in columns]


def by_statsmodels(ratings):
    frame = pd.DataFrame(
        {
            "y": ratings.rating,
            "system": ratings.system,
            "listener": ratings.listener,
            "utterance": ratings.utterance,
            "speaker": ratings.speaker,
            "everything": 1,
            "position": ratings.position - ratings.position.mean(),
        }
    )
    parts = {name: f"0 + C({name})" for name in ("listener", "utterance", "speaker")}
    model = smf.mixedlm(
        "y ~ C(system, Treatment('original')) + position", frame, groups="everything", re_formula="0", vc_formula=parts
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(reml=True), dict(zip(model.exog_vc.names, range(3), strict=True))


def densely(y, x, parts, variances, residual):
    """−2 log restricted likelihood, effects and their covariance, from the full covariance matrix of the ratings."""
    v = residual * np.eye(y.size)
    for part, variance in zip(parts, variances, strict=True):
        v += variance * (part[:, None] == part[None, :])
    inverse = np.linalg.inv(v)
    information = x.T @ inverse @ x
    effects = np.linalg.solve(information, x.T @ inverse @ y)
    rest = y - x @ effects
    logs = np.linalg.slogdet(v)[1] + np.linalg.slogdet(information)[1]
    return (
        logs + rest @ inverse @ rest + (y.size - x.shape[1]) * np.log(2 * np.pi),
        effects,
        np.linalg.inv(information),
    )


def test_fit_agrees_with_statsmodels():
    ratings = drawn(listeners=15, systems=3, utterances=10, speakers=4, each=4, seed=0, position_effect=0.02)
    fit = fit_reml(*design_of(ratings))
    expected, order = by_statsmodels(ratings)
    assert fit.is_converged
    assert fit.deviance <= -2 * expected.llf + 1e-4
    if -2 * expected.llf - fit.deviance < 1e-3:  # where statsmodels found the same minimum
        np.testing.assert_allclose(fit.effects, expected.fe_params.to_numpy(), atol=2e-3)
        for place, name in enumerate(("listener", "utterance", "speaker")):
            assert fit.variances[place] == pytest.approx(expected.vcomp[order[name]], abs=5e-3)
        assert fit.residual == pytest.approx(expected.scale, rel=5e-3)


def test_deviance_effects_and_errors_are_those_of_the_full_covariance():
    y, x, parts = design_of(drawn(listeners=12, systems=4, utterances=15, each=5, seed=1))
    fit = fit_reml(y, x, parts)
    deviance, effects, covariance = densely(y, x, parts, fit.variances, fit.residual)
    assert fit.deviance == pytest.approx(deviance, rel=1e-9)
    np.testing.assert_allclose(fit.effects, effects, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(fit.errors, np.sqrt(np.diag(covariance)), rtol=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_a_further_part_never_fits_worse(seed):
    """Parts of nearly no variance are where a search may stop too early."""
    ratings = drawn(listeners=8, systems=2, utterances=16, each=5, seed=seed, utterance_sd=0.1, speaker_sd=0.0)
    y, x, parts = design_of(ratings)
    fewer = [fit_reml(y, x, [one for one in parts if one is not out]).deviance for out in parts]
    assert fit_reml(y, x, parts).deviance <= min(fewer) + 1e-9
