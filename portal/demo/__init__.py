"""The demo: a small challenge that the portal runs from its corpus to its leaderboard, and a study to listen in."""
