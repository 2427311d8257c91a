"""Choose a model configuration that keeps the limits you set, with a statistical guarantee."""
