"""Pages that are written when the site is built: the reference, and models fitted to data."""
