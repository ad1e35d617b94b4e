"""Papers of a library for its users: bill of materials, provenance, signatures that others can check."""
