"""What organizers do with a study: plan, design, word, prepare, launch, extend and close it."""
