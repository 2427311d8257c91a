"""A frozen judge beside a few labels: its scores save labels, and the promise is about the labels."""
