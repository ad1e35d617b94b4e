"""Parts of the command line that its commands share: arguments, errors, examples, progress."""
