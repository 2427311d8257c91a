"""Speed against peers: ratios of medians, measured side by side in one run."""
