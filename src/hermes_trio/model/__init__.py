"""The model room: what a model is, one that speaks to OpenAI-compatible servers, and one that needs no server."""
