"""Numbers as text, plots, charts, pictures and HTML: what every page and table is drawn with. Imports `core` only."""
