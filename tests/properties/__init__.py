"""Random trials of each family of operations: the reference against OpenVINO, compiled code against the reference."""
