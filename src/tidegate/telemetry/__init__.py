"""Spans on their way out of the process. Only `otlp_exporter.py` knows OpenTelemetry."""
