"""CR-MGC and DEMD: planners with graph convolutions, optimized for each case (METHODS 3.4, 3.5)."""

from phygail.methods.gcn_planners.cr_mgc import CrMgc
from phygail.methods.gcn_planners.demd import Demd

__all__ = ["CrMgc", "Demd"]
