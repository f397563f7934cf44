"""Language models: the Model protocol and its clients."""
