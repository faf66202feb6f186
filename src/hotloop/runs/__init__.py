"""What a run leaves on disk: settings, events, checkpoints. Plain data, durable writes, nothing that executes.

Files:
    checkpoint.py        Checkpoints: one folder of safetensors and JSON files each, complete under its final name
                         or not there at all
    checkpoint_files.py  One checkpoint folder: what is written into it and read from it
    digest.py            One hash over a whole state: equal digests mean bit-identical runs
    directory.py         A run is a directory; `settings.toml` is what makes it one
    events.py            `events.jsonl`: one JSON object per line, appended as it happens
    files.py             Durable writes and guarded reads
    listing.py           The runs under a folder at a glance, from plain files only: small ones whole, events by
                         their tail
    lock.py              One trainer per run directory: an flock, which the kernel drops when its holder dies,
                         however it dies
    logs.py              Logs of other programs as rows of numbers: CSV, JSON lines, Stable-Baselines3's files,
                         TensorBoard's
    manifest.py          What a checkpoint consists of: sizes and hashes of its files, and a hash of the manifest
                         itself
    tensors.py           Named arrays as a safetensors file: an 8-byte length, a JSON header, then the bytes of each
                         array
    tensorboard.py       Scalars of TensorBoard's event files, read without TensorBoard
"""
