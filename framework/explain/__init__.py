"""Why a fixture failed, in words."""
