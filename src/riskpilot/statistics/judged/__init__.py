"""A frozen judge beside a few labels: its scores save labels, and the labels decide."""
