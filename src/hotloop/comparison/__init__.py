"""What a change did to learning: arms x seeds, trained side by side, judged with intervals.

compare: arms (finished: runs that are there) -> jobs (trains) -> measures (reads runs, curves) -> summary
  -> verdict (the decision rule, from statistics) -> verdict_text -> report, page

Files:
    arms.py          What is compared: presets and TOML files with overrides, or runs that are there already, under
                     short labels
    compare.py       `hotloop.compare`: from arms to trained runs, a verdict, and the files that hold it
    finished.py      Runs that are there already: named as an arm, or lying where one of the same settings and seed
                     would be trained
    jobs.py          The runs of a comparison: which there are, what is left to do for each, and handing those that
                     are not finished to a place that trains them
    load.py          What else the machine did while the runs were trained
    measures.py      What a finished run says about itself, from its plain files
    page.py          The comparison as one HTML page: complete in itself, nothing is fetched, no script
    planning.py      The runs of a comparison as a list of jobs, for machines that this one does not start anything on
    progress.py      How a comparison is getting on: a live table on a terminal, plain lines elsewhere; always on
                     stderr
    report.py        From finished jobs to one comparison: as data, as lines for a terminal, as Markdown, and the files
                     it leaves in its folder
    scores.py        Scores that a program writes by itself: `FILE:COLUMN`, with `{seed}` in the path
    scripts.py       Arms that are commands: anybody's script, unmodified, each seed in a process of its own under the
                     light recorder
    statistics.py    Means over few seeds and how far they can be believed; seeded, so that the same runs give the
                     same numbers
    summary.py       An arm over its seeds: plain data from here on
    training_returns.py  Arms judged by the episodes of their training, whatever program made them
    verdict.py       What one arm did to learning and to speed, compared with the first: the decision rule
    verdict_text.py  A verdict in words: a headline, and the sentences that support it; rows of the tables
"""
