"""The paper's analyses: agreement, mutual information, lengths."""
