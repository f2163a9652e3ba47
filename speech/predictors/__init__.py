"""Models that predict how people would judge speech; their numbers are labelled predictions wherever they stand."""
