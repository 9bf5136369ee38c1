"""The world: layouts, damage, links, the one simulator step, episodes and what they are judged by. numpy and scipy."""
