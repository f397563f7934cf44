"""`python -m hermes_trio.config > docs/configuration.md` writes the reference page."""

import sys

from hermes_trio.config.reference import markdown_reference

sys.stdout.write(markdown_reference())
