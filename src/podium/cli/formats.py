"""`podium formats`."""

from __future__ import annotations

import typer


def formats() -> None:
    """List the formats of models, and what each can carry."""
    from rich.console import Console
    from rich.table import Table

    from podium.formats import formats as all_formats

    table = Table("format", "in", "out", "what it is", "does not carry")
    for name, one in all_formats().items():
        lacks = ", ".join(content for content, carries in one.carries.items() if carries == "no")
        table.add_row(name, "yes" if one.can_read() or one.reads_objects() else "", "yes" if one.can_write() else "",
                      one.title, lacks)  # fmt: skip
    Console(width=None if typer.get_text_stream("stdout").isatty() else 160).print(table)
