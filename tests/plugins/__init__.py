"""The pytest plugin with other plugins.

They are many, and change how pytest works: they have an environment of their own, `tox -e plugins`.
"""
