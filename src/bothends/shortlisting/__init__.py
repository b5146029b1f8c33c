"""Learning a shortlist: which target words a source word may become, from translated text."""
