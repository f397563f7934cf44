"""The delivery core against a random model of a platform, rule by rule, and against planted mistakes."""
