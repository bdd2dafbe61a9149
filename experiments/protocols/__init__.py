"""What the papers on learned proxies measure of them."""
