"""A live page over a folder of runs, on this machine, for a browser.

sources (what lies below the folder) -> reading, events (files as columns) -> index (kept between openings)
  -> library (in step with the files) -> table, curves, detail, verdict (what the page shows) -> server, behind guard

Files:
    arms.py     Runs that differ by their seed alone are one arm
    columns.py  Points as columns of numbers, and what a screen can show of very many
    curves.py   The curves of chosen runs, for a screen of so many pixels; and the same as SVG and CSV files
    detail.py   One run by itself: what it says of itself, its checkpoints, who is identical to it
    events.py   A run's `events.jsonl` as columns, read on from where the last look ended
    guard.py    Who may ask: every request passes here first
    index.py    What was read of every run and log, kept between two openings
    jobs.py     What the page lets `hotloop` do: play an agent, and with `--control` change runs
    library.py  All that is shown of one folder, kept in step with its files by one thread
    logs.py     Logs of other programs, and saved reports of the doctor, as the dashboard holds them
    machine.py  What the machine has and what a run takes of it: memory, cores, load
    phases.py   Where the time of a run went, over its length; and the same as SVG and CSV files
    reading.py  A run as the dashboard holds it: its columns, and one small table about it
    routes.py   Every address and the function that answers it
    serve.py    From a folder to a page in the browser: keys, socket, link, server
    server.py   The app behind the guard, and the socket it listens on
    sources.py  What lies below a folder that can be shown
    stream.py   What changed, told to every open page: Server-Sent Events
    table.py    The table of runs as data
    verdict.py  Two chosen arms, judged as `hotloop compare` judges them
    waiting.py  Connections that have not shown the token yet: few places, and not for long

`page/` has the page itself: HTML, CSS and JavaScript without a build step, and uPlot with its licence.
"""
