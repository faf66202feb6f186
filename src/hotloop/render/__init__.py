"""Numbers as text, plots, charts, pictures and HTML: what every page and table is drawn with. Imports `core` only.

Files:
    chart.py    Learning curves as a chart: laid out as shapes, written as SVG or painted as pixels
    html.py     HTML by construction, and the one shell of every page, with `page.css` and `page.js` in it
    numbers.py  Numbers for people: digits, units, signs, ticks of an axis
    picture.py  Pictures through Pillow: a canvas with smooth edges and words, and arrays as PNG files
    plots.py    Plots whose shapes stretch with the page while their words keep their size: SVG below, HTML labels
                around it
    tables.py   Tables of text: one list of rows, its headings first, for a terminal and for Markdown
"""
