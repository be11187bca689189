"""`imprint serve`: a page on which classes are labelled and tried, and the server
behind it.
"""
