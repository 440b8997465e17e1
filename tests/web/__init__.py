"""Tests of web servers: requests that are marked, and recordings that are kept for them."""
