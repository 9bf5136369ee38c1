"""Expert demonstrations: the fastest success of several methods on each scenario, stored, augmented, sampled."""
