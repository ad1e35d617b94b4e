"""Faults put into the project by a program: how many of them the tests find."""

RECORD = "AOT_FAULTS_RECORD"  # variable of the environment: the file that tells which lines each test touches
