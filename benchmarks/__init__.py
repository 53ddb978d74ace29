"""Problems, rivals and the harness that times them side by side: `python -m benchmarks --help`."""
