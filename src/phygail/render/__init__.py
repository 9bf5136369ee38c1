"""How things look: colors and panels, tables, the swarm seen from above, animations."""
