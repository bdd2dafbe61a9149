"""Networks. Constructors take sizes, never a config or an environment."""
