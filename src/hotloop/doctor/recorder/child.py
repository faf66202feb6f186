"""The process in which the script runs: `python child.py ORDER.json`.

Started as a file, so that nothing need be installed or put on a path. Python has put this folder first on `sys.path`:
it goes before anything else is imported, since the names of our files are also those of other people's modules.
"""

from __future__ import annotations

import sys

NAME = "_hotloop_recorder"

if __name__ == "__main__":
    if not getattr(sys.flags, "safe_path", False):
        del sys.path[0]
    before = frozenset(sys.modules)
    from importlib import import_module
    from importlib.util import module_from_spec, spec_from_file_location

    folder = __file__.rpartition("child.py")[0] or "."
    spec = spec_from_file_location(NAME, folder + "__init__.py", submodule_search_locations=[folder])
    assert spec is not None
    assert spec.loader is not None
    sys.modules[NAME] = module_from_spec(spec)
    spec.loader.exec_module(sys.modules[NAME])
    import_module(NAME + ".recording").record_here(sys.argv[1], before)
