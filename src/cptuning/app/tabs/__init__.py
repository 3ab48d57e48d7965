"""The page's tabs, one file each, in the order of the work."""
