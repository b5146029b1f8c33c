"""A model for others: its card, and how it gets to the Hub."""
