"""The dashboard: one module per page, each with `routes(desk)`. Reads through `inspect`, acts through `operate`."""
