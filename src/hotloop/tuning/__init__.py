"""A search for better settings: trials trained as runs of their own, the hopeless ones ended early.

search: space (what is searched) -> study (what is known, in a file) -> trial (one after another, side by side)
  -> search_result (best, table, importance, curves)

Files:
    search.py         `hotloop.tune`: trials side by side, until there are enough of them or somebody stops the search
    search_result.py  What a search found: the best trial, all trials, what mattered, and learning curves
    space.py          What is searched: `optimizer.learning_rate=1e-5..1e-2:log`, `n_step=1,3,5`,
                      `network.hidden=64x64,256`
    study.py          What a search knows, in `study.db` of its folder: trials, their scores on the way and at the
                      end
    trial.py          One trial: its runs as processes of their own, watched through their event rows
"""
