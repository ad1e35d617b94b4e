"""What compiling costs, and that two compilers or two routes give the same."""
