"""Tables too large to keep or send: sketches of them, and how the tables are recovered."""

from sordino.mechanisms.linear.compression import ChosenSparsity, Compression
from sordino.mechanisms.linear.recoveries import RecoveryResult
from sordino.mechanisms.keyed.fit import KeyFit
from sordino.releases.keyed.release import KeyCounts, KeyRelease
from sordino.releases.sketches import Sketch
from sordino.workloads.bases import Cosine, Haar, OrthonormalBasis, Standard
from sordino.workloads.keys import Keys

__all__ = [
    "ChosenSparsity",
    "Compression",
    "Cosine",
    "Haar",
    "KeyCounts",
    "KeyFit",
    "KeyRelease",
    "Keys",
    "OrthonormalBasis",
    "RecoveryResult",
    "Sketch",
    "Standard",
]
