"""Networks of the methods that convert by content, trained as jobs."""
