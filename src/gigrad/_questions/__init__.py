"""Questions that need more than one explanation: what changed, how two models differ, what would have to change."""
