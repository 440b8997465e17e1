"""Tests of replaydbg/hunt."""
