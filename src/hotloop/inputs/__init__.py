"""What users hand over, read once at the door: arrays, numbers, shapes and spaces, kept exactly or refused.

Files:
    arguments.py      Observations of any shape, the arrays of a batch, the numbers of a constructor
    specs.py          Shapes and Gymnasium spaces, as users give them, read into specs
    values.py         Values read into arrays: kept exactly or refused, with one sentence that names the argument
    values_kernels.py One look at every number that is handed in: in numpy it costs several times the storing of a
                      small row
"""
