"""Settings of every test process and of the processes it starts."""

import os

# Tests run beside each other: threads that spin while they wait would take each other's cores.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
