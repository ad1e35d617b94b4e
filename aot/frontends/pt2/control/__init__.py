"""Control flow, and arithmetic of sizes."""
