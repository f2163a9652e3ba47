"""What is deleted with an utterance, a file or a run."""
