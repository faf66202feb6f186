"""The recorder for foreign scripts: runs somebody's unmodified program in a child process and returns its trace."""

from hotloop.doctor.recorder.record import ScriptPlan as ScriptPlan
from hotloop.doctor.recorder.record import record_script as record_script
