"""One page that shows a run: what it learned, where its time went, its settings, its agent, and how to do it again.

Files:
    agent.py      The best agent of a run to look at: an episode as a few small pictures, and its network where a
                  graph wires it
    diagnosis.py  What `hotloop doctor` found, from the JSON it printed
    facts.py      All that a run's files say, read so that a damaged or missing one costs its own part of the page
                  and no more
    learning.py   What was learned: the curves, the evaluations, and what the updates measured
    make.py       `hotloop.report`: from a run's directory to its page
    page.py       A run as one HTML page: complete in itself, nothing is fetched, and nothing that the run says can
                  run
    phases.py     Where the run's time went: in all, and through the run
    reproduce.py  The commands that continue a run, look at it, and make it again
    rows.py       The rows of a run's events.jsonl, however many there are: read once, in bounded memory, thinned
                  out for drawing
    state.py      How far a run is and what it came to: in words, in a few large numbers, and as data
"""
