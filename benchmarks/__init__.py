"""Speed against peers, as ratios of one run, and what survives of interrupted studies."""
