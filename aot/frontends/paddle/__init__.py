"""Reader of PaddlePaddle's files: programs of version 3, .json, and of version 2, .pdmodel, with .pdiparams."""
