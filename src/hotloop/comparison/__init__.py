"""What a change did to learning: arms x seeds, trained side by side, judged with intervals.

command -> arms (finished: runs that are there) -> jobs -> pool (trains) -> measures (reads runs) -> summary
  -> verdict (the decision rule, from two_samples) -> words, table -> markdown, page
  -> curves -> chart -> svg, pixels
"""
