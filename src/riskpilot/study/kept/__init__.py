"""What a study keeps: a record for each trial, and the losses beside it."""
