"""Where programs of Intel Neural Compressor look for `recover`."""
