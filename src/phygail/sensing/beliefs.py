"""Shim until the beliefs move here."""
from phygail.methods.reach_evolved.beliefs import *  # noqa
from phygail.methods.reach_evolved.beliefs import Beliefs, DelayedBeliefs, BeliefSpec, _toward, _agreed  # noqa
from phygail.methods.reach_evolved.rebased import RebasedBeliefs  # noqa
