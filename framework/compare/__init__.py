"""What is judged, how, and the findings: pure functions over JSON values."""
