"""What pip installs, in a virtual environment of its own: the checkout is not on its path."""
