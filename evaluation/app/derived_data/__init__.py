"""What engines made of recordings, and how it is deleted with them."""
