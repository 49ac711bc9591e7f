"""Settings of every test process and of the processes it starts."""

import os

from hypothesis import HealthCheck, settings

# Tests run beside each other: threads that spin while they wait would take each other's cores.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

# A busy machine makes any generation slow once, and no clock decides a test.
settings.register_profile("no clock", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("no clock")
