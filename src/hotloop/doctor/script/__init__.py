"""Somebody's script recorded: starts the recorder in the script's own interpreter, bounds it and makes a trace of what
it leaves.

Files:
    arms.py         What constructors decide, tried in processes interleaved: the script with further arguments
    copies.py       The script's folder: which files a run has written, and a copy of it for further runs
    interpreter.py  Which Python runs the script
    plan.py         What to record of a foreign script and for how long
    process.py      One child process: started, bounded from outside, ended with all it has started
    record.py       Runs a script as often as the plan asks, each time in a child process of its own, and puts the
                    traces together
    result.py       From the plain JSON that the recorder leaves to a trace
"""

from hotloop.doctor.script.interpreter import choose_interpreter as choose_interpreter
from hotloop.doctor.script.plan import ScriptPlan as ScriptPlan
from hotloop.doctor.script.record import record_script as record_script
