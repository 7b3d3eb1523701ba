"""Import and export of models: the formats of other tools and search engines, one file each."""

from podium.formats.base import Export, Format, export_model, formats, get_format, import_model
from podium.formats.checking import Check, check_export

__all__ = ["Check", "Export", "Format", "check_export", "export_model", "formats", "get_format", "import_model"]
