"""Control: what programs and operators ask of a runtime, by calls in its own process or through its socket."""
