"""Text as people see it: bodies, Markdown, splitting, units of length. All pure."""
