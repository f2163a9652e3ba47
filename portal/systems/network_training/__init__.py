"""Pages on which organizers train networks of the methods that convert by content."""
