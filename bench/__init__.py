"""Benchmarks for people who ask of their own site what we asked of ours: what limits a crawl, what a choice costs."""
