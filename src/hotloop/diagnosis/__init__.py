"""Why a training loop is slow: `diagnose` runs a script or our own loop, and applies the doctor's rules to what it saw.

`doctor/` has the instruments (recorder, rules, views) and imports nothing that trains; this package may.

Files:
    diagnose.py       `diagnose`: a script, a preset or settings; and what comes of it, a `Diagnosis`
    plain_replay.py   The replay buffer that people write first: what the experiment about storing stores into
    preset.py         Our own loop recorded, then with one thing changed at a time
    training_loop.py  Our own training loop, run an interval at a time; and one that stores as the plain program does
    variations.py     The experiments that people make by hand when training is slow, as overrides of a run's settings
"""
