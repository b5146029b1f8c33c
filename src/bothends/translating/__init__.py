"""From text to text: options and results, batches and workers, files and documents."""
