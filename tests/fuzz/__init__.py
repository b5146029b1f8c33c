"""Readers of foreign bytes, and inputs that once went wrong."""
