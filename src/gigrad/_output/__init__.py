"""Output of an Explanation: text, tables, files, a report."""
