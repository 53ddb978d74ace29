"""tcalc in a browser: pages made with its public names."""
