"""What the UAVs know of the world: views by scope, and the observations built from them. numpy and scipy."""
