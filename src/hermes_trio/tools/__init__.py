"""Tools that the model may call: the Tool protocol, the registry, the built-in ones."""
