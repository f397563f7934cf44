"""Conversations: who speaks when, the turn, its transcript, and what the user is told when there is no answer."""
