"""A search for better settings: trials trained as runs of their own, the hopeless ones ended early.

space (what is searched) -> study (what is known, in a file) -> search (trials side by side) -> trial (one of them)
  -> findings (best, table, importance, curves)
"""
