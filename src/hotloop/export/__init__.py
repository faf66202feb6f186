"""Out of hotloop: a trained network as ONNX or safetensors, event rows to TensorBoard or Weights & Biases.

wrapped (a network with its normaliser and its choice of action; levels: a graph of nodes in few operations)
  -> onnx_file -> parity (against the agent itself, on the batches of batches) ; about (what goes with it) ; torch_file
follow (rows of events.jsonl, each once) -> scalars -> tensorboard, weights_and_biases
"""
