"""A web page in which a trained lander flies the returns that it is asked for."""
