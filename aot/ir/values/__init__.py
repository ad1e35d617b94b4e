"""Values known while compiling: symbolic, deferred, and what computing them would cost."""
