"""`duly.logs`: formatters of standard logging that name the running job."""

from duly.client.logs import JsonFormatter, TextFormatter, job_fields

__all__ = ["JsonFormatter", "TextFormatter", "job_fields"]
