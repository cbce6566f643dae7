"""What a validation found: its report, the evidence of it beside a lock, and the report for test dashboards."""
