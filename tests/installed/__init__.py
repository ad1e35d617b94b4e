"""Tests of the installed package, in a virtual environment whose path does not have the checkout."""
