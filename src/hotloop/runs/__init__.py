"""What a run leaves on disk: settings, events, checkpoints. Plain data, durable writes, nothing that executes."""
