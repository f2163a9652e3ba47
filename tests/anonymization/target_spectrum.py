"""A small method for tests whose voices are those of target speakers: it filters speech by the start of a recording."""

from dataclasses import dataclass, field, replace

import numpy as np

from anonymization.methods.contract import Described, Option, TargetPool, require_pool


@dataclass(frozen=True)
class TargetSpectrum(Described):
    """Filter speech by the first samples of the first recording of its target."""

    pool: TargetPool | None = field(default=None, repr=False, kw_only=True)

    @property
    def has_targets(self):
        return self.pool is not None

    def prepare(self, pool):
        return replace(self, pool=pool)

    def _anonymize(self, item, rate, options, threads):  # noqa: ARG002
        target = require_pool(self.name, self.pool).find(item.pseudo_speaker.target)
        samples, _ = target.recordings[0]()
        taps = samples[100 : 100 + round(options["taps"])].astype(np.float64)
        filtered = np.convolve(item.samples, taps / np.abs(taps).sum(), "same")
        return filtered.round().astype(np.int16)


METHODS = (
    TargetSpectrum(
        name="filtered",
        title="Filter by a target",
        version="1",
        reference="None",
        options=(Option("taps", 64.0, "number of samples of the target", low=1.0, high=512.0),),
    ),
)
