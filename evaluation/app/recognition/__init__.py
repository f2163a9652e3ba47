"""Words recognised in submitted speech, and their errors."""
