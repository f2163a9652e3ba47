"""The texts that evaluators of a study read, as organizers change them."""
