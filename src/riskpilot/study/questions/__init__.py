"""Questions to the calibration data: asked, counted, and checked later."""
