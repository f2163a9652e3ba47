"""What listeners said, for pages: analyses as jobs, their publication, and who may see what of them."""
