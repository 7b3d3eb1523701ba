"""The content of a report: its tables and texts, as a browser without scripts reads them."""

import json

from bs4 import BeautifulSoup


def text_of(node):
    return " ".join(node.get_text().split())


class Page:
    """A parsed page: its tables by caption, its elements, and the content of its script."""

    def __init__(self, text):
        self._page = BeautifulSoup(text, "html.parser", multi_valued_attributes=None)
        self.tags = [(node.name, node.attrs) for node in self._page.find_all(True)]
        self.ids = [attributes["id"] for _, attributes in self.tags if "id" in attributes]
        self.content = json.loads(self._page.find("script", type="application/json").string)
        self.tables = {}
        for table in self._page.find_all("table"):
            rows = [[text_of(cell) for cell in row.find_all(["td", "th"])] for row in table.find_all("tr")]
            self.tables.setdefault(text_of(table.caption), []).append(rows)

    def table(self, start):
        """Return the rows of the only table whose caption begins so, by the name of their columns."""
        (tables,) = [tables for caption, tables in self.tables.items() if caption.startswith(start)]
        head, *rows = tables[0]
        return [dict(zip(head, row, strict=True)) for row in rows]

    def words(self, section):
        """Return the text of a section on one line."""
        return text_of(self._page.find("section", id=section))
