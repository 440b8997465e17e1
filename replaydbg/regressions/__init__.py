"""Which commit fixed or broke which recording: verdicts over recordings and commits, kept between nights.

A verdict is computed once for all commits whose code answers the same to everything that the replay asked of it.
"""
