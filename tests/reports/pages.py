"""The content of a report: its tables and texts, as a browser without scripts reads them."""

import json
from html.parser import HTMLParser


class Page(HTMLParser):
    """The tables of a page by caption, the sections by key, and the content of its script."""

    def __init__(self, text):
        super().__init__()
        self.tables, self.ids, self.tags, self.texts = {}, [], [], {}
        self._rows, self._cell, self._caption, self._section, self._json = None, None, None, None, None
        self.content = None
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.tags.append((tag, given))
        if "id" in given:
            self.ids.append(given["id"])
        if tag == "section" and "id" in given:
            self._section = given["id"]
        elif tag == "table":
            self._rows, self._caption = [], ""
        elif tag == "caption":
            self._cell = ""
        elif tag == "tr":
            self._rows.append([])
        elif tag in ("td", "th"):
            self._cell = ""
        elif tag == "script" and given.get("type") == "application/json":
            self._json = ""

    def handle_endtag(self, tag):
        if tag == "caption":
            self._caption, self._cell = " ".join(self._cell.split()), None
        elif tag in ("td", "th"):
            self._rows[-1].append(" ".join(self._cell.split()))
            self._cell = None
        elif tag == "table":
            self.tables.setdefault(self._caption, []).append(self._rows)
        elif tag == "script" and self._json is not None:
            self.content, self._json = json.loads(self._json), None

    def handle_data(self, data):
        if self._json is not None:
            self._json += data
        elif self._cell is not None:
            self._cell += data
        if self._section:
            self.texts[self._section] = self.texts.get(self._section, "") + data

    def table(self, start):
        """The rows of the one table whose caption begins so, by the name of their columns."""
        (tables,) = [tables for caption, tables in self.tables.items() if caption.startswith(start)]
        head, *rows = tables[0]
        return [dict(zip(head, row, strict=True)) for row in rows]

    def words(self, section):
        """The text of a section on one line."""
        return " ".join(self.texts[section].split())
