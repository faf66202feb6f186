"""Looking at what an agent does: in the terminal, as a video, as pictures."""
