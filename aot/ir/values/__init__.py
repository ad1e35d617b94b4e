"""Values known while compiling: symbolic, deferred, and the costs of computing them."""
