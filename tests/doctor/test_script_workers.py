"""What worker processes compute is counted while they live and after they have ended."""

from __future__ import annotations

import subprocess
import sys

from hotloop.doctor.recorder.meters import WorkerTime

BURN = """
import sys, time
while time.process_time() < 0.3:
    pass
print("done", flush=True)
sys.stdin.read()
"""


def test_processor_time_of_children_counts_from_the_beginning_of_the_loop() -> None:
    idle = WorkerTime()
    assert idle.seconds == 0.0, "no loop has begun"
    workers = WorkerTime()
    workers.begin()
    with subprocess.Popen([sys.executable, "-c", BURN], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        alive = workers.seconds
        late = WorkerTime()
        late.begin()
    assert alive >= 0.25
    assert workers.seconds >= alive
    assert late.seconds <= workers.seconds - 0.2, "what they did before is not counted"
