"""Networks that make speaker vectors, in torch: to load with published weights or to train.

Every module here but this one imports torch at its top: import them inside functions, never where a page or a command
starts. Conventions: features are float32, shape (batch, frames, bands); `frames` counts the frames of each utterance of
a padded batch, shape (batch,); what lies behind them has no effect.
"""
