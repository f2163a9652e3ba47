"""What evaluators meet before and after the trials: joining, consent, screening, role play, codes, withdrawal."""
