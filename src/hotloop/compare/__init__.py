"""What a change did to learning: arms x seeds, trained side by side, judged with intervals.

arms -> jobs -> pool (trains) -> measures (reads runs) -> summary -> table, curves -> chart, page.
"""
