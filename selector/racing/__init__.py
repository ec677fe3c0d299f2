"""Racing: the same picks as from all answers, from a fraction of them. See docs/racing.md."""
