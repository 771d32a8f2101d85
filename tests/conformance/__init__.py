"""The one table of models that gigrad supports, and what drives it: see `table.py`."""
