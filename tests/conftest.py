"""What holds for all tests."""

from hypothesis import HealthCheck, settings

# A busy machine makes any generation slow once; a clock decides no test here.
settings.register_profile("no clock", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("no clock")
