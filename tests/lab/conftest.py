"""The lab: the whole bot in the simulated world. Its log is turned off; what it says is judged on screens."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

import structlog

sys.path.insert(0, str(Path(__file__).parent))

structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
