"""Models under load: many requests, actors, hours, other processes."""
