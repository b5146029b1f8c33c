"""Models of other libraries as model directories of ours, and back."""
