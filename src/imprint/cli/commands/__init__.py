"""Every file here is one command: its docstring is the help, and the parameters of
`command` are the options.
"""
