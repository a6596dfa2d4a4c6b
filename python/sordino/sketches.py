"""Tables too large to keep or send: sketches of them, and how the tables are recovered."""

from sordino.mechanisms.keyed.fit import KeyFit
from sordino.mechanisms.linear.compression import ChosenSparsity, Compression
from sordino.mechanisms.linear.recoveries import RecoveryResult
from sordino.releases.keyed.release import CandidateCounts, KeyRelease
from sordino.releases.sketches import Sketch
from sordino.workloads.bases import Cosine, Haar, OrthonormalBasis, Standard
from sordino.workloads.key_counts import KeyCounts

__all__ = [
    "CandidateCounts",
    "ChosenSparsity",
    "Compression",
    "Cosine",
    "Haar",
    "KeyCounts",
    "KeyFit",
    "KeyRelease",
    "OrthonormalBasis",
    "RecoveryResult",
    "Sketch",
    "Standard",
]
