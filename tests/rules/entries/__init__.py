"""Every rewrite rule, by theme: proved, or tested and why."""
