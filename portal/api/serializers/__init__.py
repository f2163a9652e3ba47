"""The shapes of what the API takes and gives; pages have templates in their place."""
