"""The pytest plugin beside others. They are many, and change how pytest works: they have an environment of their own,
`tox -e plugins`.
"""
