"""Out of hotloop: a trained network as ONNX or safetensors, event rows to TensorBoard or Weights & Biases.

agent_files: wrapped (a network with its normalizer and its choice of action; a graph of nodes in few operations)
  -> onnx_file -> parity (against the agent itself) ; about (what goes with it, and safetensors)
loggers: follow (rows of events.jsonl, each once) -> TensorBoard, Weights & Biases

Files:
    about.py        What goes with exported weights: what they see, what their outputs mean, where they come from
    agent_files.py  `hotloop.export_agent`: a run's best agent as files for other programs, each checked before it gets
                    its name
    follow.py       The rows of a run's events.jsonl, each once, however often the file is cut back and written again
    loggers.py      Event rows in TensorBoard and in Weights & Biases
    onnx_file.py    An agent as an ONNX file with a free batch axis, held against the agent before it gets its name
    parity.py       An exported network against the agent it came from
    wrapped.py      An agent as one module that takes what the env shows and gives what the env takes
"""
