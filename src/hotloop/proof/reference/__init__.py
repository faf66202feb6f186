"""Plain programs, the way a competent person writes them first. They import nothing of ours: they are the witness."""
