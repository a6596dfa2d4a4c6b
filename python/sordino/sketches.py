"""Tables too large to keep or send: sketches of them, and how the tables are recovered."""

from sordino.mechanisms.linear.compression import ChosenSparsity, Compression
from sordino.mechanisms.linear.recoveries import RecoveryResult
from sordino.releases.sketches import Sketch
from sordino.workloads.bases import Cosine, Haar, OrthonormalBasis, Standard

__all__ = [
    "ChosenSparsity",
    "Compression",
    "Cosine",
    "Haar",
    "OrthonormalBasis",
    "RecoveryResult",
    "Sketch",
    "Standard",
]
