#!/usr/bin/env python3
"""Command line of the portal; `python manage.py help` lists what it can do."""

from portal.config.__main__ import main

if __name__ == "__main__":
    main()
