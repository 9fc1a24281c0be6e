"""The forms of a page, as a browser would send them."""

from html.parser import HTMLParser


class _Forms(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.forms: list[tuple[str, dict[str, str]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "form":
            self.forms.append((given.get("action", ""), {}))
        elif tag == "input" and self.forms and "name" in given:
            self.forms[-1][1][given["name"]] = given.get("value", "")


def forms_of(page: str, action: str, *having: str) -> list[dict[str, str]]:
    """The fields of each form with this end of its address, and with these fields; without the session's mark."""
    read = _Forms()
    read.feed(page)
    return [
        {name: value for name, value in fields.items() if name not in {"form_mark", "reason"}}
        for where, fields in read.forms
        if where.endswith(action) and all(name in fields for name in having)
    ]


def form_of(page: str, action: str, *having: str, at: int = 0) -> dict[str, str]:
    """One of them."""
    found = forms_of(page, action, *having)
    assert len(found) > at, f"the page has no form to {action}"
    return found[at]
