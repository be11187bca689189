"""`imprint api`: an inference server, which answers for one or several models and
changes none.
"""
