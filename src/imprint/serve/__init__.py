"""`imprint serve`: a page on which classes are taught and tried, and the server behind it."""
