"""What HTTP servers share: listening, a protocol with deadlines, and bodies within
limits.
"""
