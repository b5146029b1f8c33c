"""Training: recipe, batches, loss, schedule, checkpoints of a run, validation and the one loop."""
