"""P(same story) without judged pairs: learned from tweets, claims, statements and news (`benchmarks.groups learn`).

For pairs in two languages, it was learned from translations of manual pages and of sentences.
"""

from __future__ import annotations

from linker.scoring.groups.evidence import NAMES, PairModel

SHIPPED = PairModel(
    NAMES,
    (-3.3957, 1.0862, 2.1738, 0.3491, 0.2198, 0.214, -0.2166, 0.0935, 0.0984, 0.3125, 0.1852),
    (1.5945, 0.4195, 0.7431, 0.2524, 0.089, 0.214, 0.5112, 0.0583, 0.0616, 0.3796, 0.1382),
    (
        (1.0013, 0.3947, 0.4801, 0.038, -1.2971, 0.4649, 0.4767, -0.1725, 0.9831, 0.8117, 0.505, -7.1008),
        (1.3554, -0.6474, 0.2419, 0.0918, 0.1842, 0.273, -0.332, -0.1997, 1.3729, 1.7291, 0.0, -6.806),
        (1.6549, -0.1482, -0.7809, 0.1871, -0.7271, 0.7686, 0.0031, -0.1783, 0.4727, 1.0163, 0.0, -9.9523),
    ),
    across=(3.703, 3.6013, -0.7172),
    share=0.2806,
)
