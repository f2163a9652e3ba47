"""The one error of the anonymisation methods, a sentence for whoever asked for the run."""


class MethodError(ValueError):
    """Samples, a parameter or a name that a method cannot use: says what was expected and found."""
