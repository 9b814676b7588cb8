"""Benchmarks for people who ask of their own site what we asked of ours: what limits a crawl, and what a choice costs."""
