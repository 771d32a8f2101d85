"""Rules that every part shares: how arguments are checked, how optional packages are imported."""
