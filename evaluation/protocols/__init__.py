"""The challenge editions as data, one TOML file an edition; `evaluation.protocols.recipes` reads them."""
