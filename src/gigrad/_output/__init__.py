"""An Explanation as people and programs read it: text, tables, files, a report."""
