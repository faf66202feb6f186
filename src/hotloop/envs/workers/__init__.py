"""Environments in processes of their own.

Files:
    messages.py    What the pool and a worker say to each other: single bytes while stepping, JSON for everything
                   else
    pool.py        Gymnasium envs in worker processes: the same answers as in process, and a run that outlives an
                   env's crash
    process.py     One worker process as the pool sees it: started, given orders, waited for, and ended whatever it
                   is doing
    serve.py       What runs in a worker process: a group of envs behind the same adapter as in process, answering
                   orders
    supervisor.py  The workers of a pool, supervised: given orders together, and replaced where one of them is lost
"""
