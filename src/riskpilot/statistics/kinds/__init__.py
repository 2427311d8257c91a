"""The statistics, each one class in a module of its own, and the list of them."""
