"""Servers on loopback that tests crawl: `local` in the test's own process, `misbehaving` and `graph` in their own."""
