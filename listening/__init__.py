"""The listening test: studies, the design behind them, and the sessions in which people rate speech."""
