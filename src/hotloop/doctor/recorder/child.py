"""The process in which the script runs: `python child.py ORDER.json`, started as a file so as to need no path set."""

from __future__ import annotations

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[3])
    from hotloop.doctor.recorder.recording import record_here

    record_here(Path(sys.argv[1]))
