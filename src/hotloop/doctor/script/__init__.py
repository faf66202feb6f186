"""Somebody's script recorded: starts the recorder in the script's own interpreter, bounds it and makes a trace of what
it leaves.

Files:
    plan.py     What to record of a foreign script and for how long
    process.py  One child process: started, bounded, and waited for
    record.py   Runs a script as often as the plan asks, each time in a child process of its own, and puts the traces
                together
    result.py   From the plain JSON that the recorder leaves to a trace
"""

from hotloop.doctor.script.plan import ScriptPlan as ScriptPlan
from hotloop.doctor.script.record import record_script as record_script
