"""One page that shows a run: what it learned, where its time went, its settings, its agent, and how to do it again."""
